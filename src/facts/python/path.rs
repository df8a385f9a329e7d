//! The import path of an interpreter (CPython, `Modules/getpath.py` and `Lib/site.py`; PEP 405; Debian Python Policy,
//! section "Module Path").

use crate::model::{Fact, ImagePath};
use crate::rootfs::RootFs;

use super::super::start::PythonCall;
use super::super::text;
use super::program;

/// The import path of an interpreter.
#[derive(Debug, Default)]
pub(super) struct PythonLayout {
    pub(super) minor: Option<u32>,
    pub(super) path: Vec<ImagePath>,
    pub(super) site_packages: Vec<ImagePath>,
    pub(super) hooks: Vec<ImagePath>,
}

/// A virtual environment.
struct Virtual {
    prefix: ImagePath,
    /// The directory of the interpreter that created it.
    home: Option<ImagePath>,
    sees_system: bool,
}

/// Computes `sys.path` of an interpreter whose file is `real`.
pub(super) fn layout(rootfs: &RootFs, call: &PythonCall, real: &ImagePath) -> PythonLayout {
    let variable = |name: &str| call.state.known(name).filter(|value| !value.is_empty());
    let environment = virtual_environment(rootfs, &call.program);
    let programs = environment.as_ref().and_then(|environment| environment.home.clone());
    let programs = programs.unwrap_or_else(|| real.parent());
    let prefix = match variable("PYTHONHOME") {
        Some(home) => ImagePath::from(home.split(':').next().unwrap_or_default()),
        None => prefix(rootfs, &programs),
    };
    let Some(minor) = program::minor(rootfs, real, &prefix) else {
        return PythonLayout::default();
    };
    let version = format!("python3.{minor}");
    let mut layout = PythonLayout { minor: Some(minor), ..PythonLayout::default() };
    for folder in variable("PYTHONPATH").iter().flat_map(|list| list.split(':')).filter(|part| !part.is_empty()) {
        layout.add(rootfs, ImagePath::from(folder));
    }
    let libraries = libraries(rootfs, &prefix, &version);
    let standard = libraries.join(version.as_bytes());
    layout.site_packages.clone_from(&layout.path);
    layout.add(rootfs, standard.clone());
    layout.add(rootfs, standard.join(b"lib-dynload"));

    if let Some(environment) = &environment {
        let folder = environment.prefix.join(b"lib").join(version.as_bytes()).join(b"site-packages");
        layout.add_site(rootfs, &folder);
    }
    if environment.as_ref().is_none_or(|environment| environment.sees_system) {
        if variable("PYTHONNOUSERSITE").is_none() {
            if let Some(base) = variable("PYTHONUSERBASE").map(ImagePath::from).or_else(|| user_base(call)) {
                layout.add_site(rootfs, &base.join(b"lib").join(version.as_bytes()).join(b"site-packages"));
            }
        }
        for folder in site_folders(rootfs, &prefix, &libraries, &version) {
            layout.add_site(rootfs, &folder);
        }
    }
    layout
}

impl PythonLayout {
    fn add(&mut self, rootfs: &RootFs, folder: ImagePath) -> bool {
        let is_new = !self.path.contains(&folder) && rootfs.is_directory(&folder);
        if is_new {
            self.path.push(folder);
        }
        is_new
    }

    /// Adds a site directory, and the directories that its `.pth` files name.
    fn add_site(&mut self, rootfs: &RootFs, folder: &ImagePath) {
        if !self.add(rootfs, folder.clone()) {
            return;
        }
        self.site_packages.push(folder.clone());
        let names: Vec<_> =
            rootfs.names(folder).filter(|name| name.ends_with(b".pth") && !name.starts_with(b".")).collect();
        for name in names {
            let file = folder.join(name);
            let Fact::Seen { value, .. } = text(rootfs, &file) else {
                self.hooks.push(file);
                continue;
            };
            for line in value.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end) {
                if line.starts_with(b"import ") || line.starts_with(b"import\t") {
                    self.hooks.push(file.clone());
                } else if !line.is_empty() && !line.starts_with(b"#") {
                    let folder = folder.join(line);
                    if self.add(rootfs, folder.clone()) {
                        self.site_packages.push(folder);
                    }
                }
            }
        }
        self.hooks.dedup();
    }
}

