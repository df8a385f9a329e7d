//! The story of a job: its hosts, ranks and communicators, what each host used, and what failed first.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

use super::failure::Failure;
use super::log::NcclLog;
use super::origin::{NcclMessage, Origin, Time, nccl_messages, split_prefixes, unwrap_json};
use super::table::Table;
use super::text::{Lines, TextError};

mod bandwidth;
mod cause;
mod events;
mod watchdog;

use bandwidth::Bandwidth;
use events::{Author, Events, Place};
use watchdog::Watchdogs;

/// The most processes that are kept.
const MOST_PROCESSES: usize = 1 << 16;

/// What the logs of a job show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Names of the logs.
    pub logs: Vec<String>,
    /// Number of lines.
    pub lines: u64,
    /// Number of NCCL's lines among them.
    pub nccl_lines: u64,
    /// Releases of NCCL in lines that name no host, which rank 0 prints.
    pub releases: BTreeSet<String>,
    /// The hosts, by name.
    pub hosts: Vec<HostStory>,
    /// Ranks of the largest communicator that have started it.
    pub started: Vec<u32>,
    /// Ranks of the largest communicator that have completed its start.
    pub completed: Vec<u32>,
    /// Number of ranks of the largest communicator.
    pub ranks: Option<u32>,
    /// Hosts that NCCL counts.
    pub nodes: Option<u32>,
    /// Bus bandwidth that nccl-tests printed for the largest size, with the size.
    pub busbw: Option<String>,
    /// Where that bandwidth falls to less than half of what a smaller size reached.
    pub busbw_drop: Option<String>,
    /// Wrong values that nccl-tests found, with the size.
    pub wrong_values: Option<String>,
    /// A library whose lines look like NCCL's, and are not.
    pub other_library: Option<&'static str>,
    /// The failures that no other failure explains, the likeliest cause first.
    pub causes: Vec<Failure>,
    /// Ranks without a reported timeout, where a timeout is the cause: they did not come to the collective.
    pub silent: Vec<u32>,
    /// The failures that follow from the causes.
    pub consequences: Vec<Failure>,
}

/// What the logs of a job show of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostStory {
    /// The host, as NCCL names it.
    pub name: String,
    /// The ranks of its processes in the largest communicator.
    pub ranks: Vec<u32>,
    /// Releases of NCCL in the processes of the largest communicator.
    pub nccl: BTreeSet<String>,
    /// What NCCL's lines of all of its processes show together.
    pub log: NcclLog,
    /// The first line that says why a network is not used: the log and the number of the line.
    pub refused_at: Option<(String, u64)>,
}

/// Reads the logs of a job, or of several that ran one after the other.
#[derive(Debug, Default)]
pub struct JobReader {
    logs: Vec<String>,
    processes: Vec<Process>,
    /// Indices of processes by their number on their host.
    by_pid: BTreeMap<u32, Vec<usize>>,
    runs: Vec<Run>,
    /// The run that lines without a known process belong to.
    current: usize,
}

/// One start of all ranks.
#[derive(Debug, Default)]
struct Run {
    lines: u64,
    nccl_lines: u64,
    /// The ranks that have started a communicator, with its size and the host.
    started: BTreeSet<Start>,
    /// Releases in lines without NCCL's prefix.
    releases: BTreeSet<String>,
    bandwidth: Bandwidth,
    other_library: Option<&'static str>,
    events: Events,
    watchdogs: Watchdogs,
}

/// A rank's first communicator: the host, the GPU, the rank and the number of ranks.
type Start = (String, String, u32, u32);

/// A process that uses NCCL, with one of its GPUs.
#[derive(Debug)]
struct Process {
    host: String,
    pid: u32,
    /// The GPU: one process may have a rank for each.
    device: i32,
    run: usize,
    log: NcclLog,
    /// The first line that says why a network is not used.
    refused_at: Option<Place>,
    communicators: BTreeMap<String, Communicator>,
}

/// A communicator of a process.
#[derive(Debug)]
struct Communicator {
    /// The GPU, by its index and bus ID.
    gpu: String,
    /// The ID that all ranks of the communicator print, from NCCL 2.18 on.
    id: Option<String>,
    rank: u32,
    ranks: u32,
    is_complete: bool,
}

