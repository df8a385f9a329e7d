//! What settings and the launch name of the host: interfaces, RDMA devices and their GIDs, GPUs, CPUs and NUMA nodes, compared
//! with those that a recorded host has.

use std::collections::BTreeSet;

use model::{Fact, Site, Table};
use serde::Deserialize;

use crate::environment::{excludes, takes_name, unmatched_names};
use crate::machine::Record;
use crate::machine::network::Interface;
use crate::machine::rdma::{Device, Port};
use crate::{Facts, key, table};

/// Interfaces that reach no other host: `rules/tables/interfaces.yaml`.
#[derive(Deserialize)]
pub(crate) struct LocalInterfaces {
    has_address: Vec<String>,
    has_none: Vec<String>,
}

pub(crate) static LOCAL: Table<LocalInterfaces> = table!("interfaces");

/// Variables that choose GPUs by their index.
const GPU_CHOICES: &[&str] = &["CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"];

/// What names nothing of the host, and what names too much. A container with a network of its own has other interfaces, and the
/// devices that it is given.
pub(super) fn produce(record: &Record, facts: &mut Facts) {
    let named = in_network(facts, network_names(record, facts));
    let doubtful = in_network(facts, interface_choice(record, facts));
    let unmatched = and(named, and(beyond_gpus(record, facts), beyond_nodes(record, facts)));
    facts.insert(key::HOST_UNMATCHED_NAMES, unmatched);
    facts.insert(key::HOST_DOUBTFUL_NAMES, and(doubtful, beyond_gids(record, facts)));
}

/// Two lists as one. What is unknown counts only if nothing is known.
fn and(first: Fact<Vec<String>>, second: Fact<Vec<String>>) -> Fact<Vec<String>> {
    match (first, second) {
        (Fact::Seen { value, at }, Fact::Seen { value: more, at: also }) => {
            Fact::Seen { value: [value, more].concat(), at: [at, also].concat() }
        }
        (Fact::Seen { value, at }, _) | (_, Fact::Seen { value, at }) => Fact::Seen { value, at },
        (Fact::Unknown(gap), _) | (_, Fact::Unknown(gap)) => Fact::Unknown(gap),
        (Fact::Absent, Fact::Absent) => Fact::Absent,
    }
}

/// The list, if the process is in the network of the host.
fn in_network(facts: &Facts, list: Fact<Vec<String>>) -> Fact<Vec<String>> {
    match facts.get(key::CONTAINER_NETWORK) {
        Fact::Seen { value: network, .. } if network != "host" => Fact::Absent,
        Fact::Unknown(gap) if list != Fact::Absent => Fact::Unknown(gap.clone()),
        _ => list,
    }
}

fn network_names(record: &Record, facts: &Facts) -> Fact<Vec<String>> {
    let interfaces = record.network.interfaces.as_ref();
    let interfaces = interfaces.map(|all| all.iter().map(|interface| interface.name.as_str()).collect());
    let devices: Fact<Vec<String>> = record.rdma.devices.clone().map(|all| {
        let ports = all.into_iter().map(|device| match device.ports.value() {
            Some(ports) if !ports.is_empty() => {
                ports.iter().map(|port| format!("{}:{}", device.name, port.number)).collect()
            }
            _ => vec![device.name],
        });
        ports.flatten().collect()
    });
    let devices = devices.as_ref().map(|all| all.iter().map(String::as_str).collect());
    let compared =
        [("NCCL_SOCKET_IFNAME", &interfaces), ("GLOO_SOCKET_IFNAME", &interfaces), ("NCCL_IB_HCA", &devices)];
    let described = |setting: &str, names: &[&str]| {
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("{setting} (the host has {names})")
    };
    unmatched_names(facts, &compared, described)
}

/// A list with one text, if there is one.
fn one(text: Option<String>, at: Vec<Site>) -> Fact<Vec<String>> {
    text.map_or(Fact::Absent, |text| Fact::Seen { value: vec![text], at })
}

