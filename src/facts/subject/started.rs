//! The program that the image starts, as far as the first word of its command shows it.

use crate::model::{ImageConfig, ImagePath};
use crate::rootfs::RootFs;
use crate::rootfs::loader::elf;

/// `PATH` that container runtimes set if the image does not.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Programs that start another one.
const LAUNCHERS: &str = "sh bash dash zsh busybox env tini dumb-init gosu su-exec catatonit mpirun srun micromamba";

/// Words of commands that run Python.
const PYTHON: [&str; 6] = ["python", "torchrun", "accelerate", "deepspeed", "conda", "uv"];

/// What an image starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::facts) enum StartedProgram {
    /// A compiled program, after links.
    Program(ImagePath),
    /// A Python program.
    Python,
    /// A shell, a script, or nothing.
    Unknown,
}

/// Reads the command of an image.
pub(super) fn started(rootfs: &RootFs, config: Option<&ImageConfig>) -> StartedProgram {
    let Some(config) = config.filter(|config| config.unknown.command.is_none()) else { return StartedProgram::Unknown };
    let words: Vec<&str> = config.entrypoint.iter().chain(&config.command).map(String::as_str).collect();
    if words.iter().any(|word| PYTHON.iter().any(|name| word.contains(name))) {
        return StartedProgram::Python;
    }
    let Some((path, file)) = words.first().and_then(|word| find(rootfs, config, word)) else {
        return StartedProgram::Unknown;
    };
    let name = words.first().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    let is_program = rootfs.open(&file).is_ok_and(|(_, file)| elf(&file).is_some());
    if is_program && LAUNCHERS.split(' ').all(|launcher| launcher != name) {
        StartedProgram::Program(path)
    } else {
        StartedProgram::Unknown
    }
}

/// The file that a word leads to, after links and as it is spelled: a path directly, a name through `PATH`.
fn find(rootfs: &RootFs, config: &ImageConfig, word: &str) -> Option<(ImagePath, ImagePath)> {
    let real = |path: ImagePath| rootfs.open(&path).ok().map(|(real, _)| (real, path));
    if word.contains('/') {
        return real(ImagePath::from(config.working_directory.as_str()).join(word.as_bytes()));
    }
    let path = config.environment.get("PATH").map_or(DEFAULT_PATH, String::as_str);
    path.split(':').find_map(|folder| real(ImagePath::from(folder).join(word.as_bytes())))
}
