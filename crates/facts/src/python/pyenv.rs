//! The interpreter behind a shim of pyenv, which chooses when it runs (pyenv, `libexec/pyenv-version-name`,
//! `pyenv-version-file`, `pyenv-latest` and `pyenv-which`).

use model::{Fact, Gap, ImagePath};

use super::super::start::ProcessState;
use super::files::ProcessFiles;

/// The interpreter behind a shim, by the name that was called; `None` if the file is not a shim.
pub(super) fn behind_shim(
    files: &ProcessFiles<'_>,
    state: &ProcessState,
    name: &ImagePath,
    real: &ImagePath,
) -> Option<Result<ImagePath, Gap>> {
    let folder = real.parent();
    let root = folder.parent();
    if folder.file_name() != b"shims" || !files.rootfs.is_directory(&root.join(b"versions")) {
        return None;
    }
    let shims = Shims { files, state, name, root };
    Some(shims.chosen().and_then(|versions| shims.program(&versions)))
}

struct Shims<'w> {
    files: &'w ProcessFiles<'w>,
    state: &'w ProcessState,
    /// The shim.
    name: &'w ImagePath,
    /// `PYENV_ROOT`.
    root: ImagePath,
}

impl Shims<'_> {
    /// The chosen versions, in order.
    fn chosen(&self) -> Result<Vec<String>, Gap> {
        if let Some(versions) = self.state.known("PYENV_VERSION").filter(|versions| !versions.is_empty()) {
            return Ok(versions.split(':').map(ToOwned::to_owned).collect());
        }
        let start = self.state.known("PYENV_DIR").map_or_else(|| self.files.directory().clone(), ImagePath::from);
        let above = std::iter::successors(Some(start), |folder| (!folder.is_root()).then(|| folder.parent()));
        let local = above.map(|folder| folder.join(b".python-version"));
        let file =
            local.into_iter().find(|file| self.files.is_file(file)).unwrap_or_else(|| self.root.join(b"version"));
        match self.files.text(&file) {
            Fact::Seen { value, .. } => {
                let text = String::from_utf8_lossy(value);
                let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
                let words: Vec<_> = lines.flat_map(|line| line.split([' ', '\t', ':'])).map(str::trim).collect();
                Ok(words.into_iter().filter(|word| !word.is_empty()).map(ToOwned::to_owned).collect())
            }
            Fact::Absent => Ok(vec!["system".to_owned()]),
            Fact::Unknown(gap) => self.only().map(|only| vec![only]).ok_or(gap),
        }
    }

    /// The version, if only one is installed.
    fn only(&self) -> Option<String> {
        let mut installed = self.installed();
        installed.pop().filter(|_| installed.is_empty())
    }

    /// Installed versions that have a program.
    fn installed(&self) -> Vec<String> {
        let versions = self.files.names(&self.root.join(b"versions")).into_iter();
        let versions = versions.map(|name| String::from_utf8_lossy(name).into_owned());
        versions.filter(|version| self.files.is_file(&self.program_of(version))).collect()
    }

    fn program_of(&self, version: &str) -> ImagePath {
        self.root.join(b"versions").join(version.as_bytes()).join(b"bin").join(self.name.file_name())
    }

    /// The program of the first chosen version that has it.
    fn program(&self, versions: &[String]) -> Result<ImagePath, Gap> {
        let found = versions.iter().find_map(|version| match version.as_str() {
            "system" => self.system(),
            version => self.of_version(version.strip_prefix("python-").unwrap_or(version)),
        });
        found.ok_or_else(|| {
            let why = format!(
                "{} is a pyenv shim, and the chosen version, {}, has no such program",
                self.name,
                versions.join(" ")
            );
            Gap::new(why).settled_by("choose an installed version with -e PYENV_VERSION=VERSION")
        })
    }

    /// The program of a version, or of the latest release of a series.
    fn of_version(&self, version: &str) -> Option<ImagePath> {
        let exact = self.program_of(version);
        if self.files.is_file(&exact) {
            return Some(exact);
        }
        let number = |installed: &String| {
            let rest = installed.strip_prefix(version)?.strip_prefix('.')?;
            rest.split('.').map(|part| part.parse::<u32>().ok()).collect::<Option<Vec<_>>>()
        };
        let series = self.installed().into_iter().filter_map(|installed| Some((number(&installed)?, installed)));
        series.max().map(|(_, installed)| self.program_of(&installed))
    }

    /// The program in `PATH` without the shims.
    fn system(&self) -> Option<ImagePath> {
        let shims = self.name.parent();
        let name = String::from_utf8_lossy(self.name.file_name()).into_owned();
        self.state.find(&name, |path| path.parent() != shims && self.files.is_file(path))
    }
}
