//! Variables that are set for a job, and how the libraries that it would load interpret them.

mod algorithms;
mod conflicts;
mod describe;
mod name;
mod value;
mod vocabulary;

use crate::launch::Setting;
use crate::model::{Fact, Gap, Site, Version};

use super::key::definitions;
use super::producer::Producer;
use super::records::VariableSetting;
use super::settings::Settings;
use super::{Context, Draft, key, nccl};

use name::{Family, Name, NameState, Readers};
use vocabulary::{CostScope, VariableUse};

pub use describe::{VariableDescription, describe_variable, variable_names};

/// Sentences about settings, each with its sites; becomes one list fact.
#[derive(Default)]
struct SettingList {
    texts: Vec<String>,
    at: Vec<Site>,
}

impl SettingList {
    fn push(&mut self, text: String, at: impl IntoIterator<Item = Site>) {
        if !self.texts.contains(&text) {
            self.texts.push(text);
        }
        self.at.extend(at);
    }

    /// An empty list is absent, or unknown if something could not be read.
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

pub(super) static PRODUCER: Producer = Producer {
    name: "environment",
    produces: definitions![
        LAUNCH_VARIABLES,
        LAUNCH_COMPUTED,
        NCCL_UNKNOWN_VARIABLES,
        NCCL_CONFIG_FILES,
        NCCL_CONFIG_PROBLEMS,
        NCCL_CONFIG_MISSING,
        ENV_VARIABLES,
        ENV_UNKNOWN,
        ENV_MISSPELT,
        ENV_REMOVED,
        ENV_NOT_YET,
        ENV_DEPRECATED,
        ENV_BAD_VALUES,
        ENV_COSTLY,
        ENV_ALGORITHMS_REFUSED,
        ENV_TOPOLOGY_FILES_MISSING,
        ENV_CONTRADICTIONS,
        ENV_NCCL_VERSION_NOTE,
    ],
    needs: definitions![TORCH_VERSION, NCCL_LOADED_PATH, NCCL_LOADED_VERSION],
    run: produce,
};

fn produce(context: &Context<'_>, facts: &mut Draft<'_>) {
    let copy = nccl::loaded_strings(context, facts);
    let readers = Readers {
        nccl: copy.value().copied(),
        nccl_version: facts.get(key::NCCL_LOADED_VERSION).value().cloned(),
        torch_version: facts.get(key::TORCH_VERSION).value().cloned(),
    };
    let settings = Settings::gather(context, readers.nccl_version.as_ref());
    let judged: Vec<_> =
        settings.all.iter().filter_map(|setting| Some((setting, readers.look_up(&setting.name)?))).collect();

    launch(context, facts);
    variables(&judged, &readers, &settings, facts);
    // A name that could not be checked must not count as a pass.
    let is_unchecked = |name: &Name| name.family == Family::Nccl && name.state == NameState::Unchecked;
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

/// Names that the job sets itself.
fn launch(context: &Context<'_>, facts: &mut Draft<'_>) {
    let (mut all, mut computed) = (SettingList::default(), SettingList::default());
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
fn variables(judged: &[(&Setting, Name)], readers: &Readers<'_>, settings: &Settings, facts: &mut Draft<'_>) {
    let records: Vec<_> = judged.iter().map(|(setting, name)| record(setting, name, readers)).collect();
    let at = judged.iter().map(|(setting, _)| setting.site.clone()).collect();
    let fact = match &settings.gap {
        _ if !records.is_empty() => Fact::Seen { value: records, at },
        Some(gap) => Fact::Unknown(gap.clone()),
        None => Fact::Absent,
    };
    facts.insert(key::ENV_VARIABLES, fact);
}

fn record(setting: &Setting, name: &Name, readers: &Readers<'_>) -> VariableSetting {
    let about = |field: fn(&VariableUse) -> &Option<String>| name.about.and_then(|about| field(about).clone());
    VariableSetting {
        name: Some(setting.name.clone()),
        value: setting.value.clone(),
        source: Some(setting.site.to_string()),
        family: Some(name.family.name().to_owned()),
        state: Some(name.state.name().to_owned()),
        meaning: about(|about| &about.what),
        default: about(|about| &about.default),
        read_in: about(|about| &about.source),
        since: name.row.map(|row| row.since.clone()),
        until: name.row.and_then(|row| row.until.clone()),
        problem: sentence(&name.state).or_else(|| bad_value(setting, name, readers)),
    }
}

/// Describes the problem of a name.
fn sentence(state: &NameState) -> Option<String> {
    Some(match state {
        NameState::Known | NameState::Foreign | NameState::Unchecked => return None,
        NameState::Old(new) => format!("the old spelling of {new}"),
        NameState::NotYet(first) => format!("read from {first} on"),
        NameState::Removed(last) => format!("last read by {last}"),
        NameState::Misspelt(meant) | NameState::Unknown(Some(meant)) => format!("did you mean {meant}?"),
        NameState::Unknown(None) => "nothing reads it".to_owned(),
    })
}

/// Lists of names, by problem.
fn names(judged: &[(&Setting, Name)], gap: Option<&Gap>, facts: &mut Draft<'_>) {
    let mut of_nccl = SettingList::default();
    let [mut unknown, mut misspelt, mut removed, mut not_yet, mut deprecated] =
        [(); 5].map(|()| SettingList::default());
    for (setting, name) in judged {
        let own = &setting.name;
        let detailed = || sentence(&name.state).map_or_else(|| own.clone(), |what| format!("{own} ({what})"));
        let list = match &name.state {
            NameState::Known | NameState::Foreign | NameState::Unchecked => continue,
            NameState::Old(_) => &mut deprecated,
            NameState::NotYet(_) => &mut not_yet,
            NameState::Removed(_) => &mut removed,
            NameState::Misspelt(_) => &mut misspelt,
            NameState::Unknown(_) => &mut unknown,
        };
        let text = if name.state == NameState::Unknown(None) { own.clone() } else { detailed() };
        list.push(text, [setting.site.clone()]);
        if name.family == Family::Nccl && !matches!(name.state, NameState::Old(_)) {
            of_nccl.push(own.clone(), [setting.site.clone()]);
        }
    }
    for (key, list) in [
        (key::NCCL_UNKNOWN_VARIABLES, of_nccl),
        (key::ENV_UNKNOWN, unknown),
        (key::ENV_MISSPELT, misspelt),
        (key::ENV_REMOVED, removed),
        (key::ENV_NOT_YET, not_yet),
        (key::ENV_DEPRECATED, deprecated),
    ] {
        facts.insert(key, list.fact(gap));
    }
}

fn bad_value(setting: &Setting, name: &Name, readers: &Readers<'_>) -> Option<String> {
    let about = name.about.filter(|_| matches!(name.state, NameState::Known | NameState::Old(_)))?;
    value::problem(about, setting.value.as_deref()?, readers.torch_version.as_ref())
}

/// Lists of misread values and of costly settings.
fn values(judged: &[(&Setting, Name)], readers: &Readers<'_>, gap: Option<&Gap>, facts: &mut Draft<'_>) {
    let (mut bad, mut costly) = (SettingList::default(), SettingList::default());
    for (setting, name) in judged {
        let Some(value) = setting.value.as_deref() else { continue };
        let set = format!("{}={value}", setting.name);
        if let Some(problem) = bad_value(setting, name, readers) {
            bad.push(format!("{set} ({problem})"), [setting.site.clone()]);
        }
        let about = name.about.filter(|_| matches!(name.state, NameState::Known | NameState::Old(_)));
        let Some((about, costs)) = about.and_then(|about| Some((about, about.costs.as_ref()?))) else { continue };
        let starts_with_it = matches!(setting.site, Site::Config(_) | Site::Launch { .. });
        let is_told = costs.rule.is_some() && starts_with_it;
        let is_meant = costs.place == CostScope::Anywhere || !matches!(setting.site, Site::Launch { .. });
        if !is_told && is_meant && value::is_costly(&costs.when, about, value) {
            costly.push(format!("{set} ({})", costs.why), [setting.site.clone()]);
        }
    }
    facts.insert(key::ENV_BAD_VALUES, bad.fact(gap));
    facts.insert(key::ENV_COSTLY, costly.fact(gap));
}

fn conflicts(settings: &Settings, facts: &mut Draft<'_>) {
    let mut list = SettingList::default();
    for (text, at) in conflicts::find(&settings.effective()) {
        list.push(text, at);
    }
    facts.insert(key::ENV_CONTRADICTIONS, list.fact(settings.gap.as_ref()));
}

fn algorithms(settings: &Settings, facts: &mut Draft<'_>) {
    let mut list = SettingList::default();
    if let Some(setting) = settings.effective().get("NCCL_ALGO")
        && let Some(value) = &setting.value
    {
        for text in algorithms::refused(value) {
            list.push(text, [setting.site.clone()]);
        }
    }
    facts.insert(key::ENV_ALGORITHMS_REFUSED, list.fact(settings.gap.as_ref()));
}

/// Topology files that the image sets but does not contain. Paths set at launch may be mounted, so they are skipped.
fn topology_files(context: &Context<'_>, settings: &Settings, facts: &mut Draft<'_>) {
    let folder = context.config.map_or("", |config| config.working_directory.as_str());
    let effective = settings.effective();
    let mut list = SettingList::default();
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

/// `NCCL_VERSION` in CUDA's base images is the version of their packages, which may differ from the one that torch
/// loads.
fn note(judged: &[(&Setting, Name)], readers: &Readers<'_>, facts: &mut Draft<'_>) {
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

fn configuration_files(settings: Settings, facts: &mut Draft<'_>) {
    let files = settings.files;
    let gap = files.gap.as_ref();
    let paths = files.paths.iter().map(ToString::to_string).collect();
    facts.insert(key::NCCL_CONFIG_FILES, SettingList { texts: paths, at: files.at }.fact(gap));
    let mut problems = SettingList::default();
    files.problems.into_iter().for_each(|(text, site)| problems.push(text, [site]));
    facts.insert(key::NCCL_CONFIG_PROBLEMS, problems.fact(gap));
    facts.insert(key::NCCL_CONFIG_MISSING, files.missing.map_or(Fact::Absent, |path| Fact::seen(path, [])));
}

#[cfg(test)]
mod tests;
