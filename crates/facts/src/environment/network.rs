//! Values of `NCCL_NET` that no network has (`ncclNetInit` in `src/plugin/net.cc`; `src/net.cc` before 2.26).

use model::{Fact, Gap, ImagePath, Site};

use super::super::settings::number;
use super::super::{Context, Facts, key};
use super::conflicts::Effective;

/// The setting of `NCCL_NET` at which NCCL stops, with the sites of the settings that cause it. NCCL's own networks are
/// IB and Socket; a plugin may name another.
pub(super) fn refused(
    effective: &Effective<'_>,
    context: &Context<'_>,
    facts: &Facts,
) -> Result<Option<(String, Vec<Site>)>, Gap> {
    let Some(setting) = effective.get("NCCL_NET") else { return Ok(None) };
    let Some(value) = setting.value.as_deref() else { return Ok(None) };
    let refused = |why: &str, others: &[&str]| {
        let others = others.iter().filter_map(|name| effective.get(name)).map(|setting| setting.site.clone());
        Some((format!("NCCL_NET={value} ({why})"), [setting.site.clone()].into_iter().chain(others).collect()))
    };
    let off = effective.get("NCCL_IB_DISABLE").and_then(|setting| setting.value.as_deref());
    if value.eq_ignore_ascii_case("Socket") {
        return Ok(None);
    }
    if value.eq_ignore_ascii_case("IB") {
        let is_off = off.and_then(number).is_some_and(|number| number != 0);
        let conflict = || refused("NCCL_IB_DISABLE switches this network off", &["NCCL_IB_DISABLE"]);
        return Ok(is_off.then(conflict).flatten());
    }
    let nothing = if value.is_empty() {
        "no network has an empty name; leave the variable unset"
    } else {
        "NCCL has only IB and Socket, and opens no network plugin in this image"
    };
    match facts.get(key::NCCL_NET_PLUGIN) {
        Fact::Seen { .. } if !value.is_empty() => Ok(None),
        Fact::Unknown(gap) if !value.is_empty() => Err(gap.clone()),
        _ => match elsewhere(effective, context).filter(|_| !value.is_empty()) {
            Some(place) => {
                let why = format!("the network {value} may be in {place}");
                Err(Gap::new(why).settled_by("the host mounts the plugin, or it is missing"))
            }
            None => Ok(refused(nothing, &[])),
        },
    }
}

/// A place outside of the image where NCCL may find a plugin: a directory of `LD_LIBRARY_PATH` that the image does not have, and
/// that a host may mount, or one that the launch computes.
fn elsewhere(effective: &Effective<'_>, context: &Context<'_>) -> Option<String> {
    let list = match effective.get("LD_LIBRARY_PATH") {
        Some(setting) if setting.value.is_none() => return Some(format!("a directory that {} computes", setting.site)),
        Some(setting) => setting.value.clone(),
        None => context.config?.environment.get("LD_LIBRARY_PATH").cloned(),
    };
    let list = list?;
    let folders = list.split(':').filter(|folder| folder.starts_with('/')).map(ImagePath::from);
    // The container runtime mounts the driver into these itself.
    let is_of_the_driver = |folder: &ImagePath| folder.to_string().starts_with("/usr/local/nvidia");
    let mounted = folders.into_iter().find(|folder| !is_of_the_driver(folder) && !context.rootfs.is_directory(folder));
    mounted.map(|folder| format!("{folder}, a directory that the image does not have"))
}
