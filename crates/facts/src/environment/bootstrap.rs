//! Bootstrap over NCCL's network, which `NCCL_OOB_NET_ENABLE` switches on (`netGetDevice` in `src/bootstrap.cc`).

use model::{Site, Version};

use super::super::settings::number;
use super::conflicts::Effective;
use super::value::names::matches_nothing;

/// The setting of `NCCL_OOB_NET_IFNAME` at which NCCL stops, with the sites of the settings that cause it. 2.23.4 takes the
/// first device instead.
pub(super) fn refused(effective: &Effective<'_>, version: Option<&Version>) -> Option<(String, Vec<Site>)> {
    let stops = version.is_some_and(|version| Version::parse("2.24").is_some_and(|first| *version >= first));
    let list = effective.get("NCCL_OOB_NET_IFNAME")?;
    let switch = effective.get("NCCL_OOB_NET_ENABLE")?;
    let value = list.value.as_deref().filter(|value| matches_nothing(value))?;
    let is_on = switch.value.as_deref().and_then(number).is_some_and(|number| number != 0);
    let what = || format!("NCCL_OOB_NET_IFNAME={value} (no device matches it, and NCCL stops)");
    (stops && is_on).then(|| (what(), vec![list.site.clone(), switch.site.clone()]))
}
