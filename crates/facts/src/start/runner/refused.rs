//! What engines refuse whatever the command is, and what a shell refuses of a script.

use model::{Fact, ImageConfig, ImagePath};
use shell::{ScriptCause, ScriptFault};

use super::super::super::text;
use super::Runner;
use super::fault::{FaultKind, StartFault};

impl StartFault {
    /// The fault of a script whose first line has the line end of Windows.
    pub(super) fn of_first_line(called: &str, path: ImagePath) -> Self {
        let cause = format!("a carriage return ends the first line of {path}, as Windows writes text files");
        Self::new(FaultKind::LineEnds, called, Some(path), cause)
    }

    /// The fault of a command whose last word has the line end of Windows.
    pub(super) fn of_return(program: &str, place: &str) -> Self {
        let fault = Self::new(FaultKind::LineEnds, program, script_of(place), cause(FaultKind::LineEnds));
        Self { message: format!("{place}: {program}: no such file or directory"), ..fault }
    }

    /// The fault of a script that ends with an error; `None` if a run may provide what it lacks.
    pub(super) fn of_script(fault: &ScriptFault) -> Option<Self> {
        let kind = match fault.cause {
            ScriptCause::OfBash => FaultKind::Shell,
            ScriptCause::LineEnds => FaultKind::LineEnds,
            ScriptCause::Surroundings => return None,
        };
        let (file, line) = &fault.place;
        let message = format!("{file}, line {line}: {}", fault.message);
        let path = script_of(file);
        Some(Self { message, ..Self::new(kind, file, path, cause(kind)) })
    }
}

/// The script of a place such as `/entry.sh, line 1`.
pub(super) fn script_of(place: &str) -> Option<ImagePath> {
    let file = place.split(", line ").next().filter(|file| file.starts_with('/'))?;
    Some(ImagePath::from(file))
}

pub(super) fn cause(kind: FaultKind) -> String {
    match kind {
        FaultKind::LineEnds => "a carriage return ends the line, as Windows writes text files",
        _ => "that is of bash, and dash reads the script",
    }
    .to_owned()
}

/// Why no engine starts a program with the user and the working directory of a configuration (moby/sys, `user.GetExecUser`;
/// runc, `libcontainer/specconv` and `init_linux.go`).
pub(crate) fn of_config(runner: &Runner<'_>, config: &ImageConfig, directory: &ImagePath) -> Option<StartFault> {
    let chosen = config.start.user.as_ref().and_then(|user| user.as_ref().ok()?.name.as_ref());
    let user = chosen.unwrap_or(&config.user);
    let (name, group) = user.split_once(':').unwrap_or((user, ""));
    let found = runner.user.as_ref().ok();
    let lacks = |file: &str| !matches!(text(runner.rootfs, &ImagePath::from(file)), Fact::Unknown(_));
    let shown = directory.to_string();
    let own = &config.working_directory;
    let is_relative = directory == &ImagePath::from(own.as_str()) && !own.is_empty() && !own.starts_with('/');
    let (kind, message, cause) = if found.is_some_and(|user| user.id.is_none()) && lacks("etc/passwd") {
        let message = format!("unable to find user {name}: no matching entries in passwd file");
        (FaultKind::User, message, format!("/etc/passwd of the image has no user {name}"))
    } else if found.is_some_and(|user| !group.is_empty() && user.groups.is_empty()) && lacks("etc/group") {
        let message = format!("unable to find group {group}: no matching entries in group file");
        (FaultKind::User, message, format!("/etc/group of the image has no group {group}"))
    } else if is_relative {
        let message = "Cwd must be an absolute path".to_owned();
        (FaultKind::Directory, message, format!("the working directory {own} does not begin with /"))
    } else if runner.rootfs.open(directory).is_ok() {
        let message = format!("mkdir {shown}: not a directory");
        (FaultKind::Directory, message, format!("the working directory {shown} is a file"))
    } else {
        return None;
    };
    let program = config.entrypoint.first().or(config.command.first()).cloned().unwrap_or_default();
    Some(StartFault { message, ..StartFault::new(kind, &program, None, cause) })
}
