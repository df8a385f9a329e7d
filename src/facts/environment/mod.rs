//! Variables that are set for a job, and what the libraries that it would load make of them.

mod algorithms;
mod conf_file;
mod conflicts;
mod name;
mod sources;
mod value;
mod vocabulary;

use std::collections::BTreeMap;

use crate::launch::Setting;
use crate::model::{Fact, Gap, Site, Value, Version};

use super::key::Key;
use super::{Context, Facts, key, nccl};

use name::{Family, Name, Readers, State};
use sources::Settings;
use vocabulary::{Place, Row};

/// Sentences about settings, each with its places: one list fact.
#[derive(Default)]
struct List {
    texts: Vec<String>,
    at: Vec<Site>,
}

impl List {
    fn push(&mut self, text: String, at: impl IntoIterator<Item = Site>) {
        if !self.texts.contains(&text) {
            self.texts.push(text);
        }
        self.at.extend(at);
    }

    /// Nothing found is absence, unless something could not be read.
    fn fact(mut self, gap: Option<&Gap>) -> Fact<Vec<String>> {
        self.at.sort();
        self.at.dedup();
        match gap {
            _ if !self.texts.is_empty() => Fact::Seen { value: self.texts, at: self.at },
            Some(gap) => Fact::Unknown(gap.clone()),
            None => Fact::Absent,
        }
    }
}

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let copy = nccl::loaded_strings(context, facts);
    let version = |name: &str| facts.get(name).value().and_then(|value| Version::parse(&value.to_string()));
    let readers = Readers {
        nccl: copy.value().copied(),
        nccl_version: version(key::NCCL_LOADED_VERSION.name),
        torch_version: version(key::TORCH_VERSION.name),
    };
    let settings = Settings::gather(context, readers.nccl_version.as_ref());
    let judged: Vec<_> =
        settings.all.iter().filter_map(|setting| Some((setting, readers.look_up(&setting.name)?))).collect();

    launch(context, facts);
    variables(&judged, &readers, &settings, facts);
    // A name that could not be checked is no reason to say that all is well.
    let is_unchecked = |name: &Name| name.family == Family::Nccl && name.state == State::Unchecked;
    let unchecked = match &copy {
        Fact::Unknown(gap) if judged.iter().any(|(_, name)| is_unchecked(name)) => Some(gap),
        _ => None,
    };
    let gap = settings.gap.as_ref().or(unchecked);
    names(&judged, gap, facts);
    values(&judged, &readers, gap, facts);
    conflicts(&settings, facts);
    algorithms(&settings, facts);
    topology_files(context, &settings, facts);
    note(&judged, &readers, facts);
    configuration_files(settings, facts);
}

/// The variables that NCCL finds in its process, with those of its own files.
pub(super) fn effective(context: &Context<'_>, version: Option<&Version>) -> BTreeMap<String, Setting> {
    let settings = Settings::gather(context, version);
    settings.effective().into_values().map(|setting| (setting.name.clone(), setting.clone())).collect()
}

/// The number that NCCL takes a value for; `None` where it fits no 64 bits.
pub(super) fn number(value: &str) -> Option<i64> {
    value::strtoll(value).number
}

/// The names that the job sets itself.
fn launch(context: &Context<'_>, facts: &mut Facts) {
    let (mut all, mut computed) = (List::default(), List::default());
    for set in context.launch {
        all.push(set.name.clone(), [set.site.clone()]);
        if set.value.is_none() {
            computed.push(set.name.clone(), [set.site.clone()]);
        }
    }
    facts.insert(key::LAUNCH_VARIABLES, all.fact(None));
    facts.insert(key::LAUNCH_COMPUTED, computed.fact(None));
}

/// One record for each setting.
fn variables(judged: &[(&Setting, Name)], readers: &Readers<'_>, settings: &Settings, facts: &mut Facts) {
    let records: Vec<_> = judged.iter().map(|(setting, name)| record(setting, name, readers)).collect();
    let at = judged.iter().map(|(setting, _)| setting.site.clone()).collect();
    let fact = match &settings.gap {
        _ if !records.is_empty() => Fact::Seen { value: records, at },
        Some(gap) => Fact::Unknown(gap.clone()),
        None => Fact::Absent,
    };
    facts.insert(key::ENV_VARIABLES, fact);
}

