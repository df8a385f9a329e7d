//! What failed first, and what follows from it.

use super::events::{CONNECT, Event, Events};
use super::watchdog::Watchdogs;
use super::{Job, is_local};
use crate::failure::{ADDRESS, EXCEPTION, Failure, Role};

/// Finds the causes of a failed job among its events.
pub(super) fn find(job: &mut Job, events: Events, watchdogs: &Watchdogs) {
    let mut events: Vec<Event> = events.all.into_iter().filter(|event| event.role != Role::Harmless).collect();
    promote(&mut events, job);
    if !events.iter().any(|event| event.role != Role::Doubtful) {
        return;
    }
    for event in &mut events {
        name_unreachable_address(event, job);
    }
    events.extend(collectives_that_differ(&events, watchdogs));
    // Times order the lines of different logs only where every failure has one.
    let are_timed = events.iter().all(|event| event.time.is_some());
    events.sort_by_key(|event| (event.time.filter(|_| are_timed), event.place));
    let decisive = [Role::Own, Role::Reported, Role::Network, Role::Waiting, Role::Doubtful, Role::Summary];
    let is_decisive = |role: &&Role| events.iter().any(|event| event.role == **role && !follows(event, &events));
    let Some(role) = decisive.iter().find(is_decisive) else { return };
    let (causes, consequences): (Vec<&Event>, Vec<&Event>) =
        events.iter().partition(|event| event.role == *role && !follows(event, &events));
    let silent = watchdogs.silent(&job.started);
    if causes.iter().any(|event| event.kind == "watchdog") {
        job.silent = silent;
    }
    let failures = |events: &[&Event]| events.iter().map(|event| failure(event, &job.logs)).collect::<Vec<_>>();
    (job.causes, job.consequences) = (failures(&causes), failures(&consequences));
}

/// Counts as failures what only seemed doubtful: connections that NCCL tried often, and that nothing shows to have succeeded, and a
/// name that does not resolve where the store could not be reached.
fn promote(events: &mut [Event], job: &Job) {
    const OFTEN: u64 = 3;
    let has_started = !job.started.is_empty() && job.completed == job.started;
    let misses_store = events.iter().any(|event| event.kind == "store_unreachable" && event.role == Role::Network);
    for event in events {
        if event.kind == CONNECT && event.role == Role::Doubtful && event.more >= OFTEN && !has_started {
            event.role = Role::Network;
        } else if event.kind == "name_unknown" && misses_store {
            event.role = Role::Own;
        }
    }
}

fn failure(event: &Event, logs: &[String]) -> Failure {
    Failure {
        kind: event.kind.clone(),
        message: event.message.clone(),
        rank: event.rank,
        host: event.host.clone(),
        at: logs.get(event.place.log).filter(|_| event.place.line > 0).map(|log| (log.clone(), event.place.line)),
        more_ranks: event.more_ranks.iter().copied().collect(),
    }
}

/// Returns true if an event is known to follow from another one.
fn follows(event: &Event, events: &[Event]) -> bool {
    let mut earlier = events.iter().filter(|other| other.is_before(event));
    match event.role {
        Role::Own if event.kind == EXCEPTION => {
            let is_specific = |other: &Event| other.role == Role::Own && other.kind != EXCEPTION;
            let may_cause = |other: &Event| matches!(other.role, Role::Network | Role::Waiting);
            events.iter().any(is_specific) || earlier.any(may_cause)
        }
        // A specific error is a cause wherever a log has it, because processes do not print in the order of what happens. What a
        // process reports after its first specific error follows from that.
        Role::Own => earlier.any(|other| {
            let is_specific = other.role == Role::Own && other.kind != EXCEPTION && other.kind != event.kind;
            is_specific && other.is_of_same_process(event)
        }),
        Role::Reported | Role::Network => {
            earlier.any(|other| other.role == event.role && other.is_of_same_process(event))
        }
        Role::Waiting | Role::Doubtful | Role::Summary | Role::Harmless => {
            earlier.any(|other| other.role == event.role)
        }
    }
}

/// Gives a failed connection another kind, if its address can be reached only on the host that announces it.
fn name_unreachable_address(event: &mut Event, job: &Job) {
    if event.kind != CONNECT {
        return;
    }
    let Some(address) = address_in(&event.message) else { return };
    let interfaces: Vec<(&String, &String)> = job.hosts.iter().flat_map(|host| &host.log.addresses).collect();
    let is_announced_by_several =
        job.hosts.iter().filter(|host| host.log.addresses.values().any(|own| own == address)).count() > 1;
    let is_of_local = interfaces.iter().any(|(interface, own)| own.as_str() == address && is_local(interface, own));
    // Docker's own bridge has this network by default.
    if is_announced_by_several || is_of_local || is_local("", address) || address.starts_with("172.17.") {
        ADDRESS.clone_into(&mut event.kind);
        event.role = Role::Own;
    }
}

