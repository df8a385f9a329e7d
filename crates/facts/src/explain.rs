//! Step-by-step account of how the dynamic loader finds a library: in the process that imports torch, or in another
//! program of the image.

use std::rc::Rc;

use model::{Fact, Gap, ImagePath};
use rootfs::RootFile;
use rootfs::loader::{CpuLevel, DlopenMode, Loader, Process, Stop, elf};

pub use rootfs::loader::{LoaderSearch, Route, SearchEnd, SearchStep};

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
pub struct NameExplanation {
    /// The name as requested.
    pub name: String,
    /// Every search for it, in the order of the process.
    pub searches: Vec<LoaderSearch>,
    /// True when no object requests the name, so the search is a hypothetical dlopen.
    pub is_supposed: bool,
    /// The file that the search finds.
    pub found: Option<ImagePath>,
    /// True when the process fails before a library that needs it is mapped; the search is the one of that library.
    pub is_later: bool,
    /// The message of dlerror if the dlopen fails.
    pub error: Option<String>,
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
                    let account = account(world, question, &import.process, import.failure.as_deref())?;
                    Ok(Account { imports_torch: context.subject.is_none(), ..account })
                };
                let accounts = imports.iter().map(account).collect::<Result<_, Gap>>()?;
                Ok(by_process(accounts))
            }
        };
    };
    let loader = Rc::new(Loader::new(world.rootfs, settings(world.config)));
    let mut accounts = Vec::new();
    for level in CpuLevel::ALL {
        let process = Process::start(&loader, level, program)?;
        accounts.push(account(world, question, &process, process.failure())?);
        if !process.depends_on_level() {
            break;
        }
    }
    Ok(by_process(accounts))
}

/// Labels the accounts with levels only when they differ.
fn by_process(mut accounts: Vec<Account>) -> Vec<Account> {
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

fn account(
    world: &FactInputs<'_>,
    question: &Question,
    process: &Process<'_>,
    failure: Option<&str>,
) -> Result<Account, Gap> {
    let objects = process.objects();
    let mut mapped: Vec<_> = objects.iter().skip(1).map(|object| object.path.clone()).collect();
    mapped.sort();
    let answers = question.names.iter().map(|name| answer(world, question, process, failure, name));
    Ok(Account {
        program: objects.first().map(|object| object.path.clone()).unwrap_or_default(),
        imports_torch: false,
        level: None,
        failure: failure.map(ToOwned::to_owned),
        mapped,
        answers: answers.collect::<Result<_, _>>()?,
    })
}

fn answer(
    world: &FactInputs<'_>,
    question: &Question,
    process: &Process<'_>,
    failure: Option<&str>,
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
        is_later: false,
        error: None,
        gap: None,
    };
    let has_failed = failure.is_some() && question.caller.is_none();
    let later =
        if answer.is_supposed && has_failed { needed_later(world, soname.as_deref().unwrap_or(name))? } else { None };
    if let Some((searches, found)) = later {
        (answer.searches, answer.found, answer.is_supposed, answer.is_later) = (searches, found, false, true);
    } else if answer.is_supposed {
        let caller = caller(world, question, process)?;
        let wanted = if question.caller.is_some() { name } else { soname.as_deref().unwrap_or(name) };
        let mut process = process.fork();
        let opened = process.dlopen(wanted, caller, DlopenMode::NOW);
        answer.searches = process.searches().first().cloned().into_iter().collect();
        answer.found = match opened {
            Ok(id) => process.objects().get(id).map(|object| object.path.clone()),
            Err(Stop::Fails(why)) => {
                answer.error = Some(why);
                None
            }
            Err(Stop::Unknown(gap)) => {
                answer.gap = Some(gap);
                None
            }
        };
    }
    Ok(answer)
}

/// The searches of a library that is not mapped, and the file that they find.
type LaterSearch = (Vec<LoaderSearch>, Option<ImagePath>);

/// The search of the first library in the image that needs this soname, torch's libraries first.
fn needed_later(world: &FactInputs<'_>, soname: &str) -> Result<Option<LaterSearch>, Gap> {
    let needs = |(path, file): (&ImagePath, RootFile<'_>)| {
        let needs = elf(&file)?.needed.iter().any(|needed| needed == soname);
        needs.then(|| (!path.file_name().starts_with(b"libtorch"), path.clone()))
    };
    let Some((_, path)) = world.rootfs.read_files().filter_map(needs).min() else { return Ok(None) };
    let Ok((path, file)) = world.rootfs.open(&path) else { return Ok(None) };
    let Some(object) = elf(&file) else { return Ok(None) };
    let loader = Rc::new(Loader::new(world.rootfs, settings(world.config)));
    let (searches, found) = loader.search(soname, &path, object)?;
    Ok(Some((searches, found.map(|bound| bound.path))))
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
