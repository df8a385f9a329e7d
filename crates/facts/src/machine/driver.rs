//! NVIDIA's kernel driver.

use serde::{Deserialize, Serialize};

use model::Fact;

use super::HostTree;
use crate::words::Flavour;

/// The loaded driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KernelDriver {
    /// Driver version.
    pub version: Fact<String>,
    /// Flavour of the kernel module.
    pub flavour: Fact<Flavour>,
    /// Names of its device nodes in /dev: `nvidia0`, `nvidiactl` …
    pub nodes: Fact<Vec<String>>,
}

impl KernelDriver {
    pub(super) fn collect(tree: &HostTree) -> Self {
        let banner = tree.text("/proc/driver/nvidia/version");
        let version = banner.clone().and_then(|text, _| {
            let version = version(&text).map(ToOwned::to_owned);
            version.map_or_else(
                || Fact::unknown(format!("/proc/driver/nvidia/version: no version in '{text}'")),
                Fact::known,
            )
        });
        Self {
            version: version.or_else(|| tree.text("/sys/module/nvidia/version")),
            flavour: banner.map(|text| {
                if text.contains("Open Kernel Module") { Flavour::Open } else { Flavour::Proprietary }
            }),
            nodes: tree.names("/dev").map(|names| names.into_iter().filter(|name| is_node(name)).collect()),
        }
    }
}

/// Returns true for the name of a device node that CUDA opens: `nvidia` with a GPU's minor number, or that of the driver.
fn is_node(name: &str) -> bool {
    name.strip_prefix("nvidia").is_some_and(|rest| {
        matches!(rest, "ctl" | "-uvm") || (!rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// Finds the version in `NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build …`.
fn version(banner: &str) -> Option<&str> {
    let line = banner.lines().find(|line| line.starts_with("NVRM version:"))?;
    let is_version = |word: &&str| word.contains('.') && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    line.split_whitespace().find(is_version)
}
