//! A program that may be meant where the one that is called does not exist.

use model::{ImagePath, nearest};
use shell::ShellState;

use super::super::state::DEFAULT_PATH;
use super::Runner;
use super::lookup::is_python;

/// A program that may be meant: one with a similar path, else one with this name in an environment that has torch, else a name in `PATH`, else a program
/// with this name elsewhere.
pub(super) fn find(runner: &Runner<'_>, called: &str, state: &ShellState) -> Option<String> {
    let (folder, name) = called.rsplit_once('/').unwrap_or(("", called));
    if called.contains('/') {
        let folder = ImagePath::from(state.directory.clone().ok()?.as_str()).join(folder.as_bytes());
        let names = runner.rootfs.names(&folder).filter(|name| runner.may_execute(&folder.join(name)) == Ok(true));
        let names = names.filter_map(|name| std::str::from_utf8(name).ok());
        if let Some(near) = similar(name, names) {
            return Some(folder.join(near.as_bytes()).to_string());
        }
    }
    let path = state.text("PATH").ok().filter(|path| !path.is_empty()).unwrap_or_else(|| DEFAULT_PATH.to_owned());
    let folders: Vec<ImagePath> = path.split(':').map(ImagePath::from).collect();
    let elsewhere = elsewhere(runner, name, &folders);
    let has_torch = |path: &&ImagePath| has_torch(runner, &path.parent().parent());
    let shown = |path: &ImagePath| path.to_string();
    elsewhere.iter().find(has_torch).map(shown).or_else(|| in_path(runner, name, &folders)).or_else(|| {
        let own = ImagePath::from(called);
        elsewhere.iter().find(|path| **path != own).map(shown)
    })
}

/// A similar name in `PATH`. Any Python is similar to another, and torchrun is a module as well.
fn in_path(runner: &Runner<'_>, name: &str, folders: &[ImagePath]) -> Option<String> {
    let names = folders.iter().flat_map(|folder| runner.rootfs.names(folder).map(move |name| (folder, name)));
    let names: Vec<&str> = names
        .filter(|(folder, name)| runner.may_execute(&folder.join(name)) == Ok(true))
        .filter_map(|(_, name)| std::str::from_utf8(name).ok())
        .collect();
    let python = || ["python3", "python"].into_iter().find(|python| names.contains(python));
    let near = match name {
        _ if names.contains(&name) => Some(name),
        _ if is_python(name) => python().or_else(|| names.iter().copied().find(|name| is_python(name))),
        "torchrun" => return python().map(|python| format!("{python} -m torch.distributed.run")),
        _ => similar(name, names.iter().copied()),
    };
    near.map(ToOwned::to_owned)
}

/// A similar name. Those of three letters, such as zsh and sh, are similar by chance.
fn similar<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    nearest(name, names).filter(|_| name.len() > 3)
}

/// The programs of this name outside of `PATH`, in environments of Python first.
fn elsewhere(runner: &Runner<'_>, name: &str, folders: &[ImagePath]) -> Vec<ImagePath> {
    let is_meant = |file: &[u8]| {
        file == name.as_bytes()
            || file == b"pyvenv.cfg"
            || (is_python(name) && std::str::from_utf8(file).is_ok_and(is_python))
    };
    let files = runner.rootfs.files_named(is_meant);
    let programs = files.map(|(path, _)| match path.file_name() {
        b"pyvenv.cfg" => path.parent().join(b"bin").join(name.as_bytes()),
        _ => path.parent().join(name.as_bytes()),
    });
    let programs = programs.filter(|path| !folders.contains(&path.parent()));
    let mut programs: Vec<_> = programs.filter(|path| runner.may_execute(path) == Ok(true)).collect();
    programs.dedup();
    programs
}

/// True for the folder of an environment that has torch.
fn has_torch(runner: &Runner<'_>, prefix: &ImagePath) -> bool {
    let lib = prefix.join(b"lib");
    let mut versions = runner.rootfs.names_with(&lib, b"python").map(|version| lib.join(version));
    versions.any(|folder| runner.rootfs.is_directory(&folder.join(b"site-packages/torch")))
}
