//! Settings that name interfaces or RDMA devices, compared with those that a process has.

use model::{Fact, Value};

use super::list::SettingList;
use super::takes_any;
use crate::{Facts, key};

impl Facts {
    /// A variable that a process of the job gets, with the places that set it.
    pub(crate) fn setting(&self, variable: &str) -> Fact<String> {
        if let Fact::Seen { value: Value::Map(settings), at } = self.certain(&key::ENV_EFFECTIVE)
            && let Some(value) = settings.get(variable)
        {
            return Fact::seen(
                value.to_string(),
                at.iter().filter(|site| site.to_string().contains(variable)).cloned(),
            );
        }
        self.gap(&key::ENV_EFFECTIVE, Some(variable)).map_or(Fact::Absent, |gap| Fact::Unknown(gap.clone()))
    }
}

/// The settings that match none of their names, each described with them; unknown if a setting or the names are.
pub(crate) fn unmatched_names(
    facts: &Facts,
    compared: &[(&str, &Fact<Vec<&str>>)],
    described: impl Fn(&str, &[&str]) -> String,
) -> Fact<Vec<String>> {
    let mut list = SettingList::default();
    let mut gap = None;
    for (variable, names) in compared {
        let (value, at) = match facts.setting(variable) {
            Fact::Seen { value, at } => (value, at),
            Fact::Absent => continue,
            Fact::Unknown(unknown) => {
                gap = gap.or(Some(unknown));
                continue;
            }
        };
        let names = match names {
            Fact::Seen { value: names, .. } => names.as_slice(),
            Fact::Absent => &[],
            Fact::Unknown(unknown) => {
                gap = gap.or_else(|| Some(unknown.clone()));
                continue;
            }
        };
        if !value.is_empty() && !takes(variable, &value, names) {
            list.push(described(&format!("{variable}={value}"), names), at);
        }
    }
    list.fact(gap.as_ref())
}

/// True if a list takes one of these names. Gloo takes whole names, and NCCL the beginnings of names.
fn takes(variable: &str, value: &str, names: &[&str]) -> bool {
    if variable.starts_with("GLOO") {
        return value.split(',').all(|name| names.contains(&name));
    }
    takes_any(value, names.iter().copied())
}
