//! Variables that are set for a job, and how the libraries that it would load interpret them.

mod bootstrap;
mod conflicts;
mod describe;
mod effective;
mod list;
mod loopback;
mod matching;
mod missing;
mod name;
mod names;
mod network;
mod notes;
mod readings;
mod running;
pub(crate) mod value;
pub(crate) mod vocabulary;

use model::Fact;

use super::settings::Settings;
use super::{Context, Facts, key, nccl};

pub(crate) use list::SettingList;
pub(crate) use matching::unmatched_names;
use name::{Family, Name, NameState, NcclBackend, Readers};
use names::{names, variables};
use readings::{bad_values, costly_values, refused_values};
pub(crate) use value::names::{excludes, takes_name};

pub use describe::{VariableDescription, describe_variable, variable_names};
pub use effective::is_judged;
pub use running::misread_values;
pub use value::names::takes_any;

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let copy = nccl::loaded_strings(context, facts);
    let mut readers = Readers {
        nccl: copy.value().copied(),
        nccl_version: facts.get(key::NCCL_LOADED_VERSION).value().cloned(),
        torch_version: facts.get(key::TORCH_VERSION).value().cloned(),
        backend: NcclBackend::Default,
    };
    let settings = Settings::gather(context, readers.nccl_version.as_ref());
    let switch = settings.in_environment("TORCH_DIST_USE_NCCL2");
    readers.backend = match &switch {
        Ok(Some("0")) => NcclBackend::Legacy,
        Ok(_) => NcclBackend::Default,
        Err(_) => NcclBackend::Unknown,
    };
    let judged: Vec<_> =
        settings.all.iter().filter_map(|setting| Some((setting, readers.look_up(&setting.name)?))).collect();

    launch(context, facts);
    variables(&judged, &readers, &settings, facts);
    effective::produce(context, &settings, facts);
    // A name that could not be checked must not count as a pass.
    let is_unchecked = |name: &Name| name.family == Family::Nccl && name.state == NameState::Unchecked;
    let unchecked = match &copy {
        Fact::Unknown(gap) if judged.iter().any(|(_, name)| is_unchecked(name)) => Some(gap),
        _ => None,
    };
    let gap = settings.gap.as_ref().or(unchecked);
    names(&judged, gap, switch.as_ref().err(), facts);
    bad_values(&judged, &readers, gap, facts);
    refused_values(context, &judged, &readers, &settings, facts);
    costly_values(&judged, &settings, gap, facts);
    conflicts::produce(&settings, &readers, facts);
    loopback::produce(&settings, facts);
    missing::topology(context, &settings, facts);
    missing::plugins(context, &judged, gap, facts);
    notes::produce(&judged, &readers, facts);
    configuration_files(settings, facts);
}

/// Names that the job sets itself.
fn launch(context: &Context<'_>, facts: &mut Facts) {
    let mut all = SettingList::default();
    let mut computed = SettingList::default();
    for set in context.launch {
        all.push(set.name.clone(), [set.site.clone()]);
        if set.value.is_none() {
            computed.push(set.name.clone(), [set.site.clone()]);
        }
    }
    facts.insert(key::LAUNCH_VARIABLES, all.fact(None));
    facts.insert(key::LAUNCH_COMPUTED, computed.fact(None));
}

fn configuration_files(settings: Settings, facts: &mut Facts) {
    let files = settings.files;
    let gap = files.gap.as_ref();
    let mut paths = SettingList::default();
    files.paths.iter().for_each(|path| paths.push(path.to_string(), files.at.iter().cloned()));
    facts.insert(key::NCCL_CONFIG_FILES, paths.fact(gap));
    let mut problems = SettingList::default();
    files.problems.into_iter().for_each(|(text, site)| problems.push(text, site));
    facts.insert(key::NCCL_CONFIG_PROBLEMS, problems.fact(gap));
    facts.insert(key::NCCL_CONFIG_MISSING, files.missing.map_or(Fact::Absent, |path| Fact::seen(path, [])));
}

#[cfg(test)]
mod tests;
