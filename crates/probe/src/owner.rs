//! Owner of a container: the process that launched it, distinguished from any later process with the same ID.

use std::path::Path;

use model::text_within;

/// The most bytes of a file of /proc that this module reads: a page.
const PROC_BYTES: u64 = 4096;

/// Identifies this process: machine, boot ID, process ID, and start time in clock ticks since boot (proc_pid_stat(5)).
pub(super) fn this() -> String {
    let id = std::process::id();
    format!("{}:{}:{id}:{}", kernel("hostname"), boot(), start(id).unwrap_or_default())
}

/// Returns true if this owner still runs. An owner on another machine, or one that cannot be parsed, counts as alive.
pub(super) fn is_alive(owner: &str) -> bool {
    let parts: Vec<_> = owner.split(':').collect();
    let [machine, theirs, id, began] = *parts else { return true };
    let Ok(id) = id.parse() else { return true };
    machine != kernel("hostname") || (theirs == boot() && start(id).is_some_and(|start| start == began))
}

fn boot() -> String {
    kernel("random/boot_id")
}

fn kernel(name: &str) -> String {
    text_within(&Path::new("/proc/sys/kernel").join(name), PROC_BYTES).unwrap_or_default().trim().to_owned()
}

/// The start time of a process that runs; `None` also for one that has ended and whose parent has not noticed it.
fn start(id: u32) -> Option<String> {
    let stat = text_within(Path::new(&format!("/proc/{id}/stat")), PROC_BYTES).ok()?;
    started(&stat)
}

fn started(stat: &str) -> Option<String> {
    // The name in parentheses may contain anything. The state follows it; the start time is the 22nd field.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<_> = rest.split_whitespace().collect();
    let is_running = fields.first().is_some_and(|state| !matches!(*state, "Z" | "X" | "x"));
    fields.get(19).filter(|_| is_running).map(|start| (*start).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_ended_does_not_run() {
        let stat = |state: &str| format!("7 (a) b) {state} 1 {}4242 0", "0 ".repeat(17));
        assert_eq!(started(&stat("S")).as_deref(), Some("4242"));
        assert_eq!(started(&stat("Z")), None);
    }

    #[test]
    fn only_an_owner_of_this_machine_can_be_dead() {
        let mine = this();
        assert!(is_alive(&mine));
        let machine = kernel("hostname");
        let boot = boot();
        assert!(!is_alive(&format!("{machine}:{boot}:{}:1", std::process::id())), "another process has reused the ID");
        assert!(!is_alive(&format!("{machine}:{boot}:4194305:1")), "there is no such process");
        assert!(!is_alive(&format!("{machine}:another:1:1")), "the machine was rebooted");
        for unknown in ["another-machine:another:1:1", "x", ""] {
            assert!(is_alive(unknown), "{unknown}");
        }
    }
}
