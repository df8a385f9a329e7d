//! Interface lists of `NCCL_SOCKET_IFNAME` that lead to loopback, whose address other hosts cannot reach.

use super::value::names::NameList;

/// How a list treats loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Treatment {
    /// It leaves nothing else.
    Only,
    /// It replaces NCCL's own exclusions and does not exclude `lo`, the first interface of the system.
    Admitted,
}

/// How a list treats loopback; `None` if NCCL chooses another interface, or ignores the value.
pub(super) fn treatment(value: &str) -> Option<Treatment> {
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
