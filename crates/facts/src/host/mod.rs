//! The image on a host. Everything follows from the description or the record of the host, and from facts about the
//! image.

mod code;
mod compat;
mod nccl;
pub(crate) mod recorded;

use crate::machine::Host;
use model::{Fact, Gap, Version};

use super::cuda::toolkit::{DriverRelease, release_of};
use super::cuda::{HostProperties, RequirementTruth, check};
use super::key::{Definition, KEYS};
use super::{Context, Facts, key};

impl Facts {
    /// Returns these facts with those about a host and about the image on it.
    #[must_use]
    pub fn on(&self, host: &Host) -> Self {
        let mut facts = self.clone();
        describe(host, &mut facts);
        facts.insert(key::HOST_UNMET_REQUIREMENTS, unmet(host, &facts));
        code::produce(host, &mut facts);
        compat::produce(host, &mut facts);
        nccl::produce(&mut facts);
        facts
    }
}

/// Without a host, all host facts are absent.
pub(super) fn absent(_: &Context<'_>, facts: &mut Facts) {
    for key in KEYS.iter().copied().filter(|key| is_of_host(key)) {
        facts.insert_value(key, Fact::Absent);
    }
}

/// Returns true for a fact about the host.
pub(super) fn is_of_host(key: &Definition) -> bool {
    key.name.starts_with("host.")
}

fn describe(host: &Host, facts: &mut Facts) {
    let gpu = host.gpu.as_ref();
    let (cuda, at_least) = releases(host);
    facts.insert(key::HOST_NAME, Fact::known(host.name.clone()));
    facts.insert(key::HOST_DRIVER, host.driver.clone().into());
    facts.insert(key::HOST_CUDA, cuda);
    facts.insert(key::HOST_CUDA_MIN, at_least);
    facts.insert(key::HOST_GPU, gpu.map(|gpu| gpu.name.clone()).into());
    facts.insert(key::HOST_GPU_ARCH, gpu.map(|gpu| gpu.arch).into());
    facts.insert(key::HOST_GPU_COUNT, gpu.and_then(|gpu| gpu.count).map(i64::from).into());
    facts.insert(key::HOST_GPU_CLASS, gpu.and_then(|gpu| gpu.class).into());
    facts.insert(key::HOST_FABRIC, host.fabric.into());
    facts.insert(key::HOST_RDMA, host.rdma.into());
    facts.insert(key::HOST_KERNEL, host.kernel.clone().into());
}

/// The CUDA release of the host's driver, and the release that it supports at least: the one in the description, else
/// what the table has about the driver's branch.
fn releases(host: &Host) -> (Fact<Version>, Fact<Version>) {
    let both = |fact: Fact<Version>| (fact.clone(), fact);
    let Some(driver) = &host.driver else { return both(host.cuda.clone().into()) };
    let unknown = Gap::new(format!("the CUDA release of driver {driver} is unknown"))
        .settled_by("add cuda=X.Y to the host, as nvidia-smi shows it there");
    match host.cuda.clone().map(DriverRelease::Exactly).or_else(|| release_of(driver)) {
        Some(DriverRelease::Exactly(cuda)) => both(Fact::known(cuda)),
        Some(DriverRelease::AtLeast(cuda)) => (Fact::Unknown(unknown), Fact::known(cuda)),
        None => both(Fact::Unknown(unknown)),
    }
}

/// Variables of the image because of which the container runtime would refuse this host.
fn unmet(host: &Host, facts: &Facts) -> Fact<Vec<String>> {
    let arch = host.gpu.as_ref().and_then(|gpu| {
        let (major, minor) = gpu.arch.capability();
        Version::parse(&format!("{major}.{minor}"))
    });
    let properties = HostProperties {
        cuda: facts.get(key::HOST_CUDA).value(),
        cuda_min: facts.get(key::HOST_CUDA_MIN).value(),
        driver: host.driver.as_ref(),
        arch: arch.as_ref(),
        class: host.gpu.as_ref().and_then(|gpu| gpu.class),
    };
    facts.get(key::NVIDIA_REQUIREMENTS).clone().and_then(|variables, at| {
        let mut unmet = Vec::new();
        for (name, terms) in &variables {
            match check(terms, properties) {
                RequirementTruth::Yes => {}
                RequirementTruth::No => unmet.push(name.clone()),
                RequirementTruth::Unknown(why) => return Fact::Unknown(Gap::new(format!("{name} for {host}: {why}"))),
            }
        }
        if unmet.is_empty() { Fact::Absent } else { Fact::Seen { value: unmet, at } }
    })
}

#[cfg(test)]
mod tests;
