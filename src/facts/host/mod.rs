//! What a host would make of an image. Everything is concluded from the description or the record of the host, and from facts
//! about the image.

mod code;
mod compat;
mod nccl;
mod recorded;

use crate::model::{Class, Fabric, Fact, Gap, Host, Nic, Value, Version};

use super::cuda::toolkit::release_of;
use super::cuda::{Properties, Truth, check};
use super::{Facts, key};

impl Facts {
    /// The same facts, with those about a host and about the image on it.
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

/// Without a host nothing is asked about one.
pub(super) fn produce(facts: &mut Facts) {
    for key in key::KEYS.iter().filter(|key| key.name.starts_with("host.")) {
        facts.insert::<Value>(key, Fact::Absent);
    }
}

fn describe(host: &Host, facts: &mut Facts) {
    fn said<T: Into<Value>>(value: Option<T>) -> Fact {
        value.map_or(Fact::Absent, |value| Fact::seen(value.into(), []))
    }
    let gpu = host.gpu.as_ref();
    facts.insert(key::HOST_NAME, said(Some(&*host.name)));
    facts.insert(key::HOST_DRIVER, said(host.driver.clone()));
    facts.insert(key::HOST_CUDA, release(host));
    facts.insert(key::HOST_GPU, said(gpu.map(|gpu| &*gpu.name)));
    facts.insert(key::HOST_GPU_ARCH, said(gpu.map(|gpu| format!("sm_{}", gpu.arch))));
    facts.insert(key::HOST_GPU_COUNT, said(gpu.and_then(|gpu| gpu.count).map(|count| Value::Int(count.into()))));
    facts.insert(key::HOST_GPU_CLASS, said(gpu.and_then(|gpu| gpu.class).map(Class::name)));
    facts.insert(key::HOST_FABRIC, said(host.fabric.map(Fabric::name)));
    facts.insert(key::HOST_RDMA, said(host.rdma.map(Nic::name)));
    facts.insert(key::HOST_KERNEL, said(host.kernel.clone()));
}

/// The CUDA release of the host's driver: as the user says, else by the driver's version.
fn release(host: &Host) -> Fact {
    match (&host.cuda, &host.driver) {
        (Some(cuda), _) => Fact::seen(cuda.clone().into(), []),
        (None, None) => Fact::Absent,
        (None, Some(driver)) => release_of(driver).map_or_else(
            || {
                Fact::Unknown(
                    Gap::new(format!("which CUDA release driver {driver} brings is not known here"))
                        .settled_by("add cuda=X.Y to the host, which nvidia-smi shows there"),
                )
            },
            |cuda| Fact::seen(cuda.into(), []),
        ),
    }
}

/// Variables of the image by which the container runtime would refuse this host.
fn unmet(host: &Host, facts: &Facts) -> Fact {
    let cuda = version(facts.get(key::HOST_CUDA.name));
    let arch = host.gpu.as_ref().and_then(|gpu| {
        let (major, minor) = gpu.arch.capability();
        Version::parse(&format!("{major}.{minor}"))
    });
    let properties = Properties { cuda: cuda.as_ref(), driver: host.driver.as_ref(), arch: arch.as_ref() };
    facts.get(key::NVIDIA_REQUIREMENTS.name).clone().and_then(|requirements, at| {
        let Value::Map(variables) = requirements else { return Fact::Absent };
        let mut unmet = Vec::new();
        for (name, terms) in &variables {
            match check(terms, properties) {
                Truth::Yes => {}
                Truth::No => unmet.push(Value::from(&**name)),
                Truth::Unknown(why) => return Fact::Unknown(Gap::new(format!("{name} for {host}: {why}"))),
            }
        }
        if unmet.is_empty() { Fact::Absent } else { Fact::Seen { value: Value::List(unmet), at } }
    })
}

fn version(fact: &Fact) -> Option<Version> {
    match fact.value() {
        Some(Value::Version(version)) => Some(version.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
