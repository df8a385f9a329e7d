//! The story of a job, from its logs: what each host used, and what followed from the first failure.

use std::collections::{BTreeMap, BTreeSet};

use super::overview::value_text;
use facts::records::JobHost;
use facts::{Facts, key};
use model::Fact;

/// Hosts of which each group of equals names some.
const NAMED: usize = 4;

/// The rows of the overview: name and text. A row with an empty name continues the one before it.
pub(super) fn rows(facts: &Facts) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    match facts.get(key::JOB_HOSTS) {
        Fact::Seen { value, .. } => {
            rows.extend(hosts(value));
            rows.extend(of_all(value));
        }
        Fact::Absent => {}
        Fact::Unknown(gap) => rows.push(("hosts", format!("unknown: {gap}"))),
    }
    let releases = facts.get(key::JOB_RELEASES).value().filter(|_| rows.iter().all(|(name, _)| *name != "NCCL"));
    rows.extend(releases.map(|releases| ("NCCL", releases.join(", "))));
    let counted = [("ranks", &*key::JOB_RANKS), ("nodes", &*key::JOB_NODES), ("busbw", &*key::JOB_BUSBW)];
    for (name, key) in counted {
        if let Fact::Seen { value, .. } = facts.view(key) {
            rows.push((name, value_text(value)));
        }
    }
    if let Some(consequences) = facts.get(key::JOB_CONSEQUENCES).value() {
        let texts = consequences.values().enumerate();
        rows.extend(texts.map(|(index, text)| (if index == 0 { "then" } else { "" }, text.clone())));
    }
    rows
}

/// Hosts that used the same, in one part each.
fn hosts(hosts: &[JobHost]) -> Vec<(&'static str, String)> {
    let mut groups: BTreeMap<Vec<(&'static str, String)>, Vec<&JobHost>> = BTreeMap::new();
    for host in hosts {
        groups.entry(used(host)).or_default().push(host);
    }
    let part = |(used, hosts): (Vec<(&'static str, String)>, Vec<&JobHost>)| {
        let names: Vec<String> = hosts.iter().take(NAMED).map(|host| name(host)).collect();
        let more = hosts.len().saturating_sub(NAMED);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        std::iter::once(("hosts", names.join(", ") + &more)).chain(used)
    };
    groups.into_iter().flat_map(part).collect()
}

/// The transports of all hosts, and the slowest start.
fn of_all(hosts: &[JobHost]) -> impl Iterator<Item = (&'static str, String)> {
    let transports: BTreeSet<&str> =
        hosts.iter().filter_map(|host| host.transports.as_deref()).flat_map(|all| all.split(", ")).collect();
    let transports = transports.into_iter().collect::<Vec<_>>().join(", ");
    let seconds = |init: &str| init.split(' ').next().and_then(|first| first.parse::<f64>().ok()).unwrap_or_default();
    let inits = hosts.iter().filter_map(|host| Some((host.init.as_deref()?, name(host))));
    let slowest = inits.max_by(|(one, _), (other, _)| seconds(one).total_cmp(&seconds(other)));
    let start = slowest.map(|(init, name)| {
        let (total, parts) = init.split_once(' ').unwrap_or((init, ""));
        ("start", format!("{total} seconds on {name} {parts}").trim_end().to_owned())
    });
    Some(("transports", transports)).filter(|(_, text)| !text.is_empty()).into_iter().chain(start)
}

fn name(host: &JobHost) -> String {
    let name = host.name.as_deref().unwrap_or("?");
    host.ranks.as_ref().map_or_else(|| name.to_owned(), |ranks| format!("{name} ({ranks})"))
}

/// What a host used, without its own addresses.
fn used(host: &JobHost) -> Vec<(&'static str, String)> {
    let without_addresses = |interfaces: &String| {
        let names = interfaces.split(", ").map(|interface| interface.split(' ').next().unwrap_or_default());
        names.collect::<Vec<_>>().join(", ")
    };
    let nccl = host.nccl.as_ref().map(|release| {
        let cuda = host.cuda.as_ref().map(|cuda| format!(", built with CUDA {cuda}")).unwrap_or_default();
        let driver =
            host.driver_cuda.as_ref().map(|cuda| format!(", the driver supports CUDA {cuda}")).unwrap_or_default();
        format!("{release}{cuda}{driver}")
    });
    let network = host.network.as_ref().map(|network| match &host.plugins {
        Some(plugins) => format!("{network}, with the plugin {plugins}"),
        None => network.clone(),
    });
    let interfaces =
        match (host.bootstrap.as_ref().map(without_addresses), host.sockets.as_ref().map(without_addresses)) {
            (Some(bootstrap), Some(sockets)) if bootstrap != sockets => {
                Some(format!("{bootstrap} (bootstrap), {sockets} (sockets)"))
            }
            (bootstrap, sockets) => bootstrap.or(sockets),
        };
    let direct = host.gpu_direct.as_ref().map(|devices| format!("{devices} (GPUDirect RDMA)"));
    let rails = host.rails.as_ref().filter(|_| host.devices.is_some()).map(|rails| format!("devices {rails}"));
    let rows = [
        ("NCCL", nccl),
        ("network", network),
        ("interfaces", interfaces),
        ("RDMA", host.devices.clone()),
        ("", direct),
        ("", host.gids.clone()),
        ("rails", rails),
        ("settings", host.settings.clone()),
    ];
    rows.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
}
