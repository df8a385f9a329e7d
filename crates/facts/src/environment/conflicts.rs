//! Conflicting settings.

use std::collections::BTreeMap;

use crate::launch::Setting;
use model::{Site, Version};

use super::super::settings::{Settings, number as read};
use super::super::{Facts, key};
use super::list::SettingList;
use super::name::Readers;

/// Effective settings, by name.
pub(super) type Effective<'s> = BTreeMap<&'s str, &'s Setting>;

pub(super) fn produce(settings: &Settings, readers: &Readers<'_>, facts: &mut Facts) {
    let mut list = SettingList::default();
    let version = readers.nccl_version.as_ref();
    for (text, at) in find(&settings.effective(), version) {
        list.push(text, at);
    }
    facts.insert(key::ENV_CONTRADICTIONS, list.fact(settings.gap.as_ref()));
}

/// Sentences about conflicts, each with its sites.
fn find(effective: &Effective<'_>, version: Option<&Version>) -> Vec<(String, Vec<Site>)> {
    let mut found = Vec::new();
    let text =
        |name: &str| effective.get(name).and_then(|setting| setting.value.as_deref()).filter(|text| !text.is_empty());
    let number = |name: &str| text(name).and_then(read);
    let mut tell = |names: &[&str], what: String| {
        let at = names.iter().filter_map(|name| effective.get(name)).map(|setting| setting.site.clone()).collect();
        found.push((what, at));
    };

    let off = ["NCCL_IB_DISABLE"].into_iter().find(|name| number(name).is_some_and(|number| number != 0));
    let sockets = text("NCCL_NET").filter(|net| net.eq_ignore_ascii_case("socket")).map(|_| "NCCL_NET");
    if let Some(switch) = off.or(sockets) {
        for name in effective.keys().filter(|name| is_for_infiniband(name)) {
            tell(&[switch, name], format!("{name} has no effect: {switch} switches InfiniBand and RoCE off"));
        }
    }
    if number("NCCL_P2P_DISABLE") == Some(1) && text("NCCL_P2P_LEVEL").is_some() {
        tell(&["NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL"], "NCCL_P2P_LEVEL has no effect: NCCL_P2P_DISABLE wins".to_owned());
    }
    for (least, most) in [("NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"), ("NCCL_MIN_CTAS", "NCCL_MAX_CTAS")] {
        if let (Some(low), Some(high)) = (number(least), number(most))
            && low > high
            && high > 0
        {
            tell(&[least, most], format!("{least}={low} is above {most}={high}"));
        }
    }
    // netGetDevice in src/bootstrap.cc; earlier releases read neither.
    let is_read = version.is_none_or(|version| Version::parse("2.23.4").is_some_and(|first| *version >= first));
    let is_off = |setting: &&Setting| setting.value.as_deref().is_some_and(|text| read(text).unwrap_or(0) == 0);
    let switch = effective.get("NCCL_OOB_NET_ENABLE");
    if is_read && text("NCCL_OOB_NET_IFNAME").is_some() && switch.is_none_or(is_off) {
        let what =
            "NCCL_OOB_NET_IFNAME has no effect without NCCL_OOB_NET_ENABLE=1: NCCL_SOCKET_IFNAME selects the interface";
        tell(&["NCCL_OOB_NET_IFNAME", "NCCL_OOB_NET_ENABLE"], what.to_owned());
    }
    // MAX_SOCKETS in src/transport/net_socket.cc.
    if let (Some(threads), Some(sockets)) = (number("NCCL_SOCKET_NTHREADS"), number("NCCL_NSOCKS_PERTHREAD"))
        && threads > 0
        && threads.saturating_mul(sockets) > 64
    {
        tell(
            &["NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD"],
            format!("{threads} threads with {sockets} sockets each are more than the 64 sockets that NCCL allows"),
        );
    }
    found
}

/// Returns true for the variables of NCCL's InfiniBand transport, except its switch. Plugins read some of them too, but
/// are not considered here.
fn is_for_infiniband(name: &str) -> bool {
    name.starts_with("NCCL_IB_") && name != "NCCL_IB_DISABLE"
}
