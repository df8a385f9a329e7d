//! Step-by-step account of how the dynamic loader finds a library: in the process that imports torch, or in another
//! program of the image.

use std::rc::Rc;

use crate::model::{Fact, Gap, ImagePath};
use crate::rootfs::loader::{CpuLevel, Loader, Process, Stop, elf};

pub use crate::rootfs::loader::{LoaderSearch, Route, SearchEnd, SearchStep};

use super::linker::settings;
use super::torch::Import;
use super::{Context, FactInputs};

/// A request for an explanation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Names as passed to the loader, such as `libnccl.so.2`, and paths of files in the image.
    pub names: Vec<String>,
    /// The program to start, instead of the Python that imports torch.
    pub program: Option<ImagePath>,
    /// The object that would call dlopen for a name that no object requests.
    pub caller: Option<ImagePath>,
}

/// One process and its searches.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Account {
    /// The program.
    pub program: ImagePath,
    /// True when the process imports torch.
    pub imports_torch: bool,
    /// The CPU level, if another level gives another result.
    pub level: Option<CpuLevel>,
    /// Why the process fails: the loader's message.
    pub failure: Option<String>,
    /// Mapped files without the program, sorted.
    pub mapped: Vec<ImagePath>,
    /// One explanation for each requested name.
    pub answers: Vec<NameExplanation>,
}

/// The searches for one name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NameExplanation {
    /// The name as requested.
    pub name: String,
    /// Every search for it, in the order of the process.
    pub searches: Vec<LoaderSearch>,
    /// True when no object requests the name, so the search is a hypothetical dlopen.
    pub is_supposed: bool,
    /// The file that the search finds.
    pub found: Option<ImagePath>,
    /// Why the result of the search is unknown.
    pub gap: Option<Gap>,
}

/// Follows the loader: returns one account, or one per CPU level when the levels differ.
pub fn explain(world: &FactInputs<'_>, question: &Question) -> Result<Vec<Account>, Gap> {
    let Some(program) = &question.program else {
        let context = Context::new(world);
        return match context.loader.imports() {
            Fact::Unknown(gap) => Err(gap.clone()),
            Fact::Absent => Err(Gap::new("there is no torch in the image; choose another program with --program")),
            Fact::Seen { value: imports, .. } => {
                let account = |import: &Import<'_>| {
                    let account = account(world, question, &import.process)?;
                    Ok(Account { imports_torch: context.subject.is_none(), failure: import.failure.clone(), ..account })
                };
                let accounts = imports.iter().map(account).collect::<Result<_, Gap>>()?;
                Ok(parted(accounts))
            }
        };
    };
    let loader = Rc::new(Loader::new(world.rootfs, settings(world.config)));
    let mut accounts = Vec::new();
    for level in CpuLevel::ALL {
        let process = Process::start(&loader, level, program)?;
        accounts.push(account(world, question, &process)?);
        if !process.depends_on_level() {
            break;
        }
    }
    Ok(parted(accounts))
}

/// Labels the accounts with levels only when they differ.
fn parted(mut accounts: Vec<Account>) -> Vec<Account> {
    if let [first, second] = accounts.as_slice()
        && first == second
    {
        accounts.truncate(1);
    }
    if accounts.len() > 1 {
        accounts.iter_mut().zip(CpuLevel::ALL).for_each(|(account, level)| account.level = Some(level));
    }
    accounts
}

fn account(world: &FactInputs<'_>, question: &Question, process: &Process<'_>) -> Result<Account, Gap> {
    let objects = process.objects();
    let mut mapped: Vec<_> = objects.iter().skip(1).map(|object| object.path.clone()).collect();
    mapped.sort();
    let answers = question.names.iter().map(|name| answer(world, question, process, name));
    Ok(Account {
        program: objects.first().map(|object| object.path.clone()).unwrap_or_default(),
        imports_torch: false,
        level: None,
        failure: process.failure().map(ToOwned::to_owned),
        mapped,
        answers: answers.collect::<Result<_, _>>()?,
    })
}

fn answer(
    world: &FactInputs<'_>,
    question: &Question,
    process: &Process<'_>,
    name: &str,
) -> Result<NameExplanation, Gap> {
    // The loader may know a file by its path, its file name or its DT_SONAME.
    let file = name.contains('/').then(|| world.rootfs.open(&ImagePath::from(name)).ok()).flatten();
    let soname = file.as_ref().and_then(|(_, file)| elf(file)?.soname.clone());
    let own = name.rsplit('/').next().unwrap_or(name).to_owned();
    let path = file.map(|(path, _)| path);
    let is_meant = |search: &&LoaderSearch| {
        search.name == name
            || (path.is_some() && search.found == path)
            || (name.contains('/') && (search.name == own || Some(&search.name) == soname.as_ref()))
    };
    let searches: Vec<_> = process.searches().iter().filter(is_meant).cloned().collect();
    let mut answer = NameExplanation {
        name: name.to_owned(),
        found: searches.iter().find_map(|search| search.found.clone()),
        is_supposed: searches.is_empty() || question.caller.is_some(),
        searches,
        gap: None,
    };
    if answer.is_supposed {
        let caller = caller(world, question, process)?;
        let wanted = if question.caller.is_some() { name } else { soname.as_deref().unwrap_or(name) };
        let mut process = process.fork();
        let opened = process.dlopen(wanted, caller);
        answer.searches = process.searches().first().cloned().into_iter().collect();
        answer.found = match opened {
            Ok(id) => process.objects().get(id).map(|object| object.path.clone()),
            Err(Stop::Fails(_)) => None,
            Err(Stop::Unknown(gap)) => {
                answer.gap = Some(gap);
                None
            }
        };
    }
    Ok(answer)
}

/// The object that calls dlopen: the one that the user names, else NCCL, else torch's libraries, else the program.
fn caller(world: &FactInputs<'_>, question: &Question, process: &Process<'_>) -> Result<usize, Gap> {
    let Some(path) = &question.caller else {
        let usual = ["libnccl.so.2", "libtorch_cuda.so", "libtorch_cpu.so"];
        return Ok(usual.iter().find_map(|name| process.named(name)).unwrap_or(0));
    };
    let real = world.rootfs.open(path).map_or_else(|_| path.clone(), |(real, _)| real);
    let object = process.objects().iter().position(|object| object.path == real);
    object.ok_or_else(|| Gap::new(format!("{path} is not mapped by this process, so it cannot call dlopen")))
}
