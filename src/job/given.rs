//! What is known beside the logs of a job: records of its hosts, and the variables that its launch sets.

use facts::launch::Setting;
use facts::machine::Record;
use facts::takes_any;
use model::Fact;
use nccllog::{HostStory, Job, NcclLog};

use crate::check::HostDescription;

/// What is given beside the logs of a job.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given<'g> {
    /// Hosts, of which those with a record are compared with the hosts of the job.
    pub hosts: &'g [HostDescription],
    /// Variables that the launch of the job sets.
    pub launch: &'g [Setting],
}

/// The kind of a failure to find an interface.
const NO_INTERFACE: &str = "interface_none";

/// Settings that name interfaces or RDMA devices of which the recorded host has none.
pub(super) fn unmatched_names(job: &Job, given: &Given<'_>) -> Vec<String> {
    let finds_none = job.causes.iter().chain(&job.consequences).any(|failure| failure.kind == NO_INTERFACE);
    let of_host = |host: &HostStory| {
        let Some((record, is_by_name)) = record_of(&host.name, given.hosts) else { return Vec::new() };
        let unmatched = |variable, names: &Fact<Vec<String>>| unmatched(host, variable, names, given.launch);
        let mut found = Vec::new();
        // A container with a network of its own has other devices than its host, and NCCL may have found them there.
        if host.log.addresses.is_empty() && (is_by_name || finds_none) {
            found.extend(unmatched("NCCL_SOCKET_IFNAME", &interfaces(record)));
        }
        if host.log.ib_devices.is_empty() {
            found.extend(unmatched("NCCL_IB_HCA", &devices(record)));
        }
        found
    };
    job.hosts.iter().flat_map(of_host).collect()
}

/// The record of a host, and true if the record has the name of the host. The only record is that of every host.
fn record_of<'g>(name: &str, hosts: &'g [HostDescription]) -> Option<(&'g Record, bool)> {
    let records: Vec<&Record> = hosts.iter().filter_map(HostDescription::record).collect();
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let is_named = |record: &&&Record| record.system.name.value().is_some_and(|own| short(own) == short(name));
    match (records.iter().find(is_named), &*records) {
        (Some(record), _) => Some((record, true)),
        (None, [record]) => Some((record, false)),
        (None, _) => None,
    }
}

fn interfaces(record: &Record) -> Fact<Vec<String>> {
    record.network.interfaces.clone().map(|all| all.into_iter().map(|interface| interface.name).collect())
}

fn devices(record: &Record) -> Fact<Vec<String>> {
    record.rdma.devices.clone().map(|all| all.into_iter().map(|device| device.name).collect())
}

/// A setting of a host, if it matches none of these names. What a record does not have is not compared.
fn unmatched(host: &HostStory, variable: &str, names: &Fact<Vec<String>>, launch: &[Setting]) -> Option<String> {
    let launched = || launch.iter().rev().find(|setting| setting.name == variable)?.value.clone();
    let value = host.log.variables.get(variable).cloned().or_else(launched)?;
    let names = match names {
        Fact::Seen { value, .. } => value.as_slice(),
        Fact::Absent => &[],
        Fact::Unknown(_) => return None,
    };
    if takes_any(&value, names.iter().map(String::as_str)) {
        return None;
    }
    let has = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Some(format!("{variable}={value} on {} (it has {has})", host.name))
}

/// Settings of the launch that hosts do not report, although their logs show that they read them.
pub(super) fn unread_settings(job: &Job, given: &Given<'_>) -> Vec<String> {
    // Without the subsystem ENV, no host reports a setting.
    if job.hosts.iter().all(|host| host.log.variables.is_empty()) {
        return Vec::new();
    }
    let unread = |setting: &Setting| {
        let is_silent = |host: &&HostStory| reads(&host.log, &setting.name) && !has(&host.log, &setting.name);
        let silent: Vec<&str> = job.hosts.iter().filter(is_silent).map(|host| &*host.name).collect();
        let is_set = setting.value.as_deref().is_none_or(|value| !value.is_empty());
        (is_set && !silent.is_empty()).then(|| format!("{} on {}", setting.name, super::some_of(&silent)))
    };
    given.launch.iter().filter_map(unread).collect()
}

fn has(log: &NcclLog, variable: &str) -> bool {
    log.variables.contains_key(variable)
}

/// Returns true if the log of a host shows that NCCL has come to the place where it reads a variable and reports it
/// (`misc/socket.cc`, `graph/tuning.cc` and `transport/net_ib` of 2.18 to 2.32).
fn reads(log: &NcclLog, variable: &str) -> bool {
    let has_devices = !log.ib_devices.is_empty() || log.ib_none.iter().any(|why| why.starts_with("No device"));
    match variable {
        "NCCL_SOCKET_IFNAME" => !log.bootstrap.is_empty() && !has(log, "NCCL_COMM_ID"),
        "NCCL_ALGO" | "NCCL_PROTO" => log.channels.is_some(),
        "NCCL_IB_HCA" => has_devices && !has(log, "NCCL_IB_DISABLE"),
        "NCCL_IB_DISABLE" => has_devices,
        _ => false,
    }
}
