//! Lookup of processes by name.

use std::collections::BTreeMap;

use model::Fact;

use super::HostTree;

/// Bytes of a process's name that the kernel keeps (TASK_COMM_LEN, less the terminating NUL).
const NAME: usize = 15;

/// The running processes.
pub(super) struct Processes {
    names: Fact<BTreeMap<u32, String>>,
    /// Reason why other processes may run that are not visible here.
    hidden: Option<String>,
}

impl Processes {
    pub(super) fn read(tree: &HostTree) -> Self {
        let names = tree.names("/proc").map(|names| {
            let ids = names.iter().filter_map(|name| name.parse::<u32>().ok());
            // A process may exit between the two reads.
            ids.filter_map(|id| Some((id, tree.text(&format!("/proc/{id}/comm")).value()?.clone()))).collect()
        });
        Self { names, hidden: hidden(tree) }
    }

    /// Returns the ID of the process of this name; the smallest, if several have it.
    pub(super) fn find(&self, name: &str) -> Fact<u32> {
        let short = name.get(..NAME).unwrap_or(name);
        self.names.as_ref().and_then(|names, _| {
            let found = names.iter().find(|(_, comm)| *comm == short).map(|(id, _)| *id);
            match (found, &self.hidden) {
                (Some(id), _) => Fact::known(id),
                (None, None) => Fact::Absent,
                (None, Some(why)) => Fact::unknown(format!("cannot determine if {name} is running: {why}")),
            }
        })
    }
}

/// Reason why not all processes of the machine are visible, if so.
fn hidden(tree: &HostTree) -> Option<String> {
    match super::system::container(tree) {
        Fact::Absent => None,
        Fact::Seen { value: which, .. } => Some(format!("this is a container ({which}) with its own PID namespace")),
        Fact::Unknown(gap) => Some(gap.why),
    }
}
