//! How the dynamic loader comes to a library, step by step: for the process that imports torch, or for another program of the
//! image.

use std::rc::Rc;

use crate::model::{Fact, Gap, ImagePath};
use crate::rootfs::loader::{CpuLevel, Loader, Process, Stop, elf};

pub use crate::rootfs::loader::{LoaderSearch, Route, SearchEnd, SearchStep};

use super::linker::settings;
use super::torch::Import;
use super::{Context, FactInputs};

/// What is to be explained.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Names as the loader is asked for them, such as `libnccl.so.2`, and paths of files in the image.
    pub names: Vec<String>,
    /// The program that is started, instead of the Python that imports torch.
    pub program: Option<ImagePath>,
    /// The object that would call dlopen where nobody asks for a name.
    pub caller: Option<ImagePath>,
}

/// One process, and the searches in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Account {
    /// What runs.
    pub program: ImagePath,
    /// Whether it imports torch.
    pub imports_torch: bool,
    /// The level of the processor, where another one makes a difference.
    pub level: Option<CpuLevel>,
    /// Why it fails, in the loader's words.
    pub failure: Option<String>,
    /// Files that are mapped, sorted, without the program.
    pub mapped: Vec<ImagePath>,
    /// What was asked, name by name.
    pub answers: Vec<NameExplanation>,
}

/// What happens with one name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NameExplanation {
    /// As it was asked.
    pub name: String,
    /// Every search for it, in the order of the process.
    pub searches: Vec<LoaderSearch>,
    /// Whether nobody asks for it, so that the search is the one that dlopen would make.
    pub is_supposed: bool,
    /// The file that it comes to.
    pub found: Option<ImagePath>,
    /// Why the search has no certain end.
    pub gap: Option<Gap>,
}

/// Follows the loader: one account, or one for each kind of processor that makes a difference.
pub fn explain(world: &FactInputs<'_>, question: &Question) -> Result<Vec<Account>, Gap> {
    let Some(program) = &question.program else {
        let context = Context::new(world);
        return match context.loader.imports() {
            Fact::Unknown(gap) => Err(gap.clone()),
            Fact::Absent => Err(Gap::new("there is no torch in the image; --program names what else may ask")),
            Fact::Seen { value: imports, .. } => {
                let account = |import: &Import<'_>| {
                    let account = account(world, question, &import.process)?;
                    Ok(Account { imports_torch: true, failure: import.failure.clone(), ..account })
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

/// Levels are told only where they make a difference.
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
    // A file is meant by whatever the loader may call it: its path, its own name, its DT_SONAME.
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
    object.ok_or_else(|| Gap::new(format!("{path} is not mapped by this process, and so cannot ask for anything")))
}
