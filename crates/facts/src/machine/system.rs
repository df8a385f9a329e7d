//! Operating system and virtualization.


use serde::{Deserialize, Serialize};

use crate::table;
use model::{Fact, Table};

use super::HostTree;

/// Inode of the initial PID namespace (PROC_PID_INIT_INO, include/linux/proc_ns.h).
const FIRST_PROCESSES: &str = "pid:[4026531836]";

/// Boot parameters that affect P2P and RDMA. Others may be secrets and are not kept.
const PARAMETERS: &[&str] = &["iommu", "intel_iommu", "amd_iommu", "iommu.passthrough", "pci", "pcie_acs_override"];

/// Names of virtual machines: `rules/tables/hypervisors.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hypervisors {
    #[serde(rename = "source")]
    _source: String,
    names: Vec<String>,
}

pub(crate) static HYPERVISORS: Table<Hypervisors> = table!("hypervisors");

/// Operating system and virtualization.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OperatingSystem {
    /// Host name.
    pub name: Fact<String>,
    /// Distribution.
    pub os: Fact<String>,
    /// Kernel release.
    pub kernel: Fact<String>,
    /// CPU architecture, as Rust names it: `x86_64`, `aarch64`.
    pub architecture: Fact<String>,
    /// Kernel boot parameters that affect P2P and RDMA.
    pub boot_parameters: Fact<Vec<String>>,
    /// Vendor and product of the virtual machine; absent on bare metal.
    pub virtual_machine: Fact<String>,
    /// Engine of the container in which the record was collected; absent outside a container.
    pub container: Fact<String>,
}

impl OperatingSystem {
    pub(super) fn collect(tree: &HostTree) -> Self {
        Self {
            name: tree.text("/proc/sys/kernel/hostname"),
            os: tree.text("/etc/os-release").and_then(|text, _| pretty_name(&text).into()),
            kernel: tree.text("/proc/sys/kernel/osrelease"),
            architecture: Fact::known(std::env::consts::ARCH.to_owned()),
            boot_parameters: tree.text("/proc/cmdline").map(|line| parameters(&line)),
            virtual_machine: virtual_machine(tree),
            container: container(tree),
        }
    }
}

fn pretty_name(os_release: &str) -> Option<String> {
    let line = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(line.trim_matches(['"', '\'']).to_owned())
}

fn parameters(line: &str) -> Vec<String> {
    let name = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
    line.split_whitespace().filter(|word| PARAMETERS.contains(&&*name(word))).map(ToOwned::to_owned).collect()
}

/// Detects a virtual machine by the hypervisor flag of x86 processors (CPUID.1:ECX bit 31), otherwise by the firmware.
fn virtual_machine(tree: &HostTree) -> Fact<String> {
    let firmware = || {
        let part = |name: &str| tree.text(&format!("/sys/class/dmi/id/{name}")).value().cloned();
        [part("sys_vendor"), part("product_name")].into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    tree.text("/proc/cpuinfo").and_then(|text, _| {
        let flags = text.lines().find_map(|line| line.strip_prefix("flags")?.split_once(':'));
        let named = firmware();
        let is_virtual = match flags {
            Some((_, flags)) => flags.split(' ').any(|flag| flag == "hypervisor"),
            None if named.is_empty() => {
                return Fact::unknown("neither the processor nor /sys/class/dmi/id reports virtualization");
            }
            None => {
                HYPERVISORS.names.iter().any(|name| named.contains(name.as_str()))
                    || named.starts_with("Amazon EC2") && !named.contains(".metal")
            }
        };
        match named {
            _ if !is_virtual => Fact::Absent,
            named if named.is_empty() => Fact::known("yes (unknown vendor)".to_owned()),
            named => Fact::known(named),
        }
    })
}

/// Detects the container that this process runs in by its PID namespace: all processes are visible only in the initial
/// one. Only root may read the namespace of process 1; other users read their own.
pub(super) fn container(tree: &HostTree) -> Fact<String> {
    let namespace = match tree.link("/proc/1/ns/pid") {
        Fact::Unknown(_) => tree.link("/proc/self/ns/pid"),
        first => first,
    };
    namespace.and_then(|namespace, _| {
        if namespace == FIRST_PROCESSES {
            return Fact::Absent;
        }
        let engine = [("/.dockerenv", "Docker"), ("/run/.containerenv", "Podman")]
            .iter()
            .find(|(mark, _)| tree.has(mark) == Fact::known(true))
            .map_or("unknown engine", |(_, engine)| engine);
        Fact::known(engine.to_owned())
    })
}
