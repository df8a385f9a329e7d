//! The interpreter that runs: the one that the image's command names, else the first one in `PATH`.

use crate::model::{Gap, ImageConfig, ImagePath};
use crate::rootfs::RootFs;

use super::minor_of;

/// `PATH` that container runtimes set if the image does not.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The path by which Python is called: by the entrypoint or the command if one of their words is an interpreter or they
/// use `conda run`, else by `python`, else by `python3`.
pub(super) fn choose(rootfs: &RootFs, config: Option<&ImageConfig>) -> Option<ImagePath> {
    let words: Vec<&str> =
        config.iter().flat_map(|config| config.entrypoint.iter().chain(&config.command)).map(String::as_str).collect();
    let named = words.iter().find_map(|word| is_python(word).then(|| find(rootfs, config, word)).flatten());
    of_conda(rootfs, config, &words)
        .or(named)
        .or_else(|| find(rootfs, config, "python"))
        .or_else(|| find(rootfs, config, "python3"))
}

/// The file that a command leads to: a path directly, a name through `PATH`. Python 2 is excluded because no current
/// torch runs on it.
fn find(rootfs: &RootFs, config: Option<&ImageConfig>, command: &str) -> Option<ImagePath> {
    let is_usable =
        |path: &ImagePath| rootfs.open(path).is_ok_and(|(real, _)| !real.file_name().starts_with(b"python2"));
    if command.contains('/') {
        let folder = config.map_or("", |config| &config.working_directory);
        return Some(ImagePath::from(folder).join(command.as_bytes())).filter(is_usable);
    }
    let path = config.and_then(|config| config.environment.get("PATH")).map_or(DEFAULT_PATH, String::as_str);
    path.split(':').map(|folder| ImagePath::from(folder).join(command.as_bytes())).find(is_usable)
}

fn is_python(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    let version = name.strip_prefix("python");
    version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

/// The interpreter of the environment in `conda run -n NAME …` or `conda run -p DIRECTORY …`.
fn of_conda(rootfs: &RootFs, config: Option<&ImageConfig>, words: &[&str]) -> Option<ImagePath> {
    let (command, rest) = words.split_first()?;
    let is_conda = matches!(command.rsplit('/').next(), Some("conda" | "mamba" | "micromamba"));
    if !is_conda || rest.first() != Some(&"run") {
        return None;
    }
    let option = |short: &str, long: &str| {
        let at = rest.iter().position(|word| *word == short || *word == long)?;
        rest.get(at + 1).copied()
    };
    let prefix = match (option("-p", "--prefix"), option("-n", "--name")) {
        (Some(folder), _) => ImagePath::from(folder),
        (None, name) => {
            let conda = rootfs.open(&find(rootfs, config, command)?).ok()?.0.parent().parent();
            match name {
                None | Some("base") => conda,
                Some(name) => conda.join(b"envs").join(name.as_bytes()),
            }
        }
    };
    Some(prefix.join(b"bin/python")).filter(|path| rootfs.open(path).is_ok())
}

/// The interpreter behind a pyenv shim, which is a script that chooses at run time; `None` if it is not a shim.
pub(super) fn behind_shim(
    rootfs: &RootFs,
    config: Option<&ImageConfig>,
    name: &ImagePath,
    real: &ImagePath,
) -> Option<Result<ImagePath, Gap>> {
    let folder = real.parent();
    let versions = folder.parent().join(b"versions");
    if folder.file_name() != b"shims" || !rootfs.is_directory(&versions) {
        return None;
    }
    let chosen = config.and_then(|config| config.environment.get("PYENV_VERSION"));
    let installed = rootfs.names(&versions).filter(|version| chosen.is_none_or(|chosen| chosen.as_bytes() == *version));
    let programs: Vec<_> = installed.map(|version| versions.join(version).join(b"bin/python")).collect();
    let mut programs = programs.into_iter().filter(|path| rootfs.open(path).is_ok());
    Some(match (programs.next(), programs.next()) {
        (Some(only), None) => Ok(only),
        _ => Err(Gap::new(format!("{name} is a pyenv shim, which chooses one of several interpreters when it runs"))
            .settled_by("choose one with -e PYENV_VERSION=VERSION")),
    })
}

/// The minor version of an interpreter, from its file name or from the directories of its prefix.
pub(super) fn minor(rootfs: &RootFs, real: &ImagePath, prefix: &ImagePath) -> Option<u32> {
    minor_of(real).or_else(|| {
        let lib = prefix.join(b"lib");
        let mut versions = rootfs
            .names(&lib)
            .filter_map(|name| minor_of(&ImagePath::normalise(name)).filter(|_| rootfs.is_directory(&lib.join(name))));
        versions.next().filter(|_| versions.next().is_none())
    })
}
