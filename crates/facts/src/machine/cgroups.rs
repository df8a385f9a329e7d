//! Control groups (cgroups(7)), by which engines limit containers.

use serde::{Deserialize, Serialize};

use model::Fact;

use super::HostTree;
use super::subordinate::unprivileged_user;

const ROOT: &str = "/sys/fs/cgroup";

/// Control groups of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ControlGroups {
    /// Version of the hierarchy, 1 or 2.
    pub version: Fact<u8>,
    /// Controllers that the system's engines can use; absent in version 1.
    pub controllers: Fact<Vec<String>>,
    /// Controllers that rootless engines of this user can use; absent for root, in version 1, and without a service manager of the user.
    pub delegated: Fact<Vec<String>>,
}

impl ControlGroups {
    pub(super) fn collect(tree: &HostTree) -> Self {
        let names = |path: &str| tree.text(path).map(|text| text.split_whitespace().map(ToOwned::to_owned).collect());
        let controllers: Fact<Vec<String>> = names(&format!("{ROOT}/cgroup.controllers"));
        let version = match &controllers {
            Fact::Seen { .. } => Fact::known(2),
            Fact::Unknown(gap) => Fact::Unknown(gap.clone()),
            // In version 1, each controller has a hierarchy of its own.
            Fact::Absent => tree.names(ROOT).and_then(|found, _| {
                if found.iter().any(|name| name == "memory") { Fact::known(1) } else { Fact::Absent }
            }),
        };
        let delegated = unprivileged_user(tree).and_then(|id, _| {
            names(&format!("{ROOT}/user.slice/user-{id}.slice/user@{id}.service/cgroup.controllers"))
        });
        Self { version, controllers, delegated }
    }
}
