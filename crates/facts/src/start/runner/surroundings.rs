//! The files and programs around a script, which are those of the image.

use std::rc::Rc;

use model::{ImagePath, is_among};
use shell::{Field, FileKind, ProgramCall, ShellGap, ShellKind, ShellSource, ShellState, Surroundings};

use super::super::is_idle;
use super::{Outcome, Runner, SETTLE, Start, conda, path_cost};

/// Words that a shell may know itself, whichever it is. Where they are not found, as where a program that does nothing of
/// interest is not, the script is taken to go on.
const OF_SHELLS: &str = "command builtin type source let local declare typeset shopt alias unalias kill times caller \
    compgen compopt dirs fc logout suspend coproc select time function [[ (( enable help popd pushd history jobs bind \
    ulimit umask getopts hash wait exec eval test [ mapfile readarray chdir print whence setopt";

/// Those of dash.
const OF_DASH: &str = "command type alias unalias kill times fc jobs bg fg ulimit umask getopts hash wait exec eval test [ \
    chdir local";

/// Variables that schedulers, launchers and users of jobs set, by their beginnings.
const GIVEN: &[&str] = &[
    "MASTER_",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_",
    "NODE",
    "NNODES",
    "NPROC",
    "NUM_",
    "NGPU",
    "GPUS",
    "SLURM_",
    "OMPI_",
    "PMI",
    "PET_",
    "JOB",
    "POD",
    "KUBERNETES_",
    "HOST",
    "USER",
    "WANDB_",
    "HF_",
    "AWS_",
];

impl Surroundings for Runner<'_> {
    fn spend(&mut self, steps: usize) -> bool {
        self.steps = self.steps.saturating_sub(steps);
        self.steps > 0
    }

    fn text(&mut self, path: &str) -> Option<Result<ShellSource, ShellGap>> {
        let text = self.read(&ImagePath::from(path))?;
        Some(text.map(|text| ShellSource { name: path.to_owned(), text }))
    }

    fn kind(&mut self, path: &str) -> Result<Option<FileKind>, ShellGap> {
        let image_path = ImagePath::from(path);
        if let Ok((_, file)) = self.rootfs.open(&image_path) {
            let is_executable = self.may_execute(&image_path)?;
            return Ok(Some(FileKind::File { is_empty: file.size == 0, is_executable }));
        }
        if self.rootfs.is_directory(&image_path) {
            return Ok(Some(FileKind::Directory));
        }
        if self.rootfs.exists(&image_path) {
            return Ok(Some(FileKind::Other));
        }
        if is_of_runtime(path) {
            return Err(of_machine(path));
        }
        Ok(None)
    }

    fn names(&mut self, folder: &str) -> Result<Vec<String>, ShellGap> {
        if is_of_runtime(folder) {
            return Err(of_machine(folder));
        }
        let folder = ImagePath::from(folder);
        let names = self.rootfs.names(&folder);
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    fn program(&mut self, name: &str, state: &ShellState) -> Result<Option<String>, ShellGap> {
        self.spend(path_cost(state));
        let found = self.locate(name, state)?;
        if found.is_none() && is_of_runtime(name) {
            return Err(of_machine(name));
        }
        Ok(found.map(|path| path.to_string()))
    }

    fn resolve(&mut self, path: &str) -> Result<String, ShellGap> {
        let image_path = ImagePath::from(path);
        let real = self.rootfs.open(&image_path).map(|(real, _)| real).ok();
        let real = real.or_else(|| self.rootfs.real_directory(&image_path));
        real.map(|real| real.to_string())
            .ok_or_else(|| ShellGap::new(format!("{path} does not exist in the image")).settled_by(SETTLE))
    }

    fn stand_in(&mut self, words: &[Field], state: &ShellState) -> Option<Result<String, ShellGap>> {
        if let ([Ok(program), Ok(option)], Ok(user)) = (words, &self.user)
            && program == "id"
            && option == "-u"
            && let Some(id) = user.id
        {
            return Some(Ok(format!("echo {id}")));
        }
        // A program of Ubuntu's profile: it prints settings of the locale alone.
        if matches!(words, [Ok(program), ..] if program == "/usr/bin/locale-check") {
            return Some(Ok("true".to_owned()));
        }
        conda::stand_in(self, words, state)
    }

    fn is_given(&mut self, name: &str, (file, line): &(Rc<str>, usize)) -> bool {
        let is_folder = name.starts_with('/');
        let is_secret = name.ends_with("_TOKEN") || name.ends_with("_KEY");
        let is_given = if is_folder {
            self.is_of_job
        } else {
            is_secret || GIVEN.iter().any(|beginning| name.starts_with(beginning))
        };
        if is_given {
            let does = if is_folder { "mounts" } else { "sets" };
            self.assumed.insert(format!("the run {does} {name}, which {file} needs at line {line}"));
        }
        is_given
    }

    fn write(&mut self, path: &str, (file, line): &(Rc<str>, usize)) {
        self.note_written(path, &format!("{file}, line {line}"));
    }

    fn run(&mut self, call: &ProgramCall<'_>, state: &ShellState) -> Outcome {
        let (file, line) = &call.place;
        let place = format!("{file}, line {line}");
        if let Some(Ok(name)) = call.words.first()
            && (is_among(name, if state.kind == ShellKind::Dash { OF_DASH } else { OF_SHELLS })
                || is_idle(&ImagePath::from(name.as_str())))
            && self.locate(name, state)?.is_none()
        {
            return Ok(None);
        }
        let installs = self.note_change(call.words, state, &place);
        if installs
            && let Some(Ok(name)) = call.words.first()
            && self.locate(name, state)?.is_some()
        {
            return Ok(None);
        }
        let name = call.name.cloned();
        let start = Start { words: call.words, has_input: call.has_input, replaces: call.replaces, place, name };
        self.start(&start, state)
    }
}

/// True for files that the kernel or a container runtime provides.
pub(super) fn is_of_runtime(path: &str) -> bool {
    const FOLDERS: &[&str] =
        &["/proc", "/sys", "/dev", "/run", "/var/run", "/tmp", "/usr/local/nvidia", "/.dockerenv", "/.singularity.d"];
    let base = path.rsplit('/').next().unwrap_or_default();
    let is_below =
        |folder: &&str| path.strip_prefix(*folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    FOLDERS.iter().any(is_below) || ["nvidia-", "libcuda.", "libnvidia-"].iter().any(|prefix| base.starts_with(prefix))
}

pub(super) fn of_machine(path: &str) -> ShellGap {
    ShellGap::new(format!("{path} depends on the machine that runs the container")).settled_by(SETTLE)
}
