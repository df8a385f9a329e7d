//! Who a container of ours belongs to: the process that launched it, told apart from any later one that has its number.

use std::fs;

/// This process: machine, boot ID, process ID and the time of its start in clock ticks since the boot (proc_pid_stat(5)).
pub(super) fn this() -> String {
    let id = std::process::id();
    format!("{}:{}:{id}:{}", kernel("hostname"), boot(), start(id).unwrap_or_default())
}

/// Whether this owner still runs. One of another machine, or whose name is not understood, is taken for alive.
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
    fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default().trim().to_owned()
}

fn start(id: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name in parentheses may hold anything; the time is the 22nd field, 20 behind it.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19).map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_living_and_the_dead() {
        let mine = this();
        assert!(is_alive(&mine));
        let (machine, boot) = (kernel("hostname"), boot());
        assert!(!is_alive(&format!("{machine}:{boot}:{}:1", std::process::id())), "the number was given to another");
        assert!(!is_alive(&format!("{machine}:{boot}:4194305:1")), "there is no such process");
        assert!(!is_alive(&format!("{machine}:another:1:1")), "the machine was started anew");
        for unknown in ["another-machine:another:1:1", "x", ""] {
            assert!(is_alive(unknown), "{unknown}");
        }
    }
}
