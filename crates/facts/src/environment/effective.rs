//! The settings that a process of the job gets.

use std::collections::BTreeMap;

use model::{Fact, Gap, ImageConfig, Site, Value};

use super::super::map_entries::MapEntries;
use super::super::settings::Settings;
use super::super::{Context, Facts, key};
use super::name::Family;

/// Returns true for variables that NCCL or PyTorch reads, by their names, and for those that decide which GPUs and ranks
/// a process has.
pub fn is_judged(name: &str) -> bool {
    const OF_PROCESS: &[&str] = &[
        "CUDA_LAUNCH_BLOCKING",
        "CUDA_VISIBLE_DEVICES",
        "GLOO_SOCKET_IFNAME",
        "LOCAL_RANK",
        "MASTER_ADDR",
        "MASTER_PORT",
        "RANK",
        "WORLD_SIZE",
    ];
    matches!(Family::of(name), Some(Family::Nccl | Family::Torch)) || OF_PROCESS.contains(&name)
}

/// The settings that a process gets, each with its place. What is found stays, also where a script that was not followed
/// may change it; what is not found is then unknown.
pub(super) fn produce(context: &Context<'_>, settings: &Settings, facts: &mut Facts) {
    let config = context.start.config.as_ref();
    let missing = if config.is_some() { settings.excess.as_ref() } else { settings.gap.as_ref() };
    if let Some(gap) = missing {
        return facts.insert(key::ENV_EFFECTIVE, Fact::Unknown(gap.clone()));
    }
    let mut entries = entries(config, settings);
    let changed = context.python.as_ref().and_then(|python| python.changed.gap.clone());
    entries.others = changed.map(|gap| ("", gap)).or(entries.others);
    facts.insert_entries(key::ENV_EFFECTIVE.definition, entries);
}

fn entries(config: Option<&ImageConfig>, settings: &Settings) -> MapEntries {
    let unknown = config.map(|config| &config.unknown);
    let computed = unknown.into_iter().flat_map(|unknown| &unknown.variables);
    let mut gaps: BTreeMap<String, Gap> = computed.filter(|(name, _)| is_judged(name)).map(owned).collect();
    let mut known = BTreeMap::new();
    let mut at = Vec::new();
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
    // A script may set any variable; NCCL's own files only add what nothing else sets, for NCCL.
    let any = unknown.and_then(|unknown| unknown.environment.clone()).map(|gap| ("", gap));
    let others = any.or_else(|| settings.files.gap.clone().map(|gap| ("NCCL_", gap)));
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
