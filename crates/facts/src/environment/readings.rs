//! The values of the variables that are set, as their readers take them.

use crate::launch::Setting;
use crate::settings::{Settings, computed};
use crate::{Context, Facts, key};
use model::{Gap, Site, Version};

use super::conflicts::Effective;
use super::list::SettingList;
use super::name::{Family, Name, NameState, Readers, has_torch_row};
use super::value::Misreading;
use super::vocabulary::{CostScope, VariableUse};
use super::{bootstrap, missing, network, value};

/// What the reader of a setting makes of its value; unknown where releases differ and the release is unknown.
pub(super) fn misreading(setting: &Setting, name: &Name, readers: &Readers<'_>) -> Result<Option<Misreading>, Gap> {
    let (Some(about), Some(value)) = (in_use(name), setting.value.as_deref()) else { return Ok(None) };
    reading((&setting.name, value), name.family, about, readers)
}

/// What makes the job stop at the value of a setting; unknown if the value is computed and some values would.
fn refusal(setting: &Setting, name: &Name, readers: &Readers<'_>) -> Result<Option<Misreading>, Gap> {
    if setting.value.is_none()
        && in_use(name).is_some_and(|about| can_stop((&setting.name, name.family), about, readers))
    {
        return Err(computed(&setting.name, &setting.site));
    }
    Ok(misreading(setting, name, readers)?.filter(|found| found.stops))
}

/// Returns true if the job stops at one of the [doubtful values](value::DOUBTFUL) of a variable.
fn can_stop((name, family): (&str, Family), about: &VariableUse, readers: &Readers<'_>) -> bool {
    value::DOUBTFUL.iter().any(|value| match reading((name, value), family, about, readers) {
        Ok(found) => found.is_some_and(|found| found.stops),
        Err(_) => true,
    })
}

/// The setting and the effect of its value, for a report.
fn describe(found: &Misreading, setting: &Setting) -> String {
    found.describe(&setting.name, setting.value.as_deref().unwrap_or_default())
}

/// What the reader of a variable makes of a value, given the variable's name and the value.
pub(super) fn reading(
    (name, value): (&str, &str),
    family: Family,
    about: &VariableUse,
    readers: &Readers<'_>,
) -> Result<Option<Misreading>, Gap> {
    let (version, ends) = match family {
        Family::Torch => (&readers.torch_version, ["1.13", "99"]),
        Family::Nccl if has_torch_row(name) => (&readers.torch_version, ["1.13", "99"]),
        Family::Nccl | Family::Other(_) => (&readers.nccl_version, ["2.14", "99"]),
    };
    if let Some(version) = version {
        return Ok(value::misreading(about, value, version));
    }
    let [oldest, newest] = ends.map(|end| Version::parse(end).and_then(|end| value::misreading(about, value, &end)));
    if oldest == newest {
        return Ok(newest);
    }
    Err(Gap::new(format!("releases read {name}={value} differently, and the release of its reader is unknown")))
}

/// The use of a variable that its library reads.
pub(super) fn in_use(name: &Name) -> Option<&'static VariableUse> {
    name.about.filter(|_| matches!(name.state, NameState::Known | NameState::Old(_)))
}

/// Values that a library reads differently than they look.
pub(super) fn bad_values(judged: &[(&Setting, Name)], readers: &Readers<'_>, gap: Option<&Gap>, facts: &mut Facts) {
    let mut list = SettingList::default();
    let mut undecided = None;
    for (setting, name) in judged {
        match misreading(setting, name, readers) {
            Ok(Some(found)) if !found.stops => list.push(describe(&found, setting), [setting.site.clone()]),
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
pub(super) fn refused_values(
    context: &Context<'_>,
    judged: &[(&Setting, Name)],
    readers: &Readers<'_>,
    settings: &Settings,
    facts: &mut Facts,
) {
    let effective = settings.effective();
    let mut list = SettingList::default();
    let mut gap = settings.gap.clone();
    for (setting, name) in judged.iter().filter(|(setting, _)| is_effective(&effective, setting)) {
        match refusal(setting, name, readers) {
            Ok(Some(found)) if found.is_partial && runs_benchmark(context) => {}
            Ok(Some(found)) => list.push(describe(&found, setting), [setting.site.clone()]),
            Ok(None) => {}
            Err(undecided) => gap = Some(undecided),
        }
    }
    match network::refused(&effective, context, facts) {
        Ok(found) => found.into_iter().for_each(|(text, at)| list.push(text, at)),
        Err(undecided) => gap = Some(undecided),
    }
    if let Some((text, at)) = bootstrap::refused(&effective, readers.nccl_version.as_ref()) {
        list.push(text, at);
    }
    if let Some((text, site)) = missing::graph(context, &effective) {
        list.push(text, [site]);
    }
    facts.insert(key::ENV_REFUSED_VALUES, list.fact(gap.as_ref()));
}

/// True for a command that runs a program of nccl-tests, each of which calls one collective: `all_reduce_perf`.
fn runs_benchmark(context: &Context<'_>) -> bool {
    let Some(Ok(command)) = context.config.and_then(|config| config.start.command.as_ref()) else { return false };
    command.entrypoint.iter().chain(&command.arguments).flatten().any(|word| word.contains("_perf"))
}

/// Settings that have a cost.
pub(super) fn costly_values(judged: &[(&Setting, Name)], settings: &Settings, gap: Option<&Gap>, facts: &mut Facts) {
    let effective = settings.effective();
    let mut costly = SettingList::default();
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
