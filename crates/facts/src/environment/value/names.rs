//! Lists of interfaces (`NCCL_SOCKET_IFNAME`, `src/misc/socket.cc`) and of RDMA devices (`NCCL_IB_HCA`,
//! `src/transport/net_ib`): prefixes separated by commas, after `^` those to leave out, after `=` whole names.

use model::Version;

use super::Misreading;

/// A list as `parseStringList` and its callers read it.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::environment) struct NameList<'v> {
    /// True after `^`: the names are left out.
    pub(in crate::environment) excludes: bool,
    /// True after `=`: the names are whole, not prefixes.
    pub(in crate::environment) is_exact: bool,
    /// Each name, and the text after its colon.
    pub(in crate::environment) entries: Vec<(&'v str, Option<&'v str>)>,
}

impl<'v> NameList<'v> {
    pub(in crate::environment) fn parse(value: &'v str) -> Self {
        let (excludes, rest) = value.strip_prefix('^').map_or((false, value), |rest| (true, rest));
        let (is_exact, rest) = rest.strip_prefix('=').map_or((false, rest), |rest| (true, rest));
        let entry = |entry: &'v str| match entry.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (entry, None),
        };
        Self { excludes, is_exact, entries: rest.split(',').map(entry).filter(|(name, _)| !name.is_empty()).collect() }
    }

    /// The effect of entries that match nothing.
    fn dead(&self, kind: &str, dead: &[&str]) -> Option<Misreading> {
        let quoted: Vec<_> = dead.iter().map(|name| format!("'{name}'")).collect();
        let names = quoted.join(" and ");
        match () {
            () if dead.is_empty() => None,
            () if self.excludes => {
                Some(Misreading::ignored(format!("no {kind} begins with {names}, so it excludes none")))
            }
            () => Some(Misreading::ignored(format!("no {kind} begins with {names}"))),
        }
    }
}

/// Interfaces for sockets. NCCL does not start if the list leaves none.
pub(super) fn interfaces(value: &str) -> Option<Misreading> {
    if value.len() == 1 {
        return Some(Misreading::ignored("NCCL ignores a value of one character"));
    }
    let list = NameList::parse(value);
    if value.is_empty() {
        return None;
    }
    if list.entries.is_empty() {
        let all = || Misreading::ignored("it names no interface, so NCCL takes all of them, lo first");
        return Some(if list.excludes { Misreading::stops("it excludes every interface") } else { all() });
    }
    // IFNAMSIZ in linux/if.h, and dev_valid_name() in the kernel.
    let is_name = |name: &str| name.len() <= 15 && is_plain(name, &['.', '-', '_', '@', '+']);
    let dead: Vec<_> = list.entries.iter().map(|(name, _)| *name).filter(|name| !is_name(name)).collect();
    if dead.len() == list.entries.len() && !list.excludes {
        let found = list.dead("interface", &dead)?;
        return Some(Misreading::stops(found.what));
    }
    let port =
        list.entries.iter().find_map(|(name, port)| Some(format!("NCCL reads {name} and ignores ':{}'", (*port)?)));
    list.dead("interface", &dead).or_else(|| port.map(Misreading::ignored))
}

/// RDMA devices and their ports. Without a device, NCCL uses TCP.
pub(super) fn devices(value: &str, version: &Version) -> Option<Misreading> {
    let list = NameList::parse(value);
    if list.entries.is_empty() {
        return list.excludes.then(|| Misreading::ignored("it excludes every device, so NCCL uses TCP"));
    }
    let dead = list.entries.iter().map(|(name, _)| *name).filter(|name| !is_plain(name, &['-', '_', '.']));
    let dead: Vec<_> = dead.collect();
    // An empty port is any port since 2.30.7, and port 0 before.
    let any_port = Version::parse("2.30.7").is_some_and(|first| *version >= first);
    let is_port = |port: &str| (port.is_empty() && any_port) || port.starts_with(|c: char| ('1'..='9').contains(&c));
    let port = list.entries.iter().find_map(|(name, port)| port.filter(|port| !is_port(port)).map(|port| (name, port)));
    let port = port.map(|(name, port)| Misreading::ignored(format!("{name} has no port '{port}'")));
    let uses_tcp = dead.len() == list.entries.len() && !list.excludes;
    let consequence = if uses_tcp { ", so NCCL uses TCP" } else { "" };
    let found = list.dead("device", &dead).map(|found| Misreading::ignored(found.what + consequence));
    found.or(port)
}

