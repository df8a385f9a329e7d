//! Slurm's `srun`: its options, and what it writes.
//!
//! With `--label`, srun puts the number of the task before each line of a task. It cuts lines after 1,024 bytes, and labels
//! the pieces too.

use std::collections::BTreeMap;
use std::process::Command;

use serde::de::IgnoredAny;

use super::{ClusterError, node_names};
use probe::wire::events::is_of_protocol;

/// Most bytes of a line of a task, and of a line of srun. The program's protocol allows half of that.
const LONGEST_LINE: usize = 1 << 17;

/// Variables of a batch script that would give the tasks of the step fewer processors or GPUs than their node has, or other
/// nodes.
pub(super) const REQUESTS: &[&str] = &[
    "SLURM_CPUS_PER_TASK",
    "SRUN_CPUS_PER_TASK",
    "SLURM_GPUS_PER_TASK",
    "SLURM_TRES_PER_TASK",
    "SLURM_NTASKS_PER_GPU",
    "SLURM_GPU_BIND",
    "SLURM_HOSTFILE",
];

/// Options of srun for one task on each of these nodes. They override variables of the batch script, which srun reads
/// too.
pub(super) fn arguments(nodes: &[&str], image: Option<&str>) -> Vec<String> {
    let count = nodes.len();
    let options = [
        "--label",
        // The tasks of an allocation's other steps stay beside these.
        "--overlap",
        "--kill-on-bad-exit=0",
        // No limit on the time between the ends of the first and the last task.
        "--wait=0",
        "--cpu-bind=none",
        "--mpi=none",
        // Task 0 is on the first node.
        "--distribution=block",
        "--ntasks-per-node=1",
        &format!("--nodes={count}"),
        &format!("--ntasks={count}"),
        &format!("--nodelist={}", nodes.join(",")),
    ];
    let image = image.map(|image| format!("--container-image={image}"));
    options.map(ToOwned::to_owned).into_iter().chain(image).collect()
}

/// The names in Slurm's compact list, such as `gpu[1-8]`, as `scontrol` expands it.
///
/// # Errors
/// `scontrol` cannot be started or refuses the list.
pub fn host_names(list: &str) -> Result<Vec<String>, ClusterError> {
    node_names(&shown(&["hostnames", list])?.trim().replace('\n', ","))
}

/// The switches that Slurm knows, in the form that [`leaves`](super::leaves) reads.
///
/// # Errors
/// `scontrol` cannot be started, or knows no switches.
pub fn topology_of_slurm() -> Result<String, ClusterError> {
    shown(&["topology"])
}

/// What `scontrol show` writes.
fn shown(what: &[&str]) -> Result<String, ClusterError> {
    let command = || format!("scontrol show {}", what.first().copied().unwrap_or_default());
    let failed = |why: String| ClusterError::Start { command: command(), why };
    #[expect(clippy::disallowed_methods, reason = "the user starts ncclcheck in an allocation of Slurm")]
    let output = Command::new("scontrol").arg("show").args(what).output();
    let output = output.map_err(|error| failed(model::cause(&error)))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Splits the labelled output of srun into the lines of its tasks.
#[derive(Debug, Default)]
pub(super) struct Labelled {
    line: Vec<u8>,
    /// The beginning of a line of the protocol, by task.
    held: BTreeMap<usize, Vec<u8>>,
}

impl Labelled {
    /// Passes whole lines of tasks to `sink`, with their ends.
    pub(super) fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(usize, &[u8])) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LONGEST_LINE.saturating_sub(self.line.len());
            self.line.extend(part.iter().take(room));
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                if let Some((task, piece)) = labelled(line.trim_ascii_end()) {
                    self.piece(task, piece, sink);
                }
            }
        }
    }

    /// Passes the rest, which has no end.
    pub(super) fn finish(&mut self, sink: &mut dyn FnMut(usize, &[u8])) {
        for (task, line) in std::mem::take(&mut self.held) {
            sink(task, &[&line[..], b"\n"].concat());
        }
    }

    /// Adds a piece of a task's line. A line of the protocol is whole when it is a JSON object.
    fn piece(&mut self, task: usize, piece: &[u8], sink: &mut dyn FnMut(usize, &[u8])) {
        if piece.is_empty() {
            return;
        }
        let begins = is_of_protocol(piece);
        let mut line = self.held.remove(&task).unwrap_or_default();
        if begins && !line.is_empty() {
            line.push(b'\n');
            sink(task, &line);
            line.clear();
        }
        let continues = !line.is_empty();
        let room = LONGEST_LINE.saturating_sub(line.len());
        line.extend(piece.iter().take(room));
        let is_whole = || line.ends_with(b"}") && serde_json::from_slice::<IgnoredAny>(&line).is_ok();
        if (begins || continues) && !is_whole() {
            self.held.insert(task, line);
            return;
        }
        line.push(b'\n');
        sink(task, &line);
    }
}