fn record(setting: &Setting, name: &Name, readers: &Readers<'_>) -> Value {
    let mut record = BTreeMap::from([
        ("name".to_owned(), setting.name.clone()),
        ("source".to_owned(), setting.site.to_string()),
        ("family".to_owned(), name.family.name().to_owned()),
        ("state".to_owned(), name.state.name().to_owned()),
    ]);
    let row = name.row;
    for (field, text) in [
        ("value", setting.value.clone()),
        ("meaning", name.about.and_then(|about| about.what.clone())),
        ("default", name.about.and_then(|about| about.default.clone())),
        ("read_in", name.about.and_then(|about| about.source.clone())),
        ("since", row.map(|row: &Row| row.since.clone())),
        ("until", row.and_then(|row| row.until.clone())),
        ("problem", sentence(&name.state).or_else(|| bad_value(setting, name, readers))),
    ] {
        record.extend(text.map(|text| (field.to_owned(), text)));
    }
    record.into()
}

/// What is wrong with a name.
fn sentence(state: &State) -> Option<String> {
    Some(match state {
        State::Known | State::Foreign | State::Unchecked => return None,
        State::Old(new) => format!("the old spelling of {new}"),
        State::NotYet(first) => format!("read from {first} on"),
        State::Removed(last) => format!("last read by {last}"),
        State::Misspelt(meant) => format!("did you mean {meant}?"),
        State::Unknown(Some(meant)) => format!("meant may be: {meant}"),
        State::Unknown(None) => "nothing reads it".to_owned(),
    })
}

/// Lists of names, by what is wrong with them.
fn names(judged: &[(&Setting, Name)], gap: Option<&Gap>, facts: &mut Facts) {
    let mut lists: BTreeMap<&str, (&'static Key, List)> = BTreeMap::new();
    for key in [
        key::NCCL_UNKNOWN_VARIABLES,
        key::ENV_UNKNOWN,
        key::ENV_MISSPELT,
        key::ENV_REMOVED,
        key::ENV_NOT_YET,
        key::ENV_DEPRECATED,
    ] {
        lists.insert(key.name, (key, List::default()));
    }
    let mut push = |key: &'static Key, text: String, setting: &Setting| {
        if let Some((_, list)) = lists.get_mut(key.name) {
            list.push(text, [setting.site.clone()]);
        }
    };
    for (setting, name) in judged {
        let own = &setting.name;
        let detailed = || sentence(&name.state).map_or_else(|| own.clone(), |what| format!("{own} ({what})"));
        let key = match &name.state {
            State::Known | State::Foreign | State::Unchecked => continue,
            State::Old(_) => key::ENV_DEPRECATED,
            State::NotYet(_) => key::ENV_NOT_YET,
            State::Removed(_) => key::ENV_REMOVED,
            State::Misspelt(_) => key::ENV_MISSPELT,
            State::Unknown(_) => key::ENV_UNKNOWN,
        };
        let text = if name.state == State::Unknown(None) { own.clone() } else { detailed() };
        push(key, text, setting);
        if name.family == Family::Nccl && key != key::ENV_DEPRECATED {
            push(key::NCCL_UNKNOWN_VARIABLES, own.clone(), setting);
        }
    }
    for (key, list) in lists.into_values() {
        facts.insert(key, list.fact(gap));
    }
}

fn bad_value(setting: &Setting, name: &Name, readers: &Readers<'_>) -> Option<String> {
    let about = name.about.filter(|_| matches!(name.state, State::Known | State::Old(_)))?;
    value::problem(about, setting.value.as_deref()?, readers.torch_version.as_ref())
}