#[expect(clippy::expect_used, reason = "constant patterns, which a test compiles")]
static INIT: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"comm (?P<comm>0x[0-9a-f]+) rank (?P<rank>\d+) n[rR]anks (?P<ranks>\d+) .*?(?P<gpu>(?:nvmlDev -?\d+ )?busId [0-9a-f]+).*?(?:commId (?P<id>0x[0-9a-f]+).*)?- Init (?P<what>START|COMPLETE)";
    Regex::new(pattern).expect("a pattern that parses")
});

impl JobReader {
    /// Reads one log to its end.
    pub fn read(&mut self, name: &str, source: impl BufRead) -> Result<(), TextError> {
        let log = self.logs.len();
        self.logs.push(name.to_owned());
        self.current = 0;
        let mut lines = Lines::new(source);
        while let Some(line) = lines.next_line()? {
            let place = Place { log, line: line.number };
            self.run(self.current).lines += 1;
            match unwrap_json(line.text) {
                Some((text, host)) => text.lines().for_each(|text| self.add_line(text, host.as_deref(), place)),
                None => self.add_line(line.text, None, place),
            }
        }
        Ok(())
    }

    fn run(&mut self, index: usize) -> &mut Run {
        if self.runs.len() <= index {
            self.runs.resize_with(index + 1, Run::default);
        }
        #[expect(clippy::indexing_slicing, reason = "the run was just made, if it was not there")]
        &mut self.runs[index]
    }

    fn add_line(&mut self, line: &str, collected_from: Option<&str>, place: Place) {
        let mut has_message = false;
        for message in nccl_messages(line) {
            has_message = true;
            self.add_message(&message, place);
        }
        if has_message {
            return;
        }
        let run = self.run(self.current);
        if run.bandwidth.add(line) {
            return;
        }
        if run.events.may_matter(line) || line.contains("NCCL version") {
            let (origin, text) = split_prefixes(line);
            let origin = Origin { host: origin.host.or(collected_from), ..origin };
            run.other_library = run.other_library.or_else(|| other_library(line));
            if text.starts_with("NCCL version") {
                run.releases.extend(NcclLog::read([text]).version);
            }
            run.watchdogs.add(text, origin.rank);
            run.events.add_line(line, text, &origin, place);
        }
    }

    fn add_message(&mut self, message: &NcclMessage<'_>, place: Place) {
        let Some(index) = self.process(message) else { return };
        let Some(process) = self.processes.get_mut(index) else { return };
        let refusals = process.log.refusals();
        process.log.add_message(message.text);
        if process.log.refusals() > refusals {
            process.refused_at.get_or_insert(place);
        }
        if message.text.contains("- Init ")
            && let Some(start) = process.add_init(message.text)
        {
            self.assign_run(index, start);
        }
        let Some(process) = self.processes.get(index) else { return };
        let author = Author { host: &process.host, pid: process.pid, rank: process.rank() };
        let run = process.run;
        let Some(run) = self.runs.get_mut(run) else { return };
        run.nccl_lines += 1;
        if let Some(warning) = message.text.strip_prefix("NCCL WARN ") {
            run.events.add_warning(warning.trim(), author, Time::find(message.before), place);
        } else if let Some(retry) = message.text.strip_prefix("NCCL INFO ").filter(|text| text.contains(", retrying ("))
        {
            run.events.add_retry(retry, author, place);
        } else if is_return(message.text) {
            run.events.add_return(author);
        }
    }

    /// The process that wrote a message.
    fn process(&mut self, message: &NcclMessage<'_>) -> Option<usize> {
        let known = self.by_pid.get(&message.pid).into_iter().flatten().copied();
        let find = |is_host: &dyn Fn(&str) -> bool| {
            let is_author = |process: &Process| process.device == message.device && is_host(&process.host);
            known.clone().find(|index| self.processes.get(*index).is_some_and(is_author))
        };
        // Where two processes write at once, a host may follow a cut message without a space.
        let is_glued = |host: &str| !message.before.is_empty() && message.host.ends_with(host);
        let author = find(&|host| host == message.host).or_else(|| find(&is_glued));
        if author.is_some() {
            return author;
        }
        let index = self.processes.len();
        if index >= MOST_PROCESSES {
            return None;
        }
        self.run(self.current);
        self.by_pid.entry(message.pid).or_default().push(index);
        self.processes.push(Process {
            host: message.host.to_owned(),
            pid: message.pid,
            device: message.device,
            run: self.current,
            log: NcclLog::default(),
            refused_at: None,
            communicators: BTreeMap::new(),
        });
        Some(index)
    }