/// The virtual environment of an interpreter, marked by a file next to or above the name that was called; links are not
/// followed.
fn virtual_environment(rootfs: &RootFs, name: &ImagePath) -> Option<Virtual> {
    let folder = name.parent();
    let marks = [folder.join(b"pyvenv.cfg"), folder.parent().join(b"pyvenv.cfg")];
    let mark = marks.into_iter().find(|mark| rootfs.open(mark).is_ok())?;
    let lines = text(rootfs, &mark);
    let lines = lines.value().map(|bytes| String::from_utf8_lossy(bytes)).unwrap_or_default();
    let value = |key: &str| {
        let mut pairs = lines.lines().filter_map(|line| line.split_once('='));
        pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case(key)).map(|(_, value)| value.trim().to_owned())
    };
    Some(Virtual {
        prefix: mark.parent(),
        home: value("home").map(|home| ImagePath::from(home.as_str())),
        sees_system: value("include-system-site-packages").is_some_and(|value| value.eq_ignore_ascii_case("true")),
    })
}

/// The closest ancestor of the program directory with the standard library, else its parent.
fn prefix(rootfs: &RootFs, programs: &ImagePath) -> ImagePath {
    let programs = rootfs.real_directory(programs).unwrap_or_else(|| programs.clone());
    let mut folder = programs.clone();
    while !folder.is_root() {
        let lib = folder.join(b"lib");
        let has_library =
            |name: &[u8]| name.starts_with(b"python3.") && rootfs.open(&lib.join(name).join(b"os.py")).is_ok();
        if rootfs.names(&lib).any(has_library) {
            return folder;
        }
        folder = folder.parent();
    }
    programs.parent()
}

/// The directory of the standard library's compiled modules: Red Hat's distributions build Python with `lib64`
/// (`sys.platlibdir`).
fn libraries(rootfs: &RootFs, prefix: &ImagePath, version: &str) -> ImagePath {
    let (lib, lib64) = (prefix.join(b"lib"), prefix.join(b"lib64"));
    let modules = |folder: &ImagePath| rootfs.real_directory(&folder.join(version.as_bytes()).join(b"lib-dynload"));
    if modules(&lib64).is_some() && modules(&lib64) != modules(&lib) { lib64 } else { lib }
}

/// The site directories of an installation.
fn site_folders(rootfs: &RootFs, prefix: &ImagePath, libraries: &ImagePath, version: &str) -> Vec<ImagePath> {
    let debian = ImagePath::from("usr/lib/python3/dist-packages");
    let local = ImagePath::from("usr/local/lib").join(version.as_bytes()).join(b"dist-packages");
    // Debian's own interpreter searches /usr/local first, and uses dist-packages.
    if *prefix == ImagePath::from("usr") && (rootfs.is_directory(&debian) || rootfs.is_directory(&local)) {
        return vec![local, debian, prefix.join(b"lib").join(version.as_bytes()).join(b"dist-packages")];
    }
    let folder = |libraries: &ImagePath| libraries.join(version.as_bytes()).join(b"site-packages");
    vec![folder(libraries), folder(&prefix.join(b"lib"))]
}

/// The default of `site.USER_BASE`; `None` if the user is unknown.
fn user_base(call: &PythonCall) -> Option<ImagePath> {
    let home = call.state.known("HOME").map(ImagePath::from);
    let home = home.or_else(|| call.state.user.as_ref().ok().map(|user| user.home.clone()))?;
    Some(home.join(b".local"))
}
