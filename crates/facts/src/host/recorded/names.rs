//! Settings of the job that name interfaces, RDMA devices, GIDs or GPUs, compared with those of the host.

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