/// The address in `connect to 192.0.2.1<4000> returned …`.
fn address_in(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("onnect to ")?;
    Some(rest.split_once('<')?.0)
}

/// An event where the ranks of a group wait for different collectives.
fn collectives_that_differ(events: &[Event], watchdogs: &Watchdogs) -> Option<Event> {
    let message = watchdogs.different()?;
    let timeout = events.iter().find(|event| event.kind == "watchdog")?;
    Some(Event {
        kind: "collectives_differ".to_owned(),
        role: Role::Own,
        message,
        rank: None,
        host: None,
        ..timeout.clone()
    })
}

#[cfg(test)]
mod tests {
    use crate::JobReader;

    /// The kinds of causes, and of what follows.
    fn kinds(logs: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let mut reader = JobReader::default();
        for (name, text) in logs {
            reader.read(name, text.as_bytes()).unwrap();
        }
        let job = reader.finish().remove(0);
        let kinds = |failures: Vec<crate::Failure>| failures.into_iter().map(|failure| failure.kind).collect();
        (kinds(job.causes), kinds(job.consequences))
    }

    #[test]
    fn what_a_process_itself_does_is_the_cause() {
        let closed = "n1:1:1 [0] NCCL WARN socketProgress: Connection closed by remote peer n2<4>\n";
        let memory = "[rank1]: torch.OutOfMemoryError: CUDA out of memory.\n";
        for log in [format!("{closed}{memory}"), format!("{memory}{closed}")] {
            assert_eq!(kinds(&[("log", &log)]), (vec!["gpu_memory".to_owned()], vec!["closed".to_owned()]));
        }
        let raised =
            "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"a.py\", line 1\n[rank1]: ValueError: x\n";
        let retry = "n1:1:1 [0] NCCL INFO socketPollConnect: connect to 10.0.0.2<5> returned Connection refused, retrying (1/34) after \
                     sleep for 100 msec\n";
        // One retry is not a failure. An exception follows from a connection that was lost before it.
        assert_eq!(kinds(&[("log", &format!("{retry}{raised}"))]).0, ["python"]);
        assert_eq!(kinds(&[("log", &format!("{closed}{raised}"))]).0, ["closed"]);
        assert_eq!(kinds(&[("log", retry)]).0, [""; 0]);
        assert_eq!(kinds(&[("log", &retry.repeat(9))]).0, ["connect"]);
    }

    #[test]
    fn collectives_differ_only_within_one_group() {
        let wait = |rank: u32, sequence: u32| {
            format!(
                "[rank{rank}]:[E1127 10:00:00.1 ProcessGroupNCCL.cpp:689] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={sequence}, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=20000) ran for 20076 milliseconds before timing out.\n"
            )
        };
        let group = |number: u32| {
            format!(
                "[rank0]:[E1127 10:00:00.1 ProcessGroupNCCL.cpp:1] [PG ID {number} PG GUID 0(x) Rank 0] Exception\n"
            )
        };
        let waits = wait(0, 7) + &wait(1, 9);
        for (groups, kind) in
            [(group(0), "collectives_differ"), (String::new(), "watchdog"), (group(0) + &group(1), "watchdog")]
        {
            assert_eq!(kinds(&[("log", &format!("{waits}{groups}"))]).0, [kind], "{groups}");
        }
    }

    #[test]
    fn what_shares_a_gpu_and_what_does_not() {
        let start = |rank: u32, id: &str| {
            format!(
                "n1:{}:1 [0] NCCL INFO ncclCommInitRank comm 0x{rank} rank {rank} nranks 2 cudaDev 0 nvmlDev 0 busId 60 commId {id} - Init START\n",
                rank + 1
            )
        };
        assert_eq!(kinds(&[("log", &(start(0, "0xa") + &start(1, "0xa")))]).0, ["gpu_shared"]);
        // Two jobs may share a GPU.
        assert_eq!(kinds(&[("log", &(start(0, "0xa") + &start(1, "0xb")))]).0, [""; 0]);
    }

    #[test]
    fn times_order_the_lines_of_several_logs() {
        let retries = |host: &str, time: &str| {
            format!(
                "[2026-11-27 10:00:{time}] {host}:1:1 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.1<3> with error 12, opcode 0\n"
            )
        };
        let early = retries("b", "01");
        let late = retries("a", "09");
        let mut reader = JobReader::default();
        reader.read("late", late.as_bytes()).unwrap();
        reader.read("early", early.as_bytes()).unwrap();
        let job = reader.finish().remove(0);
        assert_eq!(job.causes[0].host.as_deref(), Some("b"));
        assert_eq!(job.causes[0].at, Some(("early".to_owned(), 1)));
    }
}
