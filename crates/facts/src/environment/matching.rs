//! Settings that name interfaces or RDMA devices, compared with those that a process has.

use model::{Fact, Value};

use super::list::SettingList;
use super::takes_any;
use crate::{Facts, key};

/// The settings that match none of their names, each described with them; unknown if a setting or the names are.
pub(crate) fn unmatched_names(
    facts: &Facts,
    compared: &[(&str, &Fact<Vec<&str>>)],
    described: impl Fn(&str, &[&str]) -> String,
) -> Fact<Vec<String>> {
    let effective = facts.certain(&key::ENV_EFFECTIVE);
    let mut list = SettingList::default();
    let mut gap = None;
    for (variable, names) in compared {
        let value = match effective {
            Fact::Seen { value: Value::Map(settings), .. } => settings.get(*variable).map(ToString::to_string),
            _ => None,
        };
        let Some(value) = value else {
            gap = gap.or(facts.gap(&key::ENV_EFFECTIVE, Some(variable)));
            continue;
        };
        let names = match names {
            Fact::Seen { value: names, .. } => names.as_slice(),
            Fact::Absent => &[],
            Fact::Unknown(unknown) => {
                gap = gap.or(Some(unknown));
                continue;
            }
        };
        if !value.is_empty() && !takes(variable, &value, names) {
            let sites = effective.sites().iter().filter(|site| site.to_string().contains(variable)).cloned();
            list.push(described(&format!("{variable}={value}"), names), sites);
        }
    }
    list.fact(gap)
}

/// True if a list takes one of these names. Gloo takes whole names, and NCCL the beginnings of names.
fn takes(variable: &str, value: &str, names: &[&str]) -> bool {
    if variable.starts_with("GLOO") {
        return value.split(',').all(|name| names.contains(&name));
    }
    takes_any(value, names.iter().copied())
}
