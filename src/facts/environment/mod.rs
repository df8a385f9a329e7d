//! Variables that are set for a job, and how the libraries that it would load interpret them.

mod conflicts;
mod describe;
mod files;
mod loopback;
mod name;
mod network;
mod plugins;
mod value;
mod vocabulary;

use crate::launch::Setting;
use crate::model::{Fact, Gap, Site, Version};

use super::key::definitions;
use super::producer::Producer;
use super::records::VariableSetting;
use super::settings::Settings;
use super::{Context, Draft, key, nccl};

use conflicts::Effective;
use name::{Family, Name, NameState, Readers, has_torch_row};
use value::Misreading;
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
        ENV_EFFECTIVE,
        ENV_UNKNOWN,
        ENV_MISSPELT,
        ENV_REMOVED,
        ENV_NOT_YET,
        ENV_DEPRECATED,
        ENV_BAD_VALUES,
        ENV_COSTLY,
        ENV_REFUSED_VALUES,
        ENV_LOOPBACK_ONLY,
        ENV_LOOPBACK_ADMITTED,
        ENV_TOPOLOGY_FILES_MISSING,
        ENV_CONTRADICTIONS,
        ENV_NCCL_VERSION_NOTE,
        ENV_PLUGIN_MISSING,
    ],
    needs: definitions![TORCH_VERSION, NCCL_LOADED_PATH, NCCL_LOADED_VERSION, NCCL_NET_PLUGIN],
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
    effective(context, &settings, facts);
    // A name that could not be checked must not count as a pass.
    let is_unchecked = |name: &Name| name.family == Family::Nccl && name.state == NameState::Unchecked;
    let unchecked = match &copy {
        Fact::Unknown(gap) if judged.iter().any(|(_, name)| is_unchecked(name)) => Some(gap),
        _ => None,
    };
    let gap = settings.gap.as_ref().or(unchecked);
    names(&judged, gap, facts);
    bad_values(&judged, &readers, gap, facts);
    refused_values(context, &judged, &readers, &settings, facts);
    costly_values(&judged, &settings, gap, facts);
    conflicts(&settings, facts);
    loopback(&settings, facts);
    files::topology(context, &settings, facts);
    plugins::produce(context, &judged, gap, facts);
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

/// Returns true for variables that NCCL or PyTorch reads, by their names, and for those that decide which GPUs and ranks
/// a process has.
pub fn is_judged(name: &str) -> bool {
    const OF_PROCESS: &[&str] = &[
        "CUDA_LAUNCH_BLOCKING",
        "CUDA_VISIBLE_DEVICES",
        "LOCAL_RANK",
        "MASTER_ADDR",
        "MASTER_PORT",
        "RANK",
        "WORLD_SIZE",
    ];
    matches!(Family::of(name), Some(Family::Nccl | Family::Torch)) || OF_PROCESS.contains(&name)
}

/// The settings that a process gets, each with its place.
fn effective(context: &Context<'_>, settings: &Settings, facts: &mut Draft<'_>) {
    let unknown = context.config.and_then(|config| config.unknown.any(is_judged));
    let gap = if context.config.is_some() { unknown } else { settings.gap.as_ref() };
    let effective = settings.effective().into_iter().filter(|(name, _)| is_judged(name));
    let known: Vec<_> =
        effective.filter_map(|(name, setting)| Some((name, setting.value.as_ref()?, &setting.site))).collect();
    let fact = match gap {
        Some(gap) => Fact::Unknown(gap.clone()),
        None => Fact::Seen {
            value: known.iter().map(|(name, value, _)| ((*name).to_owned(), (*value).clone())).collect(),
            at: known.iter().map(|(name, _, site)| of_variable(site, name)).collect(),
        },
    };
    facts.insert(key::ENV_EFFECTIVE, fact);
}

/// The place of a setting with its name, so that settings of one file remain distinct.
fn of_variable(site: &Site, name: &str) -> Site {
    match site {
        Site::File { layer, path, within: Some(within) } => {
            Site::File { layer: *layer, path: path.clone(), within: Some(format!("{within}, {name}")) }
        }
        _ => site.clone(),
    }
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
        read_in: about(|about| &about.source).or_else(|| Some(name.plugin?.reader.clone())),
        since: name.row.map(|row| row.since.clone()),
        until: name.row.and_then(|row| row.until.clone()),
        problem: sentence(&name.state).or_else(|| Some(misreading(setting, name, readers).ok()??.what)),
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

/// What the reader of a setting makes of its value; unknown where releases differ and the release is unknown.
fn misreading(setting: &Setting, name: &Name, readers: &Readers<'_>) -> Result<Option<Misreading>, Gap> {
    let (Some(about), Some(value)) = (in_use(name), setting.value.as_deref()) else { return Ok(None) };
    let (version, ends) = match name.family {
        Family::Torch => (&readers.torch_version, ["1.13", "99"]),
        Family::Nccl if has_torch_row(&setting.name) => (&readers.torch_version, ["1.13", "99"]),
        Family::Nccl | Family::Other(_) => (&readers.nccl_version, ["2.14", "99"]),
    };
    if let Some(version) = version {
        return Ok(value::misreading(about, value, version));
    }
    let [oldest, newest] = ends.map(|end| Version::parse(end).and_then(|end| value::misreading(about, value, &end)));
    if oldest == newest {
        return Ok(newest);
    }
    Err(Gap::new(format!(
        "releases read {}={value} differently, and the release of its reader is unknown",
        setting.name
    )))
}

/// The use of a variable that its library reads.
fn in_use(name: &Name) -> Option<&'static VariableUse> {
    name.about.filter(|_| matches!(name.state, NameState::Known | NameState::Old(_)))
}

