//! The operating system, and whether the machine is a virtual one.

use serde::{Deserialize, Serialize};

use crate::model::Fact;

use super::HostTree;

/// Inode of the first process namespace (PROC_PID_INIT_INO, include/linux/proc_ns.h).
const FIRST_PROCESSES: &str = "pid:[4026531836]";

/// Parameters of the kernel that decide on what is judged here. Others may be secrets, and are not kept.
const PARAMETERS: &[&str] = &["iommu", "intel_iommu", "amd_iommu", "iommu.passthrough", "pci", "pcie_acs_override"];

/// Makers and products of virtual machines, where the processor does not tell: what systemd-detect-virt looks for
/// (src/basic/virt.c).
const VIRTUAL: &[&str] =
    &["QEMU", "KVM", "OpenStack", "Google Compute Engine", "Virtual Machine", "VMware", "VirtualBox", "Xen", "Bochs"];

/// The operating system and what it runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct OperatingSystem {
    /// Host name.
    pub name: Fact<String>,
    /// Distribution.
    pub os: Fact<String>,
    /// Release of the kernel.
    pub kernel: Fact<String>,
    /// Architecture of the processor, as Rust names it: `x86_64`, `aarch64`.
    pub architecture: Fact<String>,
    /// Parameters that the kernel was started with, as far as they concern GPUs.
    pub boot_parameters: Fact<Vec<String>>,
    /// The virtual machine that this is; absent on bare metal.
    pub virtual_machine: Fact<String>,
    /// The container that this was read in; absent outside of any.
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

/// By the processor, which tells on x86 (CPUID.1:ECX bit 31), else by the firmware.
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
                return Fact::unknown("neither the processor nor the firmware (/sys/class/dmi/id) tells");
            }
            None => {
                VIRTUAL.iter().any(|name| named.contains(name))
                    || named.starts_with("Amazon EC2") && !named.contains(".metal")
            }
        };
        match named {
            _ if !is_virtual => Fact::Absent,
            named if named.is_empty() => Fact::known("of a maker that is not told".to_owned()),
            named => Fact::known(named),
        }
    })
}

/// The container that the files are read in: what sees the first process sees all of them. Only root may ask about that one;
/// others are asked about themselves.
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
            .map_or("of an engine that is not told", |(_, engine)| engine);
        Fact::known(engine.to_owned())
    })
}
