//! What an engine says of a command that it cannot execute (Go, `os/exec`; runc, `libcontainer/standard_init_linux.go`;
//! execve(2)).

use model::ImagePath;
use shell::ShellState;

use super::Runner;
use super::lookup::base_is_python;
use super::script::interpreter;

/// Interpreters of interpreters that a kernel follows.
const DEPTH: usize = 4;

/// The message about a command; `None` if it can be executed, or that is unknown.
pub(in crate::start) fn refusal(runner: &Runner<'_>, words: &[String], shell: &ShellState) -> Option<String> {
    let first = words.first()?;
    let Some(path) = runner.locate(first, shell).ok()? else { return Some(not_found(runner, first, shell)) };
    unloadable(runner, &path).map(|why| format!("exec {first}: {why}"))
}

fn not_found(runner: &Runner<'_>, first: &str, shell: &ShellState) -> String {
    if !first.contains('/') {
        return format!("exec: \"{first}\": executable file not found in $PATH");
    }
    let directory = shell.directory.as_deref().unwrap_or("/");
    let path = ImagePath::from(directory).join(first.as_bytes());
    let why = if runner.rootfs.is_directory(&path) {
        "is a directory".to_owned()
    } else if runner.rootfs.exists(&path) {
        "permission denied".to_owned()
    } else {
        format!("stat {first}: no such file or directory")
    };
    format!("exec: \"{first}\": {why}")
}

/// Why a kernel does not load a file that the user may execute.
fn unloadable(runner: &Runner<'_>, path: &ImagePath) -> Option<&'static str> {
    let mut path = path.clone();
    for _ in 0..DEPTH {
        let (real, file) = runner.rootfs.open(&path).ok()?;
        if runner.is_program(&real) {
            return None;
        }
        let text = runner.read(&path)?.ok()?;
        let Some((program, _)) = interpreter(&text) else {
            // A program whose ELF header is not read has no text.
            return (file.size == 0 || !text.contains('\0')).then_some("exec format error");
        };
        path = ImagePath::from(program);
        if runner.rootfs.open(&path).is_err() {
            return Some("no such file or directory");
        }
        // The import says whose mode is to blame for an interpreter of Python.
        if !runner.may_execute(&path).ok()? && !base_is_python(&path) {
            return Some("permission denied");
        }
    }
    None
}