/// Values that a library reads differently than they look.
fn bad_values(judged: &[(&Setting, Name)], readers: &Readers<'_>, gap: Option<&Gap>, facts: &mut Draft<'_>) {
    let (mut list, mut undecided) = (SettingList::default(), None);
    for (setting, name) in judged {
        match misreading(setting, name, readers) {
            Ok(Some(found)) if !found.stops => list.push(found.describe(setting), [setting.site.clone()]),
            Ok(_) => {}
            Err(gap) => undecided = Some(gap),
        }
    }
    facts.insert(key::ENV_BAD_VALUES, list.fact(gap.or(undecided.as_ref())));
}

/// Returns true for the setting that a process gets, of several with one name.
fn is_effective(effective: &Effective<'_>, setting: &Setting) -> bool {
    effective.get(setting.name.as_str()).is_some_and(|other| *other == setting)
}

/// Values at which the job stops. Of several settings of one name, only the one that a process gets counts.
fn refused_values(
    context: &Context<'_>,
    judged: &[(&Setting, Name)],
    readers: &Readers<'_>,
    settings: &Settings,
    facts: &mut Draft<'_>,
) {
    let effective = settings.effective();
    let (mut list, mut gap) = (SettingList::default(), settings.gap.clone());
    for (setting, name) in judged.iter().filter(|(setting, _)| is_effective(&effective, setting)) {
        match misreading(setting, name, readers) {
            Ok(Some(found)) if found.stops => list.push(found.describe(setting), [setting.site.clone()]),
            Ok(_) => {}
            Err(undecided) => gap = Some(undecided),
        }
    }
    match network::refused(&effective, context, facts) {
        Ok(found) => found.into_iter().for_each(|(text, at)| list.push(text, at)),
        Err(undecided) => gap = Some(undecided),
    }
    if let Some((text, site)) = files::graph(context, &effective) {
        list.push(text, [site]);
    }
    facts.insert(key::ENV_REFUSED_VALUES, list.fact(gap.as_ref()));
}

/// Settings that have a cost.
fn costly_values(judged: &[(&Setting, Name)], settings: &Settings, gap: Option<&Gap>, facts: &mut Draft<'_>) {
    let (effective, mut costly) = (settings.effective(), SettingList::default());
    for (setting, name) in judged {
        let Some(value) = setting.value.as_deref() else { continue };
        let Some((about, costs)) = in_use(name).and_then(|about| Some((about, about.costs.as_ref()?))) else {
            continue;
        };
        let is_reported = costs.rule.is_some() && is_effective(&effective, setting);
        let is_meant = costs.place == CostScope::Anywhere || !matches!(setting.site, Site::Launch { .. });
        if !is_reported && is_meant && value::is_costly(&costs.when, about, value) {
            costly.push(format!("{}={value} ({})", setting.name, costs.why), [setting.site.clone()]);
        }
    }
    facts.insert(key::ENV_COSTLY, costly.fact(gap));
}

fn conflicts(settings: &Settings, facts: &mut Draft<'_>) {
    let mut list = SettingList::default();
    for (text, at) in conflicts::find(&settings.effective()) {
        list.push(text, at);
    }
    facts.insert(key::ENV_CONTRADICTIONS, list.fact(settings.gap.as_ref()));
}

/// Interface lists that leave only loopback, or that admit it first.
fn loopback(settings: &Settings, facts: &mut Draft<'_>) {
    let (mut only, mut admitted) = (SettingList::default(), SettingList::default());
    if let Some(setting) = settings.effective().get("NCCL_SOCKET_IFNAME")
        && let Some(value) = &setting.value
    {
        let text = format!("NCCL_SOCKET_IFNAME={value}");
        match loopback::treatment(value) {
            Some(loopback::Treatment::Only) => only.push(text, [setting.site.clone()]),
            Some(loopback::Treatment::Admitted) => admitted.push(text, [setting.site.clone()]),
            None => {}
        }
    }
    facts.insert(key::ENV_LOOPBACK_ONLY, only.fact(settings.gap.as_ref()));
    facts.insert(key::ENV_LOOPBACK_ADMITTED, admitted.fact(settings.gap.as_ref()));
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
