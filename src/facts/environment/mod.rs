//! Variables that are set for a job, and how the libraries that it would load interpret them.

mod conflicts;
mod describe;
mod files;
mod list;
mod loopback;
mod name;
mod names;
mod network;
mod plugins;
mod readings;
mod running;
mod value;
mod vocabulary;

use crate::launch::Setting;
use crate::model::{Fact, Site, Version};

use super::key::definitions;
use super::producer::Producer;
use super::settings::Settings;
use super::{Context, Draft, key, nccl};

use list::SettingList;
use name::{Family, Name, NameState, Readers};
use names::{names, variables};
use readings::{bad_values, costly_values, refused_values};

pub use describe::{VariableDescription, describe_variable, variable_names};
pub(crate) use running::misread_values;

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
    let gap = if context.config.is_some() { unknown.or(settings.excess.as_ref()) } else { settings.gap.as_ref() };
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
    let mut paths = SettingList::default();
    files.paths.iter().for_each(|path| paths.push(path.to_string(), files.at.iter().cloned()));
    facts.insert(key::NCCL_CONFIG_FILES, paths.fact(gap));
    let mut problems = SettingList::default();
    files.problems.into_iter().for_each(|(text, site)| problems.push(text, [site]));
    facts.insert(key::NCCL_CONFIG_PROBLEMS, problems.fact(gap));
    facts.insert(key::NCCL_CONFIG_MISSING, files.missing.map_or(Fact::Absent, |path| Fact::seen(path, [])));
}

#[cfg(test)]
mod tests;