/// The task of a labelled line, and the line; `None` for a line of srun itself.
pub(super) fn labelled(line: &[u8]) -> Option<(usize, &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (label, rest) = line.split_at_checked(colon)?;
    let task = std::str::from_utf8(label).ok()?.trim_start().parse().ok()?;
    let rest = rest.get(1..)?;
    Some((task, rest.strip_prefix(b" ").unwrap_or(rest)))
}

/// What srun says about its tasks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// These tasks have ended: `Killed`, `Exited with exit code 3`.
    Ended(Vec<usize>, String),
    /// The step cannot be started on a node, for this reason. srun ends the whole step.
    NotStarted(String, String),
    /// Another error.
    Error,
    /// Anything else.
    Nothing,
}

/// Reads a line that srun itself wrote to standard error.
pub(super) fn said(line: &str) -> Said {
    let Some(text) = line.strip_prefix("srun: error: ") else { return Said::Nothing };
    not_started(text).or_else(|| ended(text)).unwrap_or(Said::Error)
}

/// Reads `Task launch for StepId=4.1 failed on node n2: REASON`.
fn not_started(text: &str) -> Option<Said> {
    let (node, why) = text.strip_prefix("Task launch ")?.split_once(" failed on node ")?.1.split_once(": ")?;
    Some(Said::NotStarted(node.to_owned(), why.trim_end().to_owned()))
}

/// Reads `n2: task 2: Killed` and `n[0-1]: tasks 0-1: Exited with exit code 3`.
fn ended(text: &str) -> Option<Said> {
    let (_, rest) = text.split_once(": task").filter(|(nodes, _)| !nodes.contains(' '))?;
    let (tasks, how) = rest.trim_start_matches('s').trim_start().split_once(": ")?;
    Some(Said::Ended(numbers(tasks)?, how.trim_end().to_owned()))
}

/// The numbers in `0-2,5`; `None` for any other text.
fn numbers(list: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let [first, last]: [usize; 2] = [first.parse().ok()?, last.parse().ok()?];
        // Slurm has at most 65,536 nodes.
        numbers.extend((first..=last).take(1 << 16));
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_srun_cuts_are_whole_again() {
        let long = |pad: &str| format!("{{\"ncclcheck\":1,\"pad\":\"{pad}\"}}");
        let [exact, three] = [long(&"x".repeat(1024 - 25)), long(&"}".repeat(2500))];
        let mut text = String::from("0: noise\n1: 0: {\"ncclcheck\":1}\nsrun: a message\n");
        let mut pieces: Vec<Vec<String>> = Vec::new();
        for line in [&exact, &three] {
            let parts = line.as_bytes().chunks(1024).map(|part| String::from_utf8_lossy(part).into_owned());
            pieces.push(parts.collect());
        }
        // The pieces of two tasks come one between another. srun writes an empty piece behind a line of exactly 1,024 bytes.
        for index in 0..3 {
            text += &pieces[1].get(index).map(|piece| format!("00: {piece}\n")).unwrap_or_default();
            text += &pieces[0].get(index).map(|piece| format!(" 1: {piece}\n 1: \n")).unwrap_or_default();
        }
        text += "0: {\"ncclcheck\":1,\"cut\n0: {\"ncclcheck\":1,\"event\":\"end\"}\n1: {\"ncclcheck\": last";
        text += "\n";
        let mut seen: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        let mut labelled = Labelled::default();
        let mut sink = |task: usize, line: &[u8]| {
            seen.entry(task).or_default().push(String::from_utf8_lossy(line).trim_end().to_owned());
        };
        for bytes in text.as_bytes().chunks(100) {
            labelled.push(bytes, &mut sink);
        }
        labelled.finish(&mut sink);
        let end = "{\"ncclcheck\":1,\"event\":\"end\"}";
        assert_eq!(seen[&0], ["noise", &three, "{\"ncclcheck\":1,\"cut", end]);
        assert_eq!(seen[&1], ["0: {\"ncclcheck\":1}", &exact, "{\"ncclcheck\": last"]);
    }

    #[test]
    fn messages_of_srun_name_tasks_and_nodes() {
        let ended = |tasks: &[usize], how: &str| Said::Ended(tasks.to_vec(), how.to_owned());
        for (line, expected) in [
            ("srun: error: n2: task 2: Killed", ended(&[2], "Killed")),
            (
                "srun: error: n[0-1,4]: tasks 0-1,4: Exited with exit code 3",
                ended(&[0, 1, 4], "Exited with exit code 3"),
            ),
            (
                "srun: error: Task launch for StepId=4.1 failed on node n2: Communication connection failure",
                Said::NotStarted("n2".to_owned(), "Communication connection failure".to_owned()),
            ),
            ("srun: error: Unable to confirm allocation for job 4: Invalid job id specified", Said::Error),
            ("srun: error: n2: task x: Killed", Said::Error),
            ("srun: Job step aborted", Said::Nothing),
            ("0: srun: error: n2: task 2: Killed", Said::Nothing),
        ] {
            assert_eq!(said(line), expected, "{line}");
        }
    }
}