    /// Moves a process that starts its first communicator to the next run, if another process was that rank on that GPU: a job
    /// was started again.
    fn assign_run(&mut self, index: usize, start: Start) {
        let Some(run) = self.processes.get(index).map(|process| process.run) else { return };
        if self.run(run).started.insert(start.clone()) {
            return;
        }
        let next = run + 1;
        self.run(next).started.insert(start);
        self.current = next;
        let is_new = |(at, process): &(usize, &mut Process)| {
            *at == index || process.run == run && process.communicators.is_empty()
        };
        self.processes.iter_mut().enumerate().filter(is_new).for_each(|(_, process)| process.run = next);
    }

    /// The story of each run.
    pub fn finish(mut self) -> Vec<Job> {
        self.run(0);
        let Self { logs, processes, runs, .. } = self;
        let story = |(index, run): (usize, Run)| {
            let processes: Vec<&Process> = processes.iter().filter(|process| process.run == index).collect();
            run.story(&processes, &logs)
        };
        runs.into_iter().enumerate().map(story).collect()
    }
}

impl Run {
    fn story(self, processes: &[&Process], logs: &[String]) -> Job {
        let ranks = processes.iter().filter_map(|process| Some(process.largest()?.ranks)).max();
        let of_largest = |is_counted: fn(&Communicator) -> bool| {
            let communicators = processes.iter().filter_map(|process| process.largest());
            let ranks_of = communicators.filter(|own| Some(own.ranks) == ranks && is_counted(own)).map(|own| own.rank);
            ranks_of.collect::<BTreeSet<u32>>().into_iter().collect::<Vec<u32>>()
        };
        let mut job = Job {
            logs: logs.to_vec(),
            lines: self.lines,
            nccl_lines: self.nccl_lines,
            hosts: hosts(processes, ranks, &self.releases, logs),
            releases: self.releases,
            started: of_largest(|_| true),
            completed: of_largest(|communicator| communicator.is_complete),
            ranks,
            nodes: processes.iter().filter_map(|process| process.log.nodes).max(),
            busbw: self.bandwidth.at_largest(),
            busbw_drop: self.bandwidth.drop(),
            wrong_values: self.bandwidth.wrong(),
            // RCCL prints NCCL's lines. The names of the others occur in logs of NCCL, too.
            other_library: self.other_library.filter(|library| *library == RCCL || self.nccl_lines == 0),
            ..Job::default()
        };
        let mut events = self.events;
        if let Some(message) = shared_gpu(processes) {
            events.add_derived("gpu_shared", &message);
        }
        cause::find(&mut job, events, &self.watchdogs);
        job
    }
}

/// Ranks of one communicator that start on the same GPU of a host, which NCCL refuses.
fn shared_gpu(processes: &[&Process]) -> Option<String> {
    let mut users: BTreeMap<(&str, &str, &str), BTreeSet<u32>> = BTreeMap::new();
    for process in processes {
        for own in process.communicators.values() {
            let Some(id) = &own.id else { continue };
            users.entry((&process.host, &own.gpu, id)).or_default().insert(own.rank);
        }
    }
    let ((host, gpu, _), users) = users.into_iter().find(|(_, users)| users.len() > 1)?;
    Some(format!("{} on {host} start on one GPU ({gpu})", ranks(&users.into_iter().collect::<Vec<_>>())))
}

