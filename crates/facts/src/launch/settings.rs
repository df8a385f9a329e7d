//! Settings of a launch that do not suit what it gives the container.

use std::collections::BTreeSet;

use model::{Fact, Gap};

use super::given::{Given, Starter};
use super::{LaunchContainer, LaunchFile};
use crate::environment::{SettingList, unmatched_names};
use crate::{Facts, key};

/// Adds the facts about them, after those about what the containers get.
pub(super) fn add(file: &LaunchFile, containers: &[LaunchContainer], facts: &mut Facts) {
    let has_more = containers.iter().any(|one| one.given.has_more_networks);
    let interfaces = if has_more { Fact::Absent } else { unmatched_interfaces(facts) };
    facts.insert(key::CONTAINER_UNMATCHED_NAMES, interfaces);
    facts.insert(key::CONTAINER_RDMA_NODES_FEW, few_rdma_nodes(facts));
    let gets_all = containers.iter().any(|one| one.given.is_privileged || !one.given.starter.isolates());
    facts.insert(key::CONTAINER_ABSENT_GPUS, if gets_all { Fact::Absent } else { absent_gpus(facts) });
    facts.insert(key::CONTAINER_NOT_PASSED, not_passed(file, containers));
    facts.insert(key::CONTAINER_LOCAL_ADDRESS, local_address(file, facts));
}

/// Settings of interfaces that leave none of a network of its own, in which Docker and the plugins of Kubernetes name the only
/// interface eth0.
fn unmatched_interfaces(facts: &Facts) -> Fact<Vec<String>> {
    let names = Fact::known(vec!["eth0"]);
    let compared = [("NCCL_SOCKET_IFNAME", &names), ("GLOO_SOCKET_IFNAME", &names)];
    let unmatched = unmatched_names(facts, &compared, |setting, _| setting.to_owned());
    match facts.get(key::CONTAINER_NETWORK) {
        Fact::Seen { value: network, .. } if network != "host" => unmatched,
        Fact::Unknown(gap) if unmatched != Fact::Absent => Fact::Unknown(gap.clone()),
        _ => Fact::Absent,
    }
}

/// A setting of more RDMA devices than the container gets device nodes, of which each device has one.
fn few_rdma_nodes(facts: &Facts) -> Fact<Vec<String>> {
    let Fact::Seen { value: given, at } = facts.get(key::CONTAINER_RDMA) else { return Fact::Absent };
    let is_single = |path: &String| path.starts_with("/dev/infiniband/");
    let nodes = given.iter().filter(|path| path.starts_with("/dev/infiniband/uverbs")).count();
    facts.setting("NCCL_IB_HCA").and_then(|value, _| {
        let devices: BTreeSet<_> =
            value.trim_start_matches('=').split(',').filter_map(|name| name.split(':').next()).collect();
        if !value.starts_with('^') && given.iter().all(is_single) && nodes < devices.len() {
            return Fact::Seen { value: vec![format!("NCCL_IB_HCA={value}: {}", given.join(", "))], at: at.clone() };
        }
        Fact::Absent
    })
}

/// A choice of GPUs that begins with an index which the container does not have: CUDA counts the GPUs of the container from 0,
/// and shows those before the first index that does not exist.
fn absent_gpus(facts: &Facts) -> Fact<Vec<String>> {
    // A UUID is not compared.
    let first = |value: &str| value.split(',').next().and_then(|index| index.trim().parse::<i64>().ok()).unwrap_or(0);
    match (facts.setting("CUDA_VISIBLE_DEVICES"), facts.get(key::CONTAINER_GPUS)) {
        (Fact::Seen { value, at }, Fact::Seen { value: count, .. }) if first(&value) >= *count => {
            Fact::Seen { value: vec![format!("CUDA_VISIBLE_DEVICES={value}")], at }
        }
        (Fact::Seen { value, .. }, Fact::Unknown(gap)) if first(&value) > 0 => Fact::Unknown(gap.clone()),
        (Fact::Absent | Fact::Seen { .. }, _) | (_, Fact::Absent) => Fact::Absent,
        (Fact::Unknown(gap), _) => Fact::Unknown(gap),
    }
}

/// Variables that a script exports and does not pass to the container that it starts: an engine passes only what `-e` names.
fn not_passed(file: &LaunchFile, containers: &[LaunchContainer]) -> Fact<Vec<String>> {
    let is_engine = containers.iter().all(|container| container.given.starter == Starter::Docker);
    let mut list = SettingList::default();
    for setting in file.unpassed.iter().filter(|setting| is_engine && crate::is_judged(&setting.name)) {
        list.push(setting.name.clone(), [setting.site.clone()]);
    }
    let hides = |given: &Given| given.unread.is_some() || given.hides_variables;
    let fact = list.fact(None);
    match containers.iter().find(|container| hides(&container.given)) {
        Some(container) if matches!(fact, Fact::Seen { .. }) => {
            let why =
                format!("{}:{}: a variable holds options, which may pass more variables", file.name, container.line);
            Fact::Unknown(Gap::new(why).settled_by("write what it holds into the file"))
        }
        _ => fact,
    }
}

/// The address of the first rank, if it leads to the host itself: a loopback address, or the name of a service, all of which
/// Compose starts on one host. An address that a script or a cluster computes is taken for that of a node.
fn local_address(file: &LaunchFile, facts: &Facts) -> Fact<String> {
    let services: Vec<_> = file.containers.iter().filter(|one| one.given.starter == Starter::Compose).collect();
    let is_service = |name: &str| services.iter().any(|service| service.name == name);
    let is_loopback = |name: &str| matches!(name, "localhost" | "::1") || name.starts_with("127.");
    match facts.setting("MASTER_ADDR") {
        Fact::Seen { value, at } if is_loopback(&value) || is_service(&value) => Fact::Seen { value, at },
        Fact::Unknown(gap) if !services.is_empty() => Fact::Unknown(gap),
        _ => Fact::Absent,
    }
}
