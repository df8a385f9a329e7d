//! The settings that a process of the job gets.

use std::collections::BTreeMap;

use crate::model::{Fact, Gap, Site, Value};

use super::super::map_entries::MapEntries;
use super::super::settings::Settings;
use super::super::{Context, Draft, key};
use super::name::Family;

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
pub(super) fn produce(context: &Context<'_>, settings: &Settings, facts: &mut Draft<'_>) {
    // A place that may set any variable, and that outranks the others, leaves none of them certain.
    let outranking = match context.config {
        Some(config) => config.unknown.environment.as_ref().or(settings.excess.as_ref()),
        None => settings.gap.as_ref(),
    };
    match outranking {
        Some(gap) => facts.insert(key::ENV_EFFECTIVE, Fact::Unknown(gap.clone())),
        None => facts.insert_entries(key::ENV_EFFECTIVE.definition, entries(context, settings)),
    }
}

fn entries(context: &Context<'_>, settings: &Settings) -> MapEntries {
    let unknown = context.config.map(|config| &config.unknown.variables);
    let mut gaps: BTreeMap<String, Gap> = unknown.into_iter().flatten().map(owned).collect();
    gaps.retain(|name, _| is_judged(name));
    let (mut known, mut at) = (BTreeMap::new(), Vec::new());
    for (name, setting) in settings.effective().into_iter().filter(|(name, _)| is_judged(name)) {
        let later = settings.files.gap_of(name, Some(setting));
        match &setting.value {
            _ if gaps.contains_key(name) => {}
            Some(_) if later.is_some() => gaps.extend(later.map(|gap| (name.to_owned(), gap.clone()))),
            Some(value) => {
                known.insert(name.to_owned(), Value::Text(value.clone()));
                at.push(of_variable(&setting.site, name));
            }
            None => gaps.extend(settings.gap_of(name).map(|gap| (name.to_owned(), gap))),
        }
    }
    let unread = settings.files.unread.iter().filter(|(name, _)| is_judged(name) && !known.contains_key(*name));
    gaps.extend(unread.map(owned));
    // NCCL's own files only add what nothing else sets.
    let others = settings.files.gap.clone().map(|gap| ("NCCL_", gap));
    MapEntries { certain: Fact::seen(Value::Map(known), at), gaps, others }
}

fn owned((name, gap): (&String, &Gap)) -> (String, Gap) {
    (name.clone(), gap.clone())
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
