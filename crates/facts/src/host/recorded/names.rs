//! Settings of the job that name interfaces or RDMA devices, compared with those of the host.

use model::{Fact, Gap, Value};

use super::list;
use crate::machine::Record;
use crate::{Facts, key, takes_any};

/// The unmatched settings, for a process in the network of the host. A container with a network of its own has other
/// interfaces, and the devices that it is given.
pub(super) fn produce(record: &Record, facts: &mut Facts) {
    let is_own = facts.get(key::CONTAINER_NETWORK).value().is_some_and(|network| network == "own");
    let interfaces = record.network.interfaces.as_ref();
    let interfaces = interfaces.map(|all| all.iter().map(|interface| interface.name.as_str()).collect::<Vec<_>>());
    let devices =
        record.rdma.devices.as_ref().map(|all| all.iter().map(|device| device.name.as_str()).collect::<Vec<_>>());
    let settings = match facts.certain(&key::ENV_EFFECTIVE) {
        Fact::Seen { value: Value::Map(settings), at } => Some((settings.clone(), at.clone())),
        _ => None,
    };
    let Some((settings, sites)) = settings.filter(|_| !is_own) else {
        facts.insert(key::HOST_UNMATCHED_NAMES, Fact::Absent);
        return;
    };
    let compared =
        [("NCCL_SOCKET_IFNAME", &interfaces), ("GLOO_SOCKET_IFNAME", &interfaces), ("NCCL_IB_HCA", &devices)];
    let mut unmatched = Vec::new();
    let mut gap: Option<Gap> = None;
    for (variable, names) in compared {
        let Some(Value::Text(value)) = settings.get(variable).filter(|value| **value != Value::Text(String::new()))
        else {
            continue;
        };
        match names {
            Fact::Unknown(unknown) => _ = gap.get_or_insert(unknown.clone()),
            Fact::Absent => unmatched.push(described(variable, value, &[])),
            Fact::Seen { value: names, .. } => {
                unmatched.extend((!takes(variable, value, names)).then(|| described(variable, value, names)));
            }
        }
    }
    let found = match gap {
        Some(gap) if unmatched.is_empty() => Fact::Unknown(gap),
        _ => Fact::seen(unmatched, sites),
    };
    facts.insert(key::HOST_UNMATCHED_NAMES, list(found));
}

/// True if a list takes one of these names. Gloo takes whole names, and NCCL the beginnings of names.
fn takes(variable: &str, value: &str, names: &[&str]) -> bool {
    if variable.starts_with("GLOO") {
        return value.split(',').all(|name| names.contains(&name));
    }
    takes_any(value, names.iter().copied())
}

fn described(variable: &str, value: &str, names: &[&str]) -> String {
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    format!("{variable}={value} (the host has {names})")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{record, said};
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn names_are_compared_with_those_of_the_host() {
        let host = "network: {interfaces: [{name: lo}, {name: ens5}]}\nrdma: {devices: [{name: mlx5_0, ports: []}]}";
        let unmatched = |record_text: &str, name: &str, value: &str, network: &str| {
            let mut facts = Facts::default();
            let settings = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            facts.insert(key::ENV_EFFECTIVE, Fact::known(settings));
            facts.insert(key::CONTAINER_NETWORK, Fact::known(network.to_owned()));
            produce(&record(record_text), &mut facts);
            said(facts.get(key::HOST_UNMATCHED_NAMES).clone())
        };
        for (name, value, expected) in [
            ("NCCL_SOCKET_IFNAME", "ens", "absent"),
            ("NCCL_SOCKET_IFNAME", "eth0", r#"["NCCL_SOCKET_IFNAME=eth0 (the host has lo, ens5)"]"#),
            ("NCCL_SOCKET_IFNAME", "", "absent"),
            ("GLOO_SOCKET_IFNAME", "ens5", "absent"),
            ("GLOO_SOCKET_IFNAME", "ens5,ens6", r#"["GLOO_SOCKET_IFNAME=ens5,ens6 (the host has lo, ens5)"]"#),
            ("NCCL_IB_HCA", "mlx5", "absent"),
            ("NCCL_IB_HCA", "=mlx5_9", r#"["NCCL_IB_HCA==mlx5_9 (the host has mlx5_0)"]"#),
        ] {
            assert_eq!(unmatched(host, name, value, "host"), expected, "{name}={value}");
            assert_eq!(unmatched(host, name, value, "own"), "absent", "{name}={value} in another network");
        }
        let unknown = "network: {interfaces: {unknown: x}}";
        assert_eq!(unmatched(unknown, "NCCL_SOCKET_IFNAME", "eth0", "host"), "unknown: x");
    }
}
