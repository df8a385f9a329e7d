//! The names of the variables that are set, and what is wrong with them.

use crate::launch::Setting;
use crate::records::VariableSetting;
use crate::settings::Settings;
use crate::{Facts, key};
use model::{Fact, Gap};

use super::list::SettingList;
use super::name::{Family, Name, NameState, Readers};
use super::readings::misreading;
use super::vocabulary::VariableUse;

/// One record for each setting.
pub(super) fn variables(judged: &[(&Setting, Name)], readers: &Readers<'_>, settings: &Settings, facts: &mut Facts) {
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
        read_in: about(|about| &about.source).or_else(|| Some(name.plugin?.reader.clone())),
        since: name.row.map(|row| row.since.clone()),
        until: name.row.and_then(|row| row.until.clone()),
        problem: sentence(&name.state).or_else(|| Some(misreading(setting, name, readers).ok()??.what)),
    }
}

/// Describes the problem of a name.
fn sentence(state: &NameState) -> Option<String> {
    Some(match state {
        NameState::Known | NameState::Foreign | NameState::Undecided | NameState::Unchecked => return None,
        NameState::Old(new) => format!("the old spelling of {new}"),
        NameState::NotYet(first) => format!("read from {first} on"),
        NameState::Removed(last) => format!("last read by {last}"),
        NameState::Unselected => {
            "its default backend nccl2 does not read it; TORCH_DIST_USE_NCCL2=0 selects the one that does".to_owned()
        }
        NameState::Misspelt(meant) | NameState::Unknown(Some(meant)) => format!("did you mean {meant}?"),
        NameState::Unknown(None) => "nothing reads it".to_owned(),
    })
}

/// Lists of names, by problem. `backend` is why the process group is unknown, if it is.
pub(super) fn names(judged: &[(&Setting, Name)], gap: Option<&Gap>, backend: Option<&Gap>, facts: &mut Facts) {
    let mut of_nccl = SettingList::default();
    let [mut unknown, mut misspelt, mut removed, mut not_yet, mut deprecated] =
        [(); 5].map(|()| SettingList::default());
    for (setting, name) in judged {
        let own = &setting.name;
        let detailed = || sentence(&name.state).map_or_else(|| own.clone(), |what| format!("{own} ({what})"));
        let list = match &name.state {
            NameState::Known | NameState::Foreign | NameState::Undecided | NameState::Unchecked => continue,
            NameState::Old(_) => &mut deprecated,
            NameState::NotYet(_) => &mut not_yet,
            NameState::Removed(_) | NameState::Unselected => &mut removed,
            NameState::Misspelt(_) => &mut misspelt,
            NameState::Unknown(_) => &mut unknown,
        };
        let text = if name.state == NameState::Unknown(None) { own.clone() } else { detailed() };
        list.push(text, [setting.site.clone()]);
        if name.family == Family::Nccl && !matches!(name.state, NameState::Old(_)) {
            of_nccl.push(own.clone(), [setting.site.clone()]);
        }
    }
    let undecided = backend.filter(|_| judged.iter().any(|(_, name)| name.state == NameState::Undecided));
    facts.insert(key::ENV_REMOVED, removed.fact(undecided.or(gap)));
    for (key, list) in [
        (key::NCCL_UNKNOWN_VARIABLES, of_nccl),
        (key::ENV_UNKNOWN, unknown),
        (key::ENV_MISSPELT, misspelt),
        (key::ENV_NOT_YET, not_yet),
        (key::ENV_DEPRECATED, deprecated),
    ] {
        facts.insert(key, list.fact(gap));
    }
}