/// Returns true if a list, as `NCCL_SOCKET_IFNAME` and `NCCL_IB_HCA` have it, takes at least one of these names. A name is that
/// of an interface or of a device, or `DEVICE:PORT`.
pub fn takes_any<'n>(value: &str, mut names: impl Iterator<Item = &'n str>) -> bool {
    names.any(|name| takes_name(value, name))
}

/// Returns true if a list takes this name. A port without a number is any port.
pub(crate) fn takes_name(value: &str, name: &str) -> bool {
    let list = NameList::parse(value);
    let (name, port) = name.split_once(':').map_or((name, None), |(name, port)| (name, Some(port)));
    let matches = |(entry, wanted): &(&str, Option<&str>)| {
        let is_port = port.is_none() || wanted.is_none_or(|wanted| wanted.is_empty() || Some(wanted) == port);
        is_port && if list.is_exact { name == *entry } else { name.starts_with(entry) }
    };
    list.entries.is_empty() || list.entries.iter().any(matches) != list.excludes
}

/// Returns true for a list of what is not taken.
pub(crate) fn excludes(value: &str) -> bool {
    NameList::parse(value).excludes
}

/// Returns true for a list that matches no device of any host.
pub(in crate::environment) fn matches_nothing(value: &str) -> bool {
    let list = NameList::parse(value);
    let is_dead = |(name, _): &(&str, Option<&str>)| !is_plain(name, &['-', '_', '.']);
    if list.entries.is_empty() { list.excludes } else { !list.excludes && list.entries.iter().all(is_dead) }
}

fn is_plain(name: &str, others: &[char]) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(found: Option<Misreading>) -> String {
        found.map_or_else(
            || "-".to_owned(),
            |found| format!("{}{}", if found.stops { "stops: " } else { "" }, found.what),
        )
    }

    #[test]
    fn interfaces_are_prefixes() {
        for (value, expected) in [
            ("", "-"),
            ("eth0", "-"),
            ("^docker,lo", "-"),
            ("=eth0,ib0", "-"),
            ("^=lo", "-"),
            ("eth0,,eth1,", "-"),
            ("eth0.100", "-"),
            ("abcdefghijklmno", "-"),
            ("e", "NCCL ignores a value of one character"),
            ("^", "NCCL ignores a value of one character"),
            ("^=", "stops: it excludes every interface"),
            (",,", "it names no interface, so NCCL takes all of them, lo first"),
            ("=^lo", "stops: no interface begins with '^lo'"),
            (" eth0", "stops: no interface begins with ' eth0'"),
            ("eth0;eth1", "stops: no interface begins with 'eth0;eth1'"),
            ("eth0, eth1", "no interface begins with ' eth1'"),
            ("^docker, lo", "no interface begins with ' lo', so it excludes none"),
            ("eth*", "stops: no interface begins with 'eth*'"),
            ("a-name-of-16-byt", "stops: no interface begins with 'a-name-of-16-byt'"),
            ("eth0:1", "NCCL reads eth0 and ignores ':1'"),
        ] {
            assert_eq!(outcome(interfaces(value)), expected, "{value}");
        }
    }

    #[test]
    fn devices_are_prefixes_with_ports() {
        let version = |text| Version::parse(text).unwrap();
        for (value, expected) in [
            ("", "-"),
            ("=", "-"),
            ("mlx5", "-"),
            ("=mlx5_0:1,mlx5_1:2", "-"),
            ("^=mlx5_3", "-"),
            ("^", "it excludes every device, so NCCL uses TCP"),
            ("mlx5_0 mlx5_1", "no device begins with 'mlx5_0 mlx5_1', so NCCL uses TCP"),
            ("mlx5_0, mlx5_1", "no device begins with ' mlx5_1'"),
            ("^mlx5_0;mlx5_1", "no device begins with 'mlx5_0;mlx5_1', so it excludes none"),
            ("mlx5_0:x", "mlx5_0 has no port 'x'"),
            ("mlx5_0:0", "mlx5_0 has no port '0'"),
        ] {
            assert_eq!(outcome(devices(value, &version("2.27.5"))), expected, "{value}");
        }
        assert_eq!(outcome(devices("mlx5_0:", &version("2.27.5"))), "mlx5_0 has no port ''");
        assert_eq!(outcome(devices("mlx5_0:", &version("2.30.7"))), "-");
    }

    #[test]
    fn names_that_a_list_takes() {
        let takes = |value| takes_any(value, ["lo", "ens5", "ib0"].into_iter());
        for value in ["", "en", "=ens5", "eth0,ib", "^docker", "^lo,ens", "ib0:1"] {
            assert!(takes(value), "{value}");
        }
        for value in ["eth0", "=en", "^lo,ens,ib", "^=lo,ens5,ib0"] {
            assert!(!takes(value), "{value}");
        }
    }
}
