//! What a launch says of a container beside what other facts are computed from: each kind is a fact of its own.

use std::collections::BTreeMap;

use model::Fact;
use model::document::YamlNode;

use super::given::{Said, is_computed, site};
use crate::environment::SettingList;
use crate::key::{self, Key};

/// A kind of detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Detail {
    /// Linux capabilities that it gets beside the usual ones.
    Capabilities,
    /// Profiles of seccomp, AppArmor and SELinux.
    Security,
    /// The OCI runtime, or the class of runtimes in Kubernetes.
    Runtime,
    /// The host name.
    HostName,
    /// The working directory.
    Directory,
    /// Huge pages, as `SIZE: AMOUNT`.
    HugePages,
    /// Claims of devices in Kubernetes.
    Claims,
    /// The CPUs, as the kernel lists them.
    CpuSet,
    /// The NUMA nodes, as the kernel lists them.
    NumaNodes,
}

impl Detail {
    /// Each kind, with its fact and the name of what the file says.
    pub(super) const ALL: &[(Self, Key<Vec<String>>, &'static str)] = &[
        (Self::Capabilities, key::CONTAINER_CAPABILITIES, "capabilities"),
        (Self::Security, key::CONTAINER_SECURITY, "security options"),
        (Self::Runtime, key::CONTAINER_RUNTIME, "the runtime"),
        (Self::HostName, key::CONTAINER_HOST_NAME, "the host name"),
        (Self::Directory, key::CONTAINER_DIRECTORY, "the working directory"),
        (Self::HugePages, key::CONTAINER_HUGE_PAGES, "huge pages"),
        (Self::Claims, key::CONTAINER_CLAIMS, "resource claims"),
        (Self::CpuSet, key::CONTAINER_CPU_SET, "CPUs"),
        (Self::NumaNodes, key::CONTAINER_NUMA_NODES, "NUMA nodes"),
    ];
}

/// The details of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details(BTreeMap<Detail, Vec<Said<String>>>);

impl Details {
    /// Adds what a line says. What is computed when the job starts has no value.
    pub(super) fn add(&mut self, detail: Detail, text: &str, line: usize) {
        let value = (!is_computed(text)).then(|| text.to_owned());
        self.0.entry(detail).or_default().push(Said { value, line });
    }

    /// Adds what a node says, if it is a text, and each text of a list.
    pub(super) fn add_node(&mut self, detail: Detail, node: Option<&YamlNode>) {
        for node in node.into_iter().flat_map(|node| std::iter::once(node).chain(node.list())) {
            if let Some(text) = node.as_str() {
                self.add(detail, text, node.line);
            }
        }
    }

    /// The fact of a kind; absent if the file says nothing.
    pub(super) fn fact(&self, detail: Detail, file: &str, what: &str) -> Fact<Vec<String>> {
        let mut list = SettingList::default();
        for said in self.0.get(&detail).into_iter().flatten() {
            match &said.value {
                Some(text) => list.push(text.clone(), [site(file, said.line, what)]),
                None => return said.clone().fact(file, what).map(|text| vec![text]),
            }
        }
        list.fact(None)
    }
}
