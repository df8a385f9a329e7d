//! Compilers and runners of the compiled programs.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A compiler for one machine, and the runner of its programs.
pub(crate) struct Toolchain {
    pub(crate) machine: &'static str,
    compiler: &'static str,
    /// Command before a program's path; empty if this machine runs it natively.
    runner: &'static [&'static str],
}

const TOOLCHAINS: &[Toolchain] = if cfg!(target_arch = "aarch64") {
    &[
        Toolchain { machine: "aarch64", compiler: "g++", runner: &[] },
        Toolchain {
            machine: "x86_64",
            compiler: "x86_64-linux-gnu-g++",
            runner: &["qemu-x86_64", "-L", "/usr/x86_64-linux-gnu"],
        },
    ]
} else {
    &[
        Toolchain { machine: "x86_64", compiler: "g++", runner: &[] },
        Toolchain {
            machine: "aarch64",
            compiler: "aarch64-linux-gnu-g++",
            runner: &["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"],
        },
    ]
};

/// The toolchain for a machine, if it is completely installed. This machine's own toolchain is required.
pub(crate) fn toolchain(machine: &str) -> Option<&'static Toolchain> {
    let toolchain = TOOLCHAINS.iter().find(|toolchain| toolchain.machine == machine).unwrap();
    let mut programs = [toolchain.compiler].into_iter().chain(toolchain.runner.first().copied());
    let Some(missing) = programs.find(|program| !is_installed(program)) else { return Some(toolchain) };
    assert!(!toolchain.runner.is_empty(), "{missing} is not installed");
    // The test harness would hide the output of `eprintln!`.
    let skipped = format!("SKIPPED: differential tests of {machine}: {missing} is not installed\n");
    std::io::stderr().write_all(skipped.as_bytes()).unwrap();
    None
}

#[expect(clippy::disallowed_methods, reason = "a differential test runs compilers and what they make")]
fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

fn is_installed(program: &str) -> bool {
    command(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The output of a command.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

impl Toolchain {
    /// Compiles a source to a shared library.
    #[expect(clippy::disallowed_methods, reason = "what a compiler has just written")]
    pub(crate) fn library(&self, source: &str, options: &[&str]) -> Library {
        let folder = tempfile::tempdir().unwrap();
        let code = folder.path().join("library.cc");
        let path = folder.path().join("library.so");
        fs::write(&code, source).unwrap();
        self.compile(&code, &path, &[&["-shared", "-fPIC"], options].concat());
        let bytes = fs::read(&path).unwrap();
        Library { bytes, path, _folder: folder }
    }

    /// Compiles a program that calls the functions of a library and prints their results.
    pub(crate) fn driver(&self, source: &str, options: &[&str]) -> Driver {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential").join(source);
        self.compile(&source, &folder.path().join("driver"), &[options, &["-ldl"]].concat());
        Driver { runner: self.runner, folder }
    }

    fn compile(&self, source: &Path, target: &Path, options: &[&str]) {
        output(command(self.compiler).arg("-w").arg(source).args(options).arg("-o").arg(target));
    }
}

/// A compiled library.
pub(crate) struct Library {
    pub(crate) bytes: Vec<u8>,
    path: PathBuf,
    _folder: TempDir,
}

/// A compiled driver.
pub(crate) struct Driver {
    runner: &'static [&'static str],
    folder: TempDir,
}

impl Driver {
    /// The driver's output for a library.
    pub(crate) fn run(&self, library: &Library) -> String {
        let program = self.folder.path().join("driver");
        let mut words = self.runner.iter().map(OsStr::new).chain([program.as_os_str()]);
        output(command(words.next().unwrap()).args(words).arg(&library.path))
    }
}
