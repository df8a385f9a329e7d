//! Facts about an image, from its merged file system and its configuration. Each module covers one area; [`key`]
//! defines the names and types of its facts.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files of this repository"))]

mod cuda;
mod culprit;
mod environment;
pub mod explain;
mod extension;
mod host;
mod image;
pub mod key;
pub mod launch;
mod linker;
pub mod machine;
mod map_entries;
mod nccl;
mod packages;
mod python;
mod rdma;
pub mod records;
mod settings;
mod start;
mod subject;
mod tables;
mod torch;
pub mod value;
pub mod words;

pub use environment::{VariableDescription, describe_variable, is_judged, variable_names};
pub use environment::{misread_values, takes_any};
pub use host::recorded::names::cpu_numbers;
pub use image::is_shown;
pub use start::{Handover, NoHandover, handover};
pub use tables::tables;

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::launch::Setting;
use model::{Fact, Gap, ImageConfig, ImagePath, concealed};
use rootfs::RootFs;
use rootfs::loader::{Loader, LoaderSettings};

use key::{Definition, FactTable, KEYS, Key};
use map_entries::MapEntries;
use value::FactType;

/// The code for each area of facts. What reads a fact comes after what inserts it: debug builds panic otherwise.
const PRODUCERS: &[fn(&Context<'_>, &mut Facts)] = &[
    image::produce,
    start::produce,
    subject::produce,
    python::produce,
    torch::produce,
    nccl::produce,
    environment::produce,
    cuda::produce,
    extension::produce,
    rdma::produce,
    host::absent,
];

/// Build options in the text of PyTorch's `macros.h`. Public only for fuzzing; otherwise they are part of the facts.
#[doc(hidden)]
pub fn header_options(header: &[u8]) -> Result<BTreeMap<String, String>, String> {
    torch::header_options(header)
}

/// Sources of all facts.
#[derive(Debug)]
pub struct FactInputs<'a> {
    /// The merged file system.
    pub rootfs: &'a RootFs,
    /// The image's configuration; `None` for an unpacked root file system, which has none.
    pub config: Option<&'a ImageConfig>,
    /// Variables that the job sets, in the order of their files; the configuration already includes those with a known
    /// value.
    pub launch: &'a [Setting],
}

/// Facts about an image, a host and a probe: typed by key, and in the form that rules and JSON use.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    table: Box<FactTable>,
    /// The untyped form of each inserted fact, by index; `table` has each of them too.
    forms: Vec<Option<Fact>>,
    /// The entries of maps that are known in part, by index.
    entries: BTreeMap<usize, MapEntries>,
    /// True, by index, for a fact that is not inserted yet. Reading one is a bug, which debug builds detect.
    owed: Vec<bool>,
}

/// No facts; every fact is absent.
impl Default for Facts {
    fn default() -> Self {
        Self {
            table: Box::new(FactTable::absent()),
            forms: vec![None; KEYS.len()],
            entries: BTreeMap::new(),
            owed: vec![false; KEYS.len()],
        }
    }
}

impl Facts {
    /// Determines every fact of [`key::KEYS`] about an image. Facts of a run are absent.
    pub fn collect(world: &FactInputs<'_>) -> Self {
        let mut facts = Self::default();
        let context = Context::new(world);
        for key in KEYS.iter().filter(|key| key.is_of_image()) {
            facts.set_owed(key, true);
        }
        for produce in PRODUCERS {
            produce(&context, &mut facts);
        }
        debug_assert!(!facts.owed.contains(&true), "nothing inserted {:?}", facts.owed().collect::<Vec<_>>());
        facts.settle();
        if let Some(gap) = &world.rootfs.unknown {
            facts.forget_files(gap);
        }
        facts
    }

