//! Forward compatibility on a host: which package of the image works there, and whether the one that the image's search
//! path selects works.

use crate::machine::{Class, Host};
use model::{Fact, Gap, Version};

use super::super::records::CompatPackage;
use super::super::{Facts, key};

pub(super) fn produce(host: &Host, facts: &mut Facts) {
    let packages = facts.get(key::CUDA_COMPAT).as_ref();
    let Some(driver) = &host.driver else {
        // The description has no driver to compare with.
        return;
    };
    let needed = facts.get(key::TORCH_CUDA_DRIVER_MIN).value();
    let usable = packages.clone().and_then(|packages, at| {
        let works = |package: &&CompatPackage| {
            let is_newer =
                driver_of(package).is_some_and(|own| own > *driver && needed.is_none_or(|needed| own >= *needed));
            is_newer && matches!(refusal(package, driver, host), Ok(None))
        };
        let found = packages.iter().filter(works).max_by_key(|package| driver_of(package));
        let path = found.and_then(|package| package.path.clone());
        path.map_or(Fact::Absent, |path| Fact::Seen { value: path, at })
    });

    let refused = facts.get(key::CUDA_LIBCUDA).as_ref().and_then(|path, at| {
        let path = path.to_string();
        packages.and_then(|packages, _| {
            let forced = packages.iter().find(|package| package.path.as_ref() == Some(&path));
            match forced.map_or(Ok(None), |package| refusal(package, driver, host)) {
                Ok(None) => Fact::Absent,
                Ok(Some(why)) => Fact::Seen { value: why, at },
                Err(gap) => Fact::Unknown(gap),
            }
        })
    });
    facts.insert(key::HOST_COMPAT, usable);
    facts.insert(key::HOST_COMPAT_REFUSED, refused);
}

/// The driver version that a package was built with.
fn driver_of(package: &CompatPackage) -> Option<Version> {
    Version::parse(package.driver.as_ref()?)
}

/// Why a package does not work with the driver and the GPUs of a host; `None` when it does.
fn refusal(package: &CompatPackage, driver: &Version, host: &Host) -> Result<Option<String>, Gap> {
    if host.gpu.as_ref().is_some_and(|gpu| gpu.class == Some(Class::Consumer)) {
        return Ok(Some("CUDA's forward compatibility needs a data-centre GPU".to_owned()));
    }
    let Some(own) = driver_of(package) else {
        return Err(Gap::new("the driver version of a forward-compatibility package is unknown"));
    };
    let branches = package.branches.as_deref().filter(|branches| !branches.is_empty());
    match branches {
        Some(branches) if !branches.split(' ').any(|branch| branch == driver.major().to_string()) => {
            Ok(Some(format!("it only supports the driver branches {branches}")))
        }
        // Older packages have no note; they never work with a newer driver.
        None if own.major() < driver.major() => Ok(Some(format!("it is older than the host driver: {own}"))),
        _ => supported(host),
    }
}

/// NVIDIA supports forward compatibility on data-centre GPUs and on some workstation GPUs, without a list of these.
fn supported(host: &Host) -> Result<Option<String>, Gap> {
    match &host.gpu {
        Some(gpu) if gpu.class == Some(Class::Workstation) => {
            let why = format!("whether CUDA supports forward compatibility on {} is unknown", gpu.name);
            Err(Gap::new(why).settled_by("run `ncclcheck probe` on the host"))
        }
        _ => Ok(None),
    }
}
