//! Queries to the simulated loader, on behalf of an object in the process that imported torch, or is judged in its place,
//! or of an object with no known process.

use std::rc::Rc;

use model::{ElfInfo, Fact, Gap, ImageConfig, ImagePath};
use rootfs::loader::{Bound, CpuLevel, DlopenMode, Loader, LoaderSettings, Process, Stop};

use super::torch::Import;

/// The loader of the image, and the process that has imported torch or is judged in its place.
pub(super) struct Linker<'a> {
    loader: Rc<Loader<'a>>,
    /// One process, or one per CPU level when the levels differ.
    imports: Fact<Vec<Import<'a>>>,
    /// Why the variables that the loader reads are unknown.
    gap: Option<Gap>,
}

impl<'a> Linker<'a> {
    /// Creates it for the process that `imports` determines.
    pub(super) fn new(
        loader: Rc<Loader<'a>>,
        config: Option<&ImageConfig>,
        imports: impl FnOnce() -> Fact<Vec<Import<'a>>>,
    ) -> Self {
        let gap =
            config.and_then(|config| config.unknown.among(&["LD_LIBRARY_PATH", "LD_PRELOAD", "LD_BIND_NOW"])).cloned();
        let imports = match &gap {
            Some(gap) => Fact::Unknown(gap.clone()),
            None => imports(),
        };
        Self { loader, imports, gap }
    }

    /// Resolves a name as dlopen would for `object`, the file at `origin`: in the process that imported torch if the
    /// object is mapped there, else as if the object were a program. Returns `None` when nothing is found.
    pub(super) fn find(&self, name: &str, origin: &ImagePath, object: &ElfInfo) -> Result<Option<Bound>, Gap> {
        if let Some(gap) = &self.gap {
            return Err(gap.clone());
        }
        let mut answers = self.imports.value().into_iter().flatten().filter_map(|import| import.dlopen(name, origin));
        let Some(first) = answers.next() else { return self.loader.find(name, origin, object) };
        if answers.all(|answer| answer == first) {
            return first;
        }
        Err(Gap::new(format!("{name}: the file depends on the CPU level")))
    }

    /// Follows a chain of dlopen calls in the process that imported torch. The object at `caller` makes the first call;
    /// each opened object makes the next one. Returns the path of the last object, or the message of dlerror; absent
    /// when no such process or object is known.
    pub(super) fn dlopen(&self, caller: &ImagePath, names: &[&str]) -> Fact<Result<ImagePath, String>> {
        self.imports.as_ref().and_then(|imports, at| {
            let mut answer = None;
            for import in imports {
                let mut process = import.process.fork();
                let Some(mut by) = process.objects().iter().position(|object| object.path == *caller) else {
                    return Fact::Absent;
                };
                let opened =
                    names.iter().try_for_each(|name| process.dlopen(name, by, DlopenMode::NOW).map(|id| by = id));
                let this = match opened {
                    Ok(()) => Ok(process.objects().get(by).map_or_else(ImagePath::root, |object| object.path.clone())),
                    Err(Stop::Fails(why)) => Err(why),
                    Err(Stop::Unknown(gap)) => return Fact::Unknown(gap),
                };
                if answer.as_ref().is_some_and(|other| *other != this) {
                    let name = names.last().copied().unwrap_or_default();
                    return Fact::Unknown(Gap::new(format!("{name}: the file depends on the CPU level")));
                }
                answer = Some(this);
            }
            answer.map_or(Fact::Absent, |value| Fact::Seen { value, at })
        })
    }

    /// Opens a file, and then another from it, in a process of which nothing else is known. Returns the message of dlerror
    /// if the second fails; unknown if the first does, since the program that opens it may have libraries that it needs.
    pub(super) fn dlopen_alone(&self, first: &str, object: &ElfInfo, second: &str) -> Result<Result<(), String>, Gap> {
        if let Some(gap) = &self.gap {
            return Err(gap.clone());
        }
        let outcomes = CpuLevel::ALL.map(|level| {
            let mut process = Process::of_unknown_program(&self.loader, level, object);
            let id = match process.dlopen(first, 0, DlopenMode::NOW) {
                Ok(id) => id,
                Err(Stop::Unknown(gap)) => return Err(gap),
                Err(Stop::Fails(why)) => return Err(Gap::new(format!("what opens {first} is unknown: {why}"))),
            };
            match process.dlopen(second, id, DlopenMode::NOW) {
                Ok(_) => Ok(Ok(())),
                Err(Stop::Fails(why)) => Ok(Err(why)),
                Err(Stop::Unknown(gap)) => Err(gap),
            }
        });
        let [one, other] = outcomes;
        if one == other { one } else { Err(Gap::new(format!("{second}: the file depends on the CPU level"))) }
    }

    /// The process that imported torch; one per CPU level when the levels differ.
    pub(super) fn imports(&self) -> &Fact<Vec<Import<'a>>> {
        &self.imports
    }

    /// A property of the import; unknown if CPU levels disagree on it.
    pub(super) fn agreed<T: PartialEq>(&self, ask: impl Fn(&Import<'a>) -> T) -> Fact<T> {
        self.imports.as_ref().and_then(|imports, at| {
            let mut answers = imports.iter().map(ask);
            let Some(first) = answers.next() else { return Fact::Absent };
            if answers.all(|answer| answer == first) {
                return Fact::Seen { value: first, at };
            }
            let levels: Vec<_> = imports.iter().map(|import| import.process.level().to_string()).collect();
            let why = format!("processors of levels {} load different files", levels.join(" and "));
            Fact::Unknown(Gap::new(why).settled_by("the image has libraries in glibc-hwcaps directories"))
        })
    }
}

/// Loader settings from the image's environment.
pub(super) fn settings(config: Option<&ImageConfig>) -> LoaderSettings {
    let variable = |name: &str| config.and_then(|config| config.environment.get(name).cloned());
    LoaderSettings {
        library_path: variable("LD_LIBRARY_PATH"),
        preload: variable("LD_PRELOAD"),
        bind_now: variable("LD_BIND_NOW").is_some_and(|value| !value.is_empty()),
        working_directory: config
            .filter(|config| config.unknown.user.is_none())
            .map(|config| ImagePath::from(config.working_directory.as_str())),
        credentials: None,
        runs_ldconfig: false,
    }
}