    /// Makes every fact unknown that depends on files of the image. A layer with unknown content may have replaced any
    /// of them.
    fn forget_files(&mut self, gap: &Gap) {
        let depends = |key: &&'static Definition| {
            key.is_of_image() && !host::is_of_host(key) && !image::FROM_CONFIG.contains(key)
        };
        for key in KEYS.iter().copied().filter(depends) {
            self.insert_value(key, Fact::Unknown(gap.clone()));
        }
    }

    /// Makes facts that were never inserted unknown, so that they do not count as absent.
    fn settle(&mut self) {
        for key in self.owed().collect::<Vec<_>>() {
            self.insert_value(key, Fact::unknown("not determined"));
        }
    }

    fn owed(&self) -> impl Iterator<Item = &'static Definition> {
        KEYS.iter().copied().filter(|key| self.is_owed(key))
    }

    fn is_owed(&self, key: &Definition) -> bool {
        self.owed.get(key.index) == Some(&true)
    }

    fn set_owed(&mut self, key: &Definition, is_owed: bool) {
        if let Some(owed) = self.owed.get_mut(key.index) {
            *owed = is_owed;
        }
    }

    fn assert_is_produced(&self, key: &Definition) {
        debug_assert!(!self.is_owed(key), "{} is read before it is produced", key.name);
    }

    /// A fact; absent if it was never inserted.
    pub fn get<T>(&self, key: Key<T>) -> &Fact<T> {
        self.assert_is_produced(&key);
        self.table.get(key)
    }

    /// A fact in the form that rules and JSON use.
    pub fn view(&self, key: &Definition) -> &Fact {
        self.assert_is_produced(key);
        self.form(key).unwrap_or(&Fact::Absent)
    }

    /// Like [`Self::view`], with the certain entries of a map that is unknown as a whole.
    pub fn certain(&self, key: &Definition) -> &Fact {
        self.entries.get(&key.index).map_or_else(|| self.view(key), |entries| &entries.certain)
    }

    /// Why a fact is unknown, or one entry of a map.
    pub fn gap(&self, key: &Definition, entry: Option<&str>) -> Option<&Gap> {
        match (self.entries.get(&key.index), entry, self.view(key)) {
            (Some(entries), Some(name), _) => entries.gap(name),
            (Some(entries), None, _) => entries.any_gap(),
            (None, _, Fact::Unknown(gap)) => Some(gap),
            (None, _, _) => None,
        }
    }

    fn form(&self, key: &Definition) -> Option<&Fact> {
        self.forms.get(key.index)?.as_ref()
    }

    /// All inserted facts, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Fact)> {
        let mut keys: Vec<_> = KEYS.iter().filter_map(|key| Some((key.name, self.form(key)?))).collect();
        keys.sort_unstable_by_key(|(name, _)| *name);
        keys.into_iter()
    }

    /// Inserts a fact, replacing the previous one. Secrets in it are concealed: the texts of facts come from the image's
    /// configuration, its scripts and the job.
    pub fn insert<T: FactType>(&mut self, key: Key<T>, fact: Fact<T>) {
        let form = fact.as_ref().map(FactType::to_value);
        if let Some(shown) = form.value().and_then(concealed) {
            self.insert_value(key.definition, form.map(|_| shown));
        } else {
            self.insert_form(&key, form);
            self.table.set(key, fact);
        }
    }

    /// Inserts a fact whose type is not known statically: an example of a rule, or an absent or unknown fact. A value
    /// of the wrong type is a bug of the caller, and is not inserted.
    pub fn insert_value(&mut self, key: &'static Definition, fact: Fact) {
        let fact = fact.map(|value| concealed(&value).unwrap_or(value));
        let is_set = self.table.set_value(key, &fact);
        debug_assert!(is_set, "{} is not {}: {fact:?}", key.name, key.expected());
        if is_set {
            self.insert_form(key, fact);
        }
    }

    /// Returns true for facts about the bytes of an image: those of a launch or a log alone are about none.
    pub fn are_of_image(&self) -> bool {
        let of_launch = key::definitions![ENV_EFFECTIVE, LAUNCH_VARIABLES];
        let is_of_bytes = |key: &Definition| key.is_of_image() && !host::is_of_host(key) && !of_launch.contains(&key);
        KEYS.iter().any(|key| is_of_bytes(key) && self.form(key).is_some())
    }

    /// Adds the facts of a job that ran the image.
    #[must_use]
    pub fn with_job(mut self, job: &Self) -> Self {
        for key in KEYS.iter().copied().filter(|key| key.is_of_job()) {
            self.insert_value(key, job.view(key).clone());
        }
        self
    }

    /// Inserts a map of which some entries are unknown.
    fn insert_entries(&mut self, key: &'static Definition, mut entries: MapEntries) {
        entries.certain = entries.certain.map(|value| concealed(&value).unwrap_or(value));
        self.insert_value(key, entries.whole());
        self.entries.insert(key.index, entries);
    }

    fn insert_form(&mut self, key: &Definition, fact: Fact) {
        self.set_owed(key, false);
        self.entries.remove(&key.index);
        if let Some(form) = self.forms.get_mut(key.index) {
            *form = Some(fact);
        }
    }
}

/// Shared inputs of the areas, computed once.
struct Context<'a> {
    rootfs: &'a RootFs,
    config: Option<&'a ImageConfig>,
    launch: &'a [Setting],
    /// The process that the image starts.
    start: start::ImageStart,
    loader: linker::Linker<'a>,
    packages: packages::Packages,
    /// The scripts that login shells and `conda activate` source.
    shell_files: Vec<ImagePath>,
    python: Option<python::Python>,
    /// What is judged in place of `import torch`, if anything.
    subject: Option<subject::CheckSubject>,
    torch: torch::Installation,
}