/// The hosts of processes, by name. `ranks` is the size of the largest communicator.
fn hosts(processes: &[&Process], ranks: Option<u32>, releases: &BTreeSet<String>, logs: &[String]) -> Vec<HostStory> {
    let mut hosts: BTreeMap<&str, HostStory> = BTreeMap::new();
    for process in processes {
        let host = hosts.entry(&process.host).or_default();
        host.name.clone_from(&process.host);
        host.ranks.extend(process.rank());
        // A process beside the job, such as a server, may run another release.
        if process.largest().is_none_or(|own| Some(own.ranks) == ranks) {
            host.nccl.extend(process.log.version.clone());
        }
        host.log.merge(&process.log);
        let refused_at = process.refused_at.and_then(|place| Some((logs.get(place.log)?.clone(), place.line)));
        host.refused_at = host.refused_at.take().or(refused_at);
    }
    let mut hosts: Vec<HostStory> = hosts.into_values().collect();
    // One release without a host is that of the only host, too.
    if let ([host], true) = (&mut *hosts, releases.len() == 1) {
        host.nccl.extend(releases.clone());
    }
    for host in &mut hosts {
        host.ranks.sort_unstable();
    }
    hosts
}

impl Process {
    /// The largest communicator, in which the rank is the job's.
    fn largest(&self) -> Option<&Communicator> {
        self.communicators.values().max_by_key(|communicator| communicator.ranks)
    }

    fn rank(&self) -> Option<u32> {
        Some(self.largest()?.rank)
    }

    /// Adds the start of a communicator, or its end. Returns the start if it is the first communicator's.
    fn add_init(&mut self, text: &str) -> Option<Start> {
        let captures = INIT.captures(text)?;
        let number = |name| captures.name(name)?.as_str().parse().ok();
        let rank = number("rank")?;
        let ranks = number("ranks")?;
        let is_first = self.communicators.is_empty();
        let communicator = self.communicators.entry(captures["comm"].to_owned()).or_insert_with(|| Communicator {
            gpu: captures["gpu"].to_owned(),
            id: captures.name("id").map(|id| id.as_str().to_owned()),
            rank,
            ranks,
            is_complete: false,
        });
        communicator.is_complete |= &captures["what"] == "COMPLETE";
        is_first.then(|| (self.host.clone(), captures["gpu"].to_owned(), rank, ranks))
    }
}

/// Returns true for a line of the stack through which an error returns: `transport/shm.cc:551 -> 2`.
fn is_return(text: &str) -> bool {
    text.split_once(" -> ").is_some_and(|(place, code)| {
        place.rsplit_once(':').is_some_and(|(file, _)| [".cc", ".h", ".cu"].iter().any(|end| file.ends_with(end)))
            && code.starts_with(|first: char| ('1'..='6').contains(&first))
    })
}

/// AMD's library, which is made of NCCL's sources.
const RCCL: &str = "RCCL";

/// The library of a line that is not NCCL's, although it may look so.
fn other_library(line: &str) -> Option<&'static str> {
    let libraries = [
        ("RCCL version", RCCL),
        (" CCOM ", "AWS Neuron's collectives"),
        ("oneCCL", "oneCCL"),
        ("|CCL_", "oneCCL"),
        ("HCCL", "HCCL"),
    ];
    libraries.iter().find(|(sign, _)| line.contains(sign)).map(|(_, library)| *library)
}

/// Ranks for people: `rank 3`, `ranks 0-3, 7`.
pub fn ranks(ranks: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for rank in ranks {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*rank) => *last = *rank,
            _ => ranges.push((*rank, *rank)),
        }
    }
    let range = |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    let texts: Vec<String> = ranges.iter().map(range).collect();
    format!("{} {}", if ranks.len() == 1 { "rank" } else { "ranks" }, texts.join(", "))
}

/// Interfaces that reach no other host: `rules/tables/interfaces.yaml`.
#[derive(Deserialize)]
pub(super) struct LocalInterfaces {
    has_address: Vec<String>,
    has_none: Vec<String>,
}

pub(super) static LOCAL: Table<LocalInterfaces> = Table::new(include_str!("../tables/interfaces.yaml"), |_| Ok(()));

/// Returns true for an interface that reaches no other host: by the name that container engines, networks of Kubernetes and private
/// networks give it, or by a link-local address.
pub fn is_local(interface: &str, address: &str) -> bool {
    let is_link_local = address.starts_with("169.254.") || address.starts_with("fe80:");
    let mut prefixes = LOCAL.has_address.iter().chain(&LOCAL.has_none);
    interface == "lo" || is_link_local || prefixes.any(|prefix| interface.starts_with(prefix))
}