/// Lists of values that are not what they look like, and of those that cost something.
fn values(judged: &[(&Setting, Name)], readers: &Readers<'_>, gap: Option<&Gap>, facts: &mut Facts) {
    let (mut bad, mut costly) = (List::default(), List::default());
    for (setting, name) in judged {
        let Some(value) = setting.value.as_deref() else { continue };
        let set = format!("{}={value}", setting.name);
        if let Some(problem) = bad_value(setting, name, readers) {
            bad.push(format!("{set} ({problem})"), [setting.site.clone()]);
        }
        let about = name.about.filter(|_| matches!(name.state, State::Known | State::Old(_)));
        let Some((about, costs)) = about.and_then(|about| Some((about, about.costs.as_ref()?))) else { continue };
        let starts_with_it = matches!(setting.site, Site::Config(_) | Site::Launch { .. });
        let is_told = costs.rule.is_some() && starts_with_it;
        let is_meant = costs.place == Place::Anywhere || !matches!(setting.site, Site::Launch { .. });
        if !is_told && is_meant && value::is_costly(&costs.when, about, value) {
            costly.push(format!("{set} ({})", costs.why), [setting.site.clone()]);
        }
    }
    facts.insert(key::ENV_BAD_VALUES, bad.fact(gap));
    facts.insert(key::ENV_COSTLY, costly.fact(gap));
}

fn conflicts(settings: &Settings, facts: &mut Facts) {
    let mut list = List::default();
    for (text, at) in conflicts::find(&settings.effective()) {
        list.push(text, at);
    }
    facts.insert(key::ENV_CONTRADICTIONS, list.fact(settings.gap.as_ref()));
}

fn algorithms(settings: &Settings, facts: &mut Facts) {
    let mut list = List::default();
    if let Some(setting) = settings.effective().get("NCCL_ALGO")
        && let Some(value) = &setting.value
    {
        for text in algorithms::refused(value) {
            list.push(text, [setting.site.clone()]);
        }
    }
    facts.insert(key::ENV_ALGORITHMS_REFUSED, list.fact(settings.gap.as_ref()));
}

/// Descriptions of a machine that an image names and does not have. A job may name what it mounts.
fn topology_files(context: &Context<'_>, settings: &Settings, facts: &mut Facts) {
    let folder = context.config.map_or("", |config| config.working_directory.as_str());
    let effective = settings.effective();
    let mut list = List::default();
    for name in ["NCCL_TOPO_FILE", "NCCL_GRAPH_FILE"] {
        let setting = effective.get(name).filter(|setting| !matches!(setting.site, Site::Launch { .. }));
        let Some((setting, value)) = setting.and_then(|setting| Some((setting, setting.value.as_deref()?))) else {
            continue;
        };
        let path = if value.starts_with('/') { value.to_owned() } else { format!("{folder}/{value}") };
        if !value.is_empty() && context.rootfs.open_raw(path.as_bytes()).is_err() {
            list.push(format!("{name}={value}"), [setting.site.clone()]);
        }
    }
    facts.insert(key::ENV_TOPOLOGY_FILES_MISSING, list.fact(settings.gap.as_ref()));
}

/// `NCCL_VERSION` of CUDA's base images is what their packages brought, which need not be what torch loads.
fn note(judged: &[(&Setting, Name)], readers: &Readers<'_>, facts: &mut Facts) {
    let noted = judged.iter().map(|(setting, _)| *setting).find(|setting| setting.name == "NCCL_VERSION");
    let numbers = |text: &str| Version::parse(text.split(['-', '+']).next().unwrap_or_default());
    let differs = |value: &str| match (numbers(value), &readers.nccl_version) {
        (Some(noted), Some(loaded)) => noted != *loaded,
        _ => false,
    };
    let fact = noted
        .and_then(|setting| {
            setting.value.clone().filter(|value| differs(value)).map(|value| (value, setting.site.clone()))
        })
        .map_or(Fact::Absent, |(value, site)| Fact::seen(value, [site]));
    facts.insert(key::ENV_NCCL_VERSION_NOTE, fact);
}

fn configuration_files(settings: Settings, facts: &mut Facts) {
    let files = settings.files;
    let gap = files.gap.as_ref();
    let paths = files.paths.iter().map(ToString::to_string).collect();
    facts.insert(key::NCCL_CONFIG_FILES, List { texts: paths, at: files.at }.fact(gap));
    let mut problems = List::default();
    files.problems.into_iter().for_each(|(text, site)| problems.push(text, [site]));
    facts.insert(key::NCCL_CONFIG_PROBLEMS, problems.fact(gap));
    facts.insert(key::NCCL_CONFIG_MISSING, files.missing.map_or(Fact::Absent, |path| Fact::seen(path, [])));
}

#[cfg(test)]
mod tests;
