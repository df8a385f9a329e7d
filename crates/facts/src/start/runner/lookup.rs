//! The file that a program's name leads to, and what kind of program it is.

use model::{Fact, Found, Gap, ImagePath};
use rootfs::{FileAccess, Refusal, RootFs};
use shell::{ShellGap, ShellKind, ShellState};

use super::super::super::packages::dpkg_versions;
use super::super::super::text;
use super::super::gap::in_shell;
use super::super::state::DEFAULT_PATH;
use super::super::user::ContainerUser;
use super::{Runner, SETTLE};

impl Runner<'_> {
    /// The file that a program's name leads to, if the user may execute it: a path directly, a name through `PATH`, in
    /// which execvp passes over what it may not execute.
    pub(in crate::start) fn locate(&self, called: &str, state: &ShellState) -> Result<Option<ImagePath>, ShellGap> {
        let in_folder = |folder: &str| -> Result<ImagePath, ShellGap> {
            Ok(ImagePath::from(state.directory.clone()?.as_str()).join(folder.as_bytes()))
        };
        let absolute = |path: &str| if path.starts_with('/') { Ok(ImagePath::from(path)) } else { in_folder(path) };
        if called.contains('/') {
            let path = absolute(called)?;
            // The import says whose mode is to blame for an interpreter.
            let is_usable = self.may_execute(&path)? || (base_is_python(&path) && self.rootfs.is_executable(&path));
            return Ok(Some(path).filter(|_| is_usable));
        }
        let path = state.text("PATH")?;
        let path = if path.is_empty() { DEFAULT_PATH.to_owned() } else { path };
        for folder in path.split(':') {
            let path = absolute(folder)?.join(called.as_bytes());
            if self.may_execute(&path)? {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// The kind of a shell by its name and the file that it leads to; `None` if it is not a shell that is followed.
    pub(super) fn shell_kind(&self, base: &str, real: Option<&ImagePath>) -> Option<ShellKind> {
        let real = real.map_or(&b""[..], ImagePath::file_name);
        match (base, real) {
            ("bash" | "rbash", _) => Some(ShellKind::Bash),
            ("sh", b"bash") => Some(ShellKind::PosixBash),
            ("sh" | "ash", b"busybox" | b"busybox.static") => Some(ShellKind::Busybox),
            ("sh" | "dash" | "ash", b"dash") if *self.is_dash.get_or_init(|| is_known_dash(self.rootfs)) => {
                Some(ShellKind::Dash)
            }
            ("sh" | "dash" | "ash" | "busybox", _) => Some(ShellKind::Posix),
            _ => None,
        }
    }

    pub(super) fn may_execute(&self, path: &ImagePath) -> Result<bool, ShellGap> {
        may_execute(self.rootfs, &self.user, path).map_err(in_shell)
    }

    fn may_read(&self, path: &ImagePath) -> bool {
        let who = self.user.as_ref().ok().and_then(ContainerUser::credentials);
        let answer = who.map(|who| self.rootfs.access(&who, path.as_bytes(), FileAccess::Read));
        !matches!(answer, Some(Err(Refusal::Denied(_))))
    }

    /// True for a file that the kernel loads itself.
    pub(super) fn is_program(&self, path: &ImagePath) -> bool {
        let found = self.rootfs.open(path).map(|(_, file)| file.found).unwrap_or_default();
        let is_script = |found: &Result<Found, Gap>| matches!(found, Ok(Found::Text(text)) if text.starts_with(b"#!"));
        let is_elf = found.iter().any(|found| matches!(found, Ok(Found::Elf(_))));
        // An interpreter whose headers could not be read is none the less no script.
        is_elf || (base_is_python(path) && !found.iter().any(is_script))
    }

    /// The text of a file; `None` if it does not exist, or the user may not read it.
    pub(in crate::start) fn read(&self, path: &ImagePath) -> Option<Result<String, ShellGap>> {
        if !self.may_read(path) {
            return None;
        }
        match text(self.rootfs, path) {
            Fact::Seen { value, .. } => Some(Ok(String::from_utf8_lossy(value).into_owned())),
            Fact::Absent => None,
            Fact::Unknown(gap) => Some(Err(in_shell(gap.settled_by(SETTLE)))),
        }
    }
}

/// True for a release of dash that refuses what bash alone knows. Later ones may have `set -o pipefail`.
fn is_known_dash(rootfs: &RootFs) -> bool {
    let versions = dpkg_versions(rootfs);
    let Some(version) = versions.get("dash") else { return false };
    let mut numbers = version.split(['.', '-', '+']).map(|number| number.parse::<u32>().ok());
    let numbers = [numbers.next().flatten(), numbers.next().flatten(), numbers.next().flatten()];
    matches!(numbers, [Some(0), Some(5), Some(patch)] if patch < 13)
}

/// True for a program that a user may execute. An unknown user may execute what anyone may.
pub(in crate::start) fn may_execute(
    rootfs: &RootFs,
    user: &Result<ContainerUser, Gap>,
    path: &ImagePath,
) -> Result<bool, Gap> {
    if !rootfs.is_executable(path) {
        return Ok(false);
    }
    let Some(who) = user.as_ref().ok().and_then(ContainerUser::credentials) else { return Ok(true) };
    match rootfs.access(&who, path.as_bytes(), FileAccess::Execute) {
        Ok(_) => Ok(true),
        Err(Refusal::Unknown(gap)) => Err(gap.settled_by(SETTLE)),
        Err(Refusal::NoFile(_) | Refusal::Denied(_)) => Ok(false),
    }
}

/// True for a name such as `python3.11`.
pub(in crate::start) fn is_python(name: &str) -> bool {
    let version = name.strip_prefix("python").map(|version| version.strip_suffix('t').unwrap_or(version));
    version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

pub(super) fn base_is_python(path: &ImagePath) -> bool {
    std::str::from_utf8(path.file_name()).is_ok_and(is_python)
}
