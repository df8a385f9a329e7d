//! Interface lists of `NCCL_SOCKET_IFNAME` that lead to loopback, whose address other hosts cannot reach.

use super::super::settings::Settings;
use super::super::{Facts, key};
use super::list::SettingList;
use super::value::names::NameList;

/// Interface lists that leave only loopback, or that admit it first.
pub(super) fn produce(settings: &Settings, facts: &mut Facts) {
    let mut only = SettingList::default();
    let mut admitted = SettingList::default();
    if let Some(setting) = settings.effective().get("NCCL_SOCKET_IFNAME")
        && let Some(value) = &setting.value
    {
        let text = format!("NCCL_SOCKET_IFNAME={value}");
        match treatment(value) {
            Some(Treatment::Only) => only.push(text, [setting.site.clone()]),
            Some(Treatment::Admitted) => admitted.push(text, [setting.site.clone()]),
            None => {}
        }
    }
    let gap = settings.gap_of("NCCL_SOCKET_IFNAME");
    facts.insert(key::ENV_LOOPBACK_ONLY, only.fact(gap.as_ref()));
    facts.insert(key::ENV_LOOPBACK_ADMITTED, admitted.fact(gap.as_ref()));
}

/// How a list treats loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Treatment {
    /// It leaves nothing else.
    Only,
    /// It replaces NCCL's own exclusions and does not exclude `lo`, the first interface of the system.
    Admitted,
}

/// How a list treats loopback; `None` if NCCL chooses another interface, or ignores the value.
fn treatment(value: &str) -> Option<Treatment> {
    if value.len() < 2 {
        return None;
    }
    let list = NameList::parse(value);
    let names = || list.entries.iter().map(|(name, _)| *name);
    let is_loopback = |name: &str| if list.is_exact { name == "lo" } else { "lo".starts_with(name) };
    match list.excludes {
        true if list.entries.is_empty() || names().any(is_loopback) => None,
        true => Some(Treatment::Admitted),
        false if !list.entries.is_empty() && names().all(|name| name == "lo") => Some(Treatment::Only),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_admitted_or_alone() {
        for (value, expected) in [
            ("lo", Some(Treatment::Only)),
            ("=lo", Some(Treatment::Only)),
            ("lo:1,lo", Some(Treatment::Only)),
            ("eth0,lo", None),
            ("local", None),
            ("", None),
            ("^", None),
            ("^=", None),
            ("^docker0", Some(Treatment::Admitted)),
            ("^e", Some(Treatment::Admitted)),
            ("^xlo", Some(Treatment::Admitted)),
            ("^docker,local1", Some(Treatment::Admitted)),
            ("^=l,docker0", Some(Treatment::Admitted)),
            ("^l", None),
            ("^docker0,lo", None),
            ("^=lo,docker0", None),
        ] {
            assert_eq!(treatment(value), expected, "{value}");
        }
    }
}
