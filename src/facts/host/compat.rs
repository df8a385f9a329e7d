//! Forward compatibility on a host: which of the image's packages works there, and whether the one that the image's search
//! path forces on it does.

use std::collections::BTreeMap;

use crate::model::{Class, Fact, Gap, Host, Value, Version};

use super::super::{Facts, key};
use super::version;

pub(super) fn produce(host: &Host, facts: &mut Facts) {
    let packages = facts.get(key::CUDA_COMPAT.name).clone();
    let Some(driver) = &host.driver else {
        // Nothing was said that could be compared.
        return;
    };
    let needed = version(facts.get(key::TORCH_CUDA_DRIVER_MIN.name));
    let usable = packages.clone().and_then(|packages, at| {
        let works = |package: &BTreeMap<String, Value>| {
            let is_newer = text(package, "driver")
                .is_some_and(|own| own > *driver && needed.as_ref().is_none_or(|needed| own >= *needed));
            is_newer && matches!(refusal(package, driver, host), Ok(None))
        };
        let found = records(&packages).into_iter().filter(works).max_by_key(|package| text(package, "driver"));
        let path = found.and_then(|package| package.get("path").map(ToString::to_string));
        path.map_or(Fact::Absent, |path| Fact::Seen { value: path, at })
    });
    facts.insert(key::HOST_COMPAT, usable);

    let forced = facts.get(key::CUDA_LIBCUDA.name).clone();
    let refused = forced.and_then(|path, at| {
        packages.and_then(|packages, _| {
            let forced = records(&packages).into_iter().find(|package| package.get("path") == Some(&path));
            match forced.map_or(Ok(None), |package| refusal(&package, driver, host)) {
                Ok(None) => Fact::Absent,
                Ok(Some(why)) => Fact::Seen { value: why, at },
                Err(gap) => Fact::Unknown(gap),
            }
        })
    });
    facts.insert(key::HOST_COMPAT_REFUSED, refused);
}

fn records(packages: &Value) -> Vec<BTreeMap<String, Value>> {
    let Value::List(packages) = packages else { return Vec::new() };
    packages
        .iter()
        .filter_map(|package| if let Value::Map(record) = package { Some(record.clone()) } else { None })
        .collect()
}

fn text(package: &BTreeMap<String, Value>, name: &str) -> Option<Version> {
    Version::parse(&package.get(name)?.to_string())
}

/// Why a package does not work with a driver and the GPUs of a host.
fn refusal(package: &BTreeMap<String, Value>, driver: &Version, host: &Host) -> Result<Option<String>, Gap> {
    if host.gpu.as_ref().is_some_and(|gpu| gpu.class == Some(Class::Consumer)) {
        return Ok(Some("CUDA's forward compatibility is for GPUs of data centres".to_owned()));
    }
    let Some(own) = text(package, "driver") else {
        return Err(Gap::new("the driver of a forward-compatibility package is not known"));
    };
    let branches = package.get("branches").map(ToString::to_string).filter(|branches| !branches.is_empty());
    Ok(match branches {
        Some(branches) if branches.split(' ').any(|branch| branch == driver.major().to_string()) => None,
        Some(branches) => Some(format!("it accepts drivers of the branches {branches}")),
        // Older ones have no note: never with a newer driver.
        None if own.major() < driver.major() => Some(format!("it is older, of driver {own}")),
        None => None,
    })
}