/// A choice of interfaces that leaves only those which reach no other host, or that leaves out some and takes one of these, or
/// one of a RoCE NIC, beside others: NCCL announces the first that the kernel lists, whether other hosts reach it or not.
fn interface_choice(record: &Record, facts: &Facts) -> Fact<Vec<String>> {
    let name = "NCCL_SOCKET_IFNAME";
    let (value, at) = match facts.setting(name) {
        Fact::Seen { value, at } if !value.is_empty() => (value, at),
        Fact::Unknown(gap) => return Fact::Unknown(gap),
        _ => return Fact::Absent,
    };
    let interfaces = match &record.network.interfaces {
        Fact::Seen { value, .. } => value,
        Fact::Absent => return Fact::Absent,
        Fact::Unknown(gap) => return Fact::Unknown(gap.clone()),
    };
    let begins = |prefixes: &[String], name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
    let may_have_address = |interface: &&Interface| {
        let is_up = interface.state.value().is_none_or(|state| state != "down");
        let is_bare = begins(&LOCAL.has_none, &interface.name) && !begins(&LOCAL.has_address, &interface.name);
        is_up && interface.master.value().is_none() && !is_bare
    };
    let taken = interfaces.iter().filter(may_have_address).filter(|interface| takes_name(&value, &interface.name));
    let taken: Vec<&str> = taken.map(|interface| interface.name.as_str()).filter(|name| *name != "lo").collect();
    let is_local = |name: &&str| begins(&LOCAL.has_address, name);
    let roce: Vec<&str> =
        roce_ports(record).filter_map(|(_, port)| port.interface.value()).map(String::as_str).collect();
    let text = if !taken.is_empty() && taken.iter().all(is_local) {
        Some(format!("{name}={value} takes only {}, which reach no other host", taken.join(", ")))
    } else if excludes(&value) && taken.len() > 1 && taken.iter().any(|name| is_local(name) || roce.contains(name)) {
        Some(format!("{name}={value} takes {}", taken.join(", ")))
    } else {
        None
    };
    one(text, at)
}

/// Indices of GPUs beyond those that the process has: the container's, or the host's.
fn beyond_gpus(record: &Record, facts: &Facts) -> Fact<Vec<String>> {
    let of_host = record.gpus.list.value().and_then(|all| i64::try_from(all.len()).ok());
    let of_container = facts.get(key::CONTAINER_GPUS).value().copied();
    let texts = GPU_CHOICES.iter().map(|name| {
        // NVIDIA's runtime counts the GPUs of the host, and CUDA those that the runtime has chosen.
        let (count, whose) = match of_container.filter(|_| *name == "CUDA_VISIBLE_DEVICES") {
            Some(count) => (Some(count), "container"),
            None => (of_host, "host"),
        };
        facts.setting(name).and_then(|value, at| {
            let is_beyond = |index: &str| index.trim().parse::<i64>().is_ok_and(|index| Some(index) >= count);
            let text = |count| format!("{name}={value} (the {whose} has {count} GPUs)");
            one(count.filter(|_| value.split(',').any(is_beyond)).map(text), at)
        })
    });
    texts.fold(Fact::Absent, and)
}

/// CPUs and NUMA nodes of the launch that the host does not have. The engine then refuses to start the container, and numactl
/// the program.
fn beyond_nodes(record: &Record, facts: &Facts) -> Fact<Vec<String>> {
    let nodes = record.memory.nodes.value().map(Vec::as_slice).unwrap_or_default();
    let all_cpus = nodes.iter().filter_map(|node| node.processors.value()).flat_map(|list| cpu_numbers(list)).collect();
    let all_nodes = nodes.iter().map(|node| node.number).collect();
    and(
        beyond("CPUs", facts.get(key::CONTAINER_CPU_SET), &all_cpus),
        beyond("NUMA nodes", facts.get(key::CONTAINER_NUMA_NODES), &all_nodes),
    )
}

/// Lists of a launch with numbers that are not among those of the host, if those are known.
fn beyond(what: &str, lists: &Fact<Vec<String>>, all: &BTreeSet<u32>) -> Fact<Vec<String>> {
    let Fact::Seen { value: lists, at } = lists else { return Fact::Absent };
    let is_beyond = |list: &&String| !all.is_empty() && cpu_numbers(list).iter().any(|number| !all.contains(number));
    let last = all.last().copied().unwrap_or_default();
    let has = if last == 0 { "0".to_owned() } else { format!("0-{last}") };
    let texts: Vec<_> =
        lists.iter().filter(is_beyond).map(|list| format!("{what} {list} (the host has {has})")).collect();
    if texts.is_empty() { Fact::Absent } else { Fact::Seen { value: texts, at: at.clone() } }
}

