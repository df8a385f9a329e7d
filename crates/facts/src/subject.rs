//! The subject of a check that is no Python with torch: a compiled program that uses NCCL, such as those of nccl-tests
//! or one with libtorch; or NCCL alone, in an image without torch whose command does not show what uses it.

use std::rc::Rc;

use model::{Fact, Found, Gap, ImagePath};
use rootfs::loader::{CpuLevel, LoadedObject, Loader, Process, Requester};
use rootfs::{RootFile, RootFs};

use super::start::StartedProgram;
use super::torch::{Import, Installation};
use super::{Context, Facts, key};

/// What is judged in place of `import torch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CheckSubject {
    /// A compiled program that uses NCCL or libtorch.
    Program(ImagePath),
    /// NCCL, whatever uses it.
    Nccl,
}

impl CheckSubject {
    /// The subject of an image whose command starts this program; `None` if it is `import torch`. `loader` is that of
    /// the program.
    pub(super) fn find(
        rootfs: &RootFs,
        program: Option<&StartedProgram>,
        loader: &Rc<Loader<'_>>,
        torch: &Installation,
    ) -> Option<Self> {
        if let Some(StartedProgram::Compiled(path, _)) = program
            && let Some(program) = Self::of_program(loader, path)
        {
            return Some(program);
        }
        let has_nccl = || rootfs.read_files().any(|(_, file)| has_nccl(&file));
        let is_python = matches!(program, Some(StartedProgram::Python));
        (torch.all.is_empty() && !is_python && has_nccl()).then_some(Self::Nccl)
    }

    /// The compiled program at this path, if it uses NCCL or libtorch: its dependencies show it, or its own code.
    fn of_program(loader: &Rc<Loader<'_>>, path: &ImagePath) -> Option<Self> {
        let process = Process::start(loader, CpuLevel::V3, path).ok()?;
        let uses = |object: &LoadedObject<'_>| {
            let is_wanted = |name: &String| name.starts_with("libnccl.so") || name.starts_with("libtorch");
            object.elf.needed.iter().any(is_wanted) || object.file.as_ref().is_some_and(has_nccl)
        };
        process.objects().iter().any(uses).then(|| Self::Program(path.clone()))
    }

    /// The program's process, on all CPU levels; one process if the levels agree. Absent for NCCL alone.
    pub(super) fn processes<'a>(&self, loader: &Rc<Loader<'a>>) -> Fact<Vec<Import<'a>>> {
        let Self::Program(path) = self else { return Fact::Absent };
        let mut processes = Vec::new();
        for level in CpuLevel::ALL {
            let process = match Process::start(loader, level, path) {
                Ok(process) => process,
                Err(gap) => return Fact::Unknown(gap),
            };
            let depends_on_level = process.depends_on_level();
            processes.push(Import::of_program(process));
            if !depends_on_level {
                break;
            }
        }
        Fact::seen(processes, [])
    }

    fn name(&self) -> String {
        match self {
            Self::Program(path) => format!("program {path}, which the image starts and which does not import torch"),
            Self::Nccl => {
                "NCCL alone: there is no torch, and the image's command does not show what uses NCCL".to_owned()
            }
        }
    }
}

fn has_nccl(file: &RootFile<'_>) -> bool {
    file.found.iter().any(|found| matches!(found, Ok(Found::Nccl(_))))
}

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let site = |path: &ImagePath| context.rootfs.open(path).ok().map(|(real, file)| file.site(&real, None));
    let program = match &context.subject {
        Some(CheckSubject::Program(path)) => Fact::seen(path.clone(), site(path)),
        Some(CheckSubject::Nccl) | None => Fact::Absent,
    };
    let name = context.subject.as_ref().map_or(Fact::Absent, |subject| Fact::Seen {
        value: subject.name(),
        at: program.value().and_then(site).into_iter().collect(),
    });
    facts.insert(key::SUBJECT_NAME, name);
    let error = program.clone().and_then(|_, at| {
        let failure = context.loader.agreed(|process| process.failure.clone());
        failure.and_then(|failure, _| failure.map_or(Fact::Absent, |value| Fact::Seen { value, at }))
    });
    let loaded = program.clone().and_then(|path, _| match &error {
        Fact::Seen { value, .. } => Fact::Unknown(Gap::new(format!("{path} does not start: {value}"))),
        Fact::Unknown(gap) => Fact::Unknown(gap.clone()),
        Fact::Absent => context.loader.agreed(mapped),
    });
    facts.insert(key::SUBJECT_PROGRAM, program);
    facts.insert(key::SUBJECT_LOADED, loaded);
    facts.insert(key::SUBJECT_ERROR, error);
}

/// The files that the program maps before its first instruction, sorted.
fn mapped(process: &Import<'_>) -> Vec<String> {
    let libraries = process.objects().filter(|object| object.asked != Requester::Program);
    let mut paths: Vec<_> = libraries.map(|object| object.path.to_string()).collect();
    paths.sort();
    paths.dedup();
    paths
}

#[cfg(test)]
mod tests;