impl<'a> Context<'a> {
    fn new(world: &FactInputs<'a>) -> Self {
        let rootfs = world.rootfs;
        let mut start = start::ImageStart::of(rootfs, world.config);
        let python = start.call.as_ref().and_then(|call| python::Python::of(rootfs, call));
        if let Some(python) = &python {
            start.change_variables(&python.changed);
        }
        let torch = torch::Installation::find(rootfs, python.as_ref());
        let user = match (&python, &start.user) {
            (Some(python), _) => python.call.state.user.as_ref().ok(),
            (None, user) => user.as_ref().ok(),
        };
        let credentials = user.and_then(start::ContainerUser::credentials);
        // A compiled program has other variables than a Python that the image may also start.
        let config = match &start.program {
            Some(start::StartedProgram::Compiled(_, config)) => Some(&**config),
            _ => start.config.as_ref(),
        };
        let loader_of = |config| {
            let credentials = credentials.clone();
            // NVIDIA's runtime runs ldconfig, and so does enroot's hook; Apptainer keeps the image's cache.
            let runs_ldconfig = !rootfs.is_directory(&ImagePath::from(".singularity.d"));
            let settings = linker::settings(config);
            Rc::new(Loader::new(rootfs, LoaderSettings { credentials, runs_ldconfig, ..settings }))
        };
        let loader = loader_of(config);
        let subject = subject::CheckSubject::find(rootfs, start.program.as_ref(), &loader, &torch);
        let (loader, config) = match &subject {
            Some(subject::CheckSubject::Program(_)) => (loader, config),
            _ => (loader_of(start.config.as_ref()), start.config.as_ref()),
        };
        // A torch that the subject does not import is not judged.
        let torch = if subject.is_some() { torch::Installation::none() } else { torch };
        let imports = || match &subject {
            Some(subject) => subject.processes(&loader),
            None => torch::import(rootfs, config, &loader, python.as_ref(), &torch),
        };
        Self {
            rootfs,
            config: world.config,
            launch: world.launch,
            loader: linker::Linker::new(Rc::clone(&loader), config, imports),
            packages: packages::Packages::read(rootfs),
            shell_files: settings::shell_files(rootfs),
            subject,
            torch,
            python,
            start,
        }
    }
}

impl Context<'_> {
    /// The user of the process that the image starts, or why it is unknown.
    fn job_user(&self) -> &Result<start::ContainerUser, Gap> {
        self.python.as_ref().map_or(&self.start.user, |python| &python.call.state.user)
    }

    /// The gap that remains when the loader finds no library but torch may: on failure, `torch/__init__.py` loads the
    /// libraries of NVIDIA's wheels by path from `sys.path` (`_preload_cuda_deps`), differently in each release.
    fn preloaded(&self, wheel: &[u8], soname: &str) -> Option<Gap> {
        let copies = self
            .python
            .iter()
            .flat_map(|python| &python.site_packages)
            .map(|folder| folder.join(b"nvidia").join(wheel).join(b"lib").join(soname.as_bytes()));
        let copy = copies.into_iter().find(|path| self.rootfs.open(path).is_ok())?;
        Some(Gap::new(format!(
            "the loader does not find {soname}; torch may preload {copy} itself, as some releases do"
        )))
    }
}

/// The content of a file that extractors read whole: absent when the path leads to no file, unknown when it was not
/// read.
fn text<'a>(rootfs: &'a RootFs, path: &ImagePath) -> Fact<&'a [u8]> {
    use model::Found;
    let Ok((real, file)) = rootfs.open(path) else {
        return Fact::Absent;
    };
    for found in file.found {
        match found {
            Ok(Found::Text(bytes)) => return Fact::seen(&**bytes, [file.site(&real, None)]),
            Ok(_) => {}
            Err(gap) => return Fact::Unknown(gap.clone()),
        }
    }
    if file.size == 0 {
        return Fact::seen(&[][..], [file.site(&real, None)]);
    }
    // A scan keeps the content of files by their names. A link with such a name may lead to a file with another.
    let link = if *path == real { String::new() } else { format!("{path} leads to {real}: ") };
    Fact::Unknown(Gap::new(format!("{link}the content of {real} was not read, since its name did not ask for that")))
}

/// Declares a regular expression that is compiled on first use. Its classes are those of ASCII, which compile ten times
/// faster than those of Unicode; `(?u)` asks for the latter.
macro_rules! pattern {
    ($visible:vis $name:ident, $text:literal) => {
        $visible static $name: std::sync::LazyLock<regex::bytes::Regex> = std::sync::LazyLock::new(|| {
            regex::bytes::RegexBuilder::new($text).unicode(false).build().expect("a valid pattern")
        });
    };
}
use pattern;

/// The table of this name, which `build.rs` wrote as JSON.
macro_rules! table {
    ($name:literal) => {
        model::Table::new($name, || {
            serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/", $name, ".json"))).expect("a valid table")
        })
    };
}
use table;

#[cfg(test)]
mod tests;