/// Most CPUs of a list that are read; Linux supports 8192.
const MOST_CPUS: u32 = 1 << 13;

/// The numbers of a list such as `0-3,8`.
pub fn cpu_numbers(list: &str) -> BTreeSet<u32> {
    let range = |part: &str| {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        let first: u32 = first.parse().ok()?;
        let last: u32 = last.parse().ok()?;
        Some(first..=last.min(MOST_CPUS))
    };
    list.split(',').filter_map(range).flatten().collect()
}

/// The ports of RDMA devices on Ethernet.
fn roce_ports(record: &Record) -> impl Iterator<Item = (&Device, &Port)> {
    let devices = record.rdma.devices.value().into_iter().flatten();
    let ports = devices.flat_map(|device| device.ports.value().into_iter().flatten().map(move |port| (device, port)));
    ports.filter(|(_, port)| port.link_layer.value().is_some_and(|layer| layer == "Ethernet"))
}

/// The index of a GID beyond the entries of every active RoCE port. Entries may have holes, so this is no certainty.
fn beyond_gids(record: &Record, facts: &Facts) -> Fact<Vec<String>> {
    let name = "NCCL_IB_GID_INDEX";
    if let Fact::Unknown(gap) = &record.rdma.devices {
        return facts.setting(name).and_then(|_, _| Fact::Unknown(gap.clone()));
    }
    let roce = roce_ports(record).filter(|(_, port)| port.state.value().is_some_and(|state| state == "ACTIVE"));
    let counts: Vec<(String, usize)> = roce
        .filter_map(|(device, port)| Some((format!("{}:{}", device.name, port.number), *port.gids.value()?)))
        .collect();
    facts.setting(name).and_then(|value, at| {
        let index: Option<usize> = value.trim().parse().ok();
        let is_beyond = |index: &usize| !counts.is_empty() && counts.iter().all(|(_, count)| count <= index);
        let text = index.filter(is_beyond).map(|_| {
            let shown: Vec<_> = counts.iter().map(|(port, count)| format!("{port} has {count} GIDs")).collect();
            format!("{name}={value} ({})", shown.join(", "))
        });
        one(text, at)
    })
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

    /// The facts of a host about these settings, beside `more`.
    fn names(record_text: &str, settings: &[(&str, &str)], more: impl FnOnce(&mut Facts)) -> (String, String) {
        let mut facts = Facts::default();
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        facts.insert(key::ENV_EFFECTIVE, Fact::known(settings));
        more(&mut facts);
        produce(&record(record_text), &mut facts);
        let of = |key: key::Key<Vec<String>>| said(facts.get(key).clone());
        (of(key::HOST_UNMATCHED_NAMES), of(key::HOST_DOUBTFUL_NAMES))
    }

    #[test]
    fn a_port_of_an_rdma_device_is_compared() {
        let host = r#"rdma: {devices: [{name: mlx5_0, ports: [{number: "1"}]}]}"#;
        for (value, expected) in [
            ("mlx5_0:1", "absent"),
            ("mlx5:1", "absent"),
            ("=mlx5_0", "absent"),
            ("^mlx5_1", "absent"),
            ("mlx5_0:2", r#"["NCCL_IB_HCA=mlx5_0:2 (the host has mlx5_0:1)"]"#),
            ("^mlx5_0", r#"["NCCL_IB_HCA=^mlx5_0 (the host has mlx5_0:1)"]"#),
        ] {
            assert_eq!(names(host, &[("NCCL_IB_HCA", value)], |_| ()).0, expected, "{value}");
        }
    }

    #[test]
    fn interfaces_that_reach_no_other_host_are_doubtful() {
        let host =
            "network: {interfaces: [{name: lo}, {name: docker0}, {name: eth0, state: up}, {name: eth1, state: down},
            {name: rdma0}, {name: bond0}, {name: eth2, master: bond0}, {name: veth1}, {name: cilium_host}]}
rdma: {devices: [{name: m, ports: [{number: '1', link_layer: Ethernet, interface: rdma0}]}]}";
        for (value, expected) in [
            ("eth0", "absent"),
            ("^lo,docker,cilium,rdma,bond", "absent"),
            (
                "docker,cilium",
                r#"["NCCL_SOCKET_IFNAME=docker,cilium takes only docker0, cilium_host, which reach no other host"]"#,
            ),
            ("^docker,cilium", r#"["NCCL_SOCKET_IFNAME=^docker,cilium takes eth0, rdma0, bond0"]"#),
            ("^docker,cilium,rdma", "absent"),
            ("^rdma", r#"["NCCL_SOCKET_IFNAME=^rdma takes docker0, eth0, bond0, cilium_host"]"#),
            ("eth,rdma", "absent"),
            ("lo", "absent"),
        ] {
            let (_, doubtful) = names(host, &[("NCCL_SOCKET_IFNAME", value)], |_| ());
            assert_eq!(doubtful, expected, "{value}");
            let own = |facts: &mut Facts| facts.insert(key::CONTAINER_NETWORK, Fact::known("own".to_owned()));
            assert_eq!(names(host, &[("NCCL_SOCKET_IFNAME", value)], own).1, "absent", "{value}");
        }
        let unknown = "network: {interfaces: {unknown: x}}";
        assert_eq!(names(unknown, &[("NCCL_SOCKET_IFNAME", "^lo")], |_| ()).1, "unknown: x");
    }

    #[test]
    fn indices_of_gpus_and_cpus_are_compared() {
        let host = "gpus: {list: [{model: a}, {model: a}]}\nmemory: {nodes: [{number: 0, processors: '0-3,6'}]}";
        for (settings, gpus, set, expected) in [
            (&[("CUDA_VISIBLE_DEVICES", "0,1")], None, "0-3", "absent"),
            (&[("CUDA_VISIBLE_DEVICES", "0,2")], None, "6", r#"["CUDA_VISIBLE_DEVICES=0,2 (the host has 2 GPUs)"]"#),
            (
                &[("CUDA_VISIBLE_DEVICES", "1")],
                Some(1),
                "0",
                r#"["CUDA_VISIBLE_DEVICES=1 (the container has 1 GPUs)"]"#,
            ),
            (&[("NVIDIA_VISIBLE_DEVICES", "1")], Some(1), "0", "absent"),
            (&[("NVIDIA_VISIBLE_DEVICES", "all")], None, "2-5", r#"["CPUs 2-5 (the host has 0-6)"]"#),
        ] {
            let more = |facts: &mut Facts| {
                facts.insert(key::CONTAINER_GPUS, gpus.map_or(Fact::Absent, Fact::known));
                facts.insert(key::CONTAINER_CPU_SET, Fact::known(vec![set.to_owned()]));
            };
            assert_eq!(names(host, settings, more).0, expected, "{settings:?} {set}");
        }
    }

    #[test]
    fn numa_nodes_are_compared() {
        let nodes = |host: &str, set: &str| {
            let more = |facts: &mut Facts| facts.insert(key::CONTAINER_NUMA_NODES, Fact::known(vec![set.to_owned()]));
            names(host, &[], more).0
        };
        let host = "memory: {nodes: [{number: 0}, {number: 1}]}";
        assert_eq!(nodes(host, "0-1"), "absent");
        assert_eq!(nodes(host, "0,2"), r#"["NUMA nodes 0,2 (the host has 0-1)"]"#);
        assert_eq!(nodes("memory: {nodes: [{number: 0}]}", "1"), r#"["NUMA nodes 1 (the host has 0)"]"#);
        assert_eq!(nodes("memory: {nodes: {unknown: x}}", "9"), "absent");
    }

    #[test]
    fn the_index_of_a_gid_is_compared_with_roce_ports() {
        let port = |layer: &str, gids: usize| {
            format!(
                r#"rdma: {{devices: [{{name: m, ports: [{{number: "1", state: ACTIVE, link_layer: {layer}, gids: {gids}}}]}}]}}"#
            )
        };
        for (host, value, expected) in [
            (port("Ethernet", 4), "3", "absent"),
            (port("Ethernet", 3), "3", r#"["NCCL_IB_GID_INDEX=3 (m:1 has 3 GIDs)"]"#),
            (port("Ethernet", 3), "-1", "absent"),
            (port("InfiniBand", 1), "3", "absent"),
        ] {
            assert_eq!(names(&host, &[("NCCL_IB_GID_INDEX", value)], |_| ()).1, expected, "{host} {value}");
        }
    }
}
