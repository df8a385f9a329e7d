//! Processes by their names.

use std::collections::BTreeMap;

use crate::model::Fact;

use super::HostTree;

/// Bytes of a process's name that the kernel keeps (TASK_COMM_LEN, less its end).
const NAME: usize = 15;

/// The running processes.
pub(super) struct Processes {
    names: Fact<BTreeMap<u32, String>>,
    /// Why others may run that are not seen from here.
    hidden: Option<String>,
}

impl Processes {
    pub(super) fn read(tree: &HostTree) -> Self {
        let names = tree.names("/proc").map(|names| {
            let ids = names.iter().filter_map(|name| name.parse::<u32>().ok());
            // A process may end as it is looked at.
            ids.filter_map(|id| Some((id, tree.text(&format!("/proc/{id}/comm")).value()?.clone()))).collect()
        });
        Self { names, hidden: hidden(tree) }
    }

    /// The process of a name, of those that have it the one with the smallest number.
    pub(super) fn find(&self, name: &str) -> Fact<u32> {
        let short = name.get(..NAME).unwrap_or(name);
        self.names.as_ref().and_then(|names, _| {
            let found = names.iter().find(|(_, comm)| *comm == short).map(|(id, _)| *id);
            match (found, &self.hidden) {
                (Some(id), _) => Fact::known(id),
                (None, None) => Fact::Absent,
                (None, Some(why)) => Fact::unknown(format!("whether {name} runs: {why}")),
            }
        })
    }
}

/// Why not all processes of the machine can be seen.
fn hidden(tree: &HostTree) -> Option<String> {
    match super::system::container(tree) {
        Fact::Absent => None,
        Fact::Seen { value: which, .. } => {
            Some(format!("this is a container ({which}), which has processes of its own"))
        }
        Fact::Unknown(gap) => Some(gap.why),
    }
}
