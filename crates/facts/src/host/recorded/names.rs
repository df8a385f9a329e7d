//! Settings of the job that name interfaces or RDMA devices, compared with those of the host.

use model::Fact;

use crate::environment::unmatched_names;
use crate::machine::Record;
use crate::{Facts, key};

/// The unmatched settings, for a process in the network of the host. A container with a network of its own has other
/// interfaces, and the devices that it is given.
pub(super) fn produce(record: &Record, facts: &mut Facts) {
    let interfaces = record.network.interfaces.as_ref();
    let interfaces = interfaces.map(|all| all.iter().map(|interface| interface.name.as_str()).collect());
    let devices = record.rdma.devices.as_ref().map(|all| all.iter().map(|device| device.name.as_str()).collect());
    let compared =
        [("NCCL_SOCKET_IFNAME", &interfaces), ("GLOO_SOCKET_IFNAME", &interfaces), ("NCCL_IB_HCA", &devices)];
    let described = |setting: &str, names: &[&str]| {
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("{setting} (the host has {names})")
    };
    let unmatched = unmatched_names(facts, &compared, described);
    let found = match facts.get(key::CONTAINER_NETWORK) {
        Fact::Seen { value: network, .. } if network == "own" => Fact::Absent,
        Fact::Unknown(gap) if unmatched != Fact::Absent => Fact::Unknown(gap.clone()),
        _ => unmatched,
    };
    facts.insert(key::HOST_UNMATCHED_NAMES, found);
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
        let mut facts = Facts::default();
        facts.insert(key::ENV_EFFECTIVE, Fact::unknown("a script computes it"));
        produce(&record(host), &mut facts);
        assert_eq!(said(facts.get(key::HOST_UNMATCHED_NAMES).clone()), "unknown: a script computes it");
        facts.insert(key::ENV_EFFECTIVE, Fact::known(BTreeMap::from([("NCCL_IB_HCA".to_owned(), "x".to_owned())])));
        facts.insert(key::CONTAINER_NETWORK, Fact::unknown("a template computes it"));
        produce(&record(host), &mut facts);
        assert_eq!(said(facts.get(key::HOST_UNMATCHED_NAMES).clone()), "unknown: a template computes it");
        let unknown = "network: {interfaces: {unknown: x}}";
        assert_eq!(unmatched(unknown, "NCCL_SOCKET_IFNAME", "eth0", "host"), "unknown: x");
    }
}
