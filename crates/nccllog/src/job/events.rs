//! The failures in the lines of a job, one for each kind, in the order in which they happened.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use memchr::memmem::Finder;
use regex::Regex;

use crate::failure::{self, Role, WARNING, failure_of};
use crate::origin::{Origin, Time};

/// The most distinct failures that are kept. Exceptions and warnings without a row are distinct by their text.
const MOST: usize = 512;

/// A line of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The index of the log.
    pub(super) log: usize,
    /// The number of the line.
    pub(super) line: u64,
}

/// The failures of one kind.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) kind: String,
    pub(super) role: Role,
    /// The message of the first.
    pub(super) message: String,
    pub(super) rank: Option<u32>,
    pub(super) host: Option<String>,
    pub(super) process: Option<u32>,
    pub(super) time: Option<Time>,
    pub(super) place: Place,
    /// Further lines, and their ranks.
    pub(super) more: u64,
    pub(super) more_ranks: BTreeSet<u32>,
}

/// The process of a message of NCCL.
#[derive(Clone, Copy, Debug)]
pub(super) struct Author<'a> {
    pub(super) host: &'a str,
    pub(super) pid: u32,
    pub(super) rank: Option<u32>,
}

impl Author<'_> {
    fn event(self, kind: &str, role: Role, text: &str, time: Option<Time>, place: Place) -> Event {
        Event {
            kind: kind.to_owned(),
            role,
            message: text.to_owned(),
            rank: self.rank,
            host: Some(self.host.to_owned()),
            process: Some(self.pid),
            time,
            place,
            more: 0,
            more_ranks: BTreeSet::new(),
        }
    }
}

/// The kind of a connection that fails.
pub(super) const CONNECT: &str = "connect";
/// Lines after which a traceback has ended, however it ends.
const LONGEST_TRACEBACK: u64 = 1000;

#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) all: Vec<Event>,
    by_key: BTreeMap<String, usize>,
    /// Sources that are inside a traceback, with the line where it starts.
    tracebacks: BTreeMap<String, u64>,
    /// Sources whose next line is NCCL's last warning.
    last_errors: BTreeSet<String>,
    /// The rank and the host of the process that torchrun reports.
    reported_rank: Option<u32>,
    reported_host: Option<String>,
}

impl Event {
    /// Returns true if this event is known to have happened before another one: in one log by its line, otherwise by the times.
    pub(super) fn is_before(&self, other: &Self) -> bool {
        if self.place.log == other.place.log {
            return self.place.line < other.place.line;
        }
        matches!((self.time, other.time), (Some(own), Some(its)) if own < its)
    }

    /// Returns true if both are of one process.
    pub(super) fn is_of_same_process(&self, other: &Self) -> bool {
        let same = |own: &Option<u32>, its: &Option<u32>| own.is_some() && own == its;
        same(&self.rank, &other.rank) || self.host == other.host && same(&self.process, &other.process)
    }
}

#[expect(clippy::expect_used, reason = "constant patterns, which a test compiles")]
static MATTERS: LazyLock<Regex> = LazyLock::new(|| {
    let words = "rror|ailed|ailure|exited|amily|  rank  |  host  |ystem not|FAILED|perations? counts|imed out|imeout|raceback|illed|ignal|xception|Xid|xitcode|exit code|oom|OOM|not found|annot|nable|\
        No |no kernel|losed|ismatch|MISMATCH|uplicate|efused|etrieved|nsufficient|too old|WARN|nresolvable|not select|\
        of memory|NVML|fault|joined|Watchdog|atchdog|eartbeat|roken|eset|endezvous|CCL |CCOM |CCL_|neCCL|ulprit|operation|esolution|known|last enqueued";
    Regex::new(words).expect("a pattern that parses")
});
static TRACEBACK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("Traceback (most recent call last)"));

#[expect(clippy::expect_used, reason = "constant patterns, which a test compiles")]
static EXCEPTION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Timeout|Failure|Warning)\b(?::|$)")
        .expect("a pattern that parses")
});

impl Events {
    /// A quick test for the many lines that no failure is in.
    pub(super) fn may_matter(&self, line: &str) -> bool {
        !self.tracebacks.is_empty() || !self.last_errors.is_empty() || MATTERS.is_match(line)
    }

    /// Adds a line that is not NCCL's: `text` is what stands behind the prefixes.
    pub(super) fn add_line(&mut self, line: &str, text: &str, origin: &Origin<'_>, place: Place) {
        let reported = match field(text, "exitcode") {
            Some(_) => (self.reported_rank.take(), self.reported_host.take()),
            None => (None, None),
        };
        let event = |kind: &str, role: Role| Event {
            kind: kind.to_owned(),
            role,
            message: message_of(text).to_owned(),
            rank: origin.rank.or_else(|| named_rank(text)).or(reported.0),
            host: origin.host.map(str::to_owned).or_else(|| reported.1.clone()),
            process: origin.process.and_then(|process| process.parse().ok()),
            time: origin.time.and_then(Time::find).or_else(|| Time::find(line)),
            place,
            more: 0,
            more_ranks: BTreeSet::new(),
        };
        let source = format!("{:?} {:?} {:?} {}", origin.host, origin.rank, origin.process, place.log);
        if let Some(rank) = field(text, "rank").and_then(|rank| rank.split(' ').next()?.parse().ok()) {
            self.reported_rank = Some(rank);
        } else if let Some(host) = field(text, "host") {
            self.reported_host = Some(host.to_owned());
        }
        if TRACEBACK.find(text.as_bytes()).is_some() {
            if self.tracebacks.len() < MOST {
                self.tracebacks.insert(source, place.line);
            }
            return;
        }
        self.tracebacks.retain(|_, start| place.line.saturating_sub(*start) < LONGEST_TRACEBACK);
        // Frames are indented.
        let is_exception =
            !text.starts_with([' ', '\t']) && EXCEPTION.is_match(text) && self.tracebacks.remove(&source).is_some();
        let is_last_error = self.last_errors.remove(&source);
        if text.trim_end().ends_with("Last error:") && self.last_errors.len() < MOST {
            self.last_errors.insert(source);
            return;
        }
        if text.starts_with([' ', '\t']) && self.tracebacks.contains_key(&source) {
            return;
        }
        // What PyTorch only informs of, and what it warns of.
        if glog_level(text) == Some(b'I') {
            return;
        }
        let warns = glog_level(text) == Some(b'W');
        match failure_of(text) {
            Some(row) if warns => self.add(event(&row.kind, row.role.max(Role::Waiting))),
            Some(row) => self.add(event(&row.kind, row.role)),
            None if is_last_error && !text.trim().is_empty() => self.add(event(WARNING, Role::Own)),
            None if is_exception => self.add(event(failure::EXCEPTION, Role::Own)),
            None => {}
        }
    }

    /// Adds a warning of NCCL.
    pub(super) fn add_warning(&mut self, text: &str, author: Author<'_>, time: Option<Time>, place: Place) {
        let (kind, role) = failure_of(text).map_or((WARNING, Role::Doubtful), |row| (&*row.kind, row.role));
        self.add(author.event(kind, role, text, time, place));
    }

    /// Notes that NCCL returned with an error: the warning before it is why.
    pub(super) fn add_return(&mut self, author: Author<'_>) {
        let warning = self
            .all
            .iter_mut()
            .rfind(|event| event.process == Some(author.pid) && event.host.as_deref() == Some(author.host));
        if let Some(warning) = warning.filter(|event| event.kind == WARNING) {
            warning.role = Role::Own;
        }
    }

    /// Adds a failure that several lines show together.
    pub(super) fn add_derived(&mut self, kind: &str, message: &str) {
        let nobody = Author { host: "", pid: 0, rank: None };
        let event = nobody.event(kind, Role::Own, message, None, Place { log: 0, line: 0 });
        self.add(Event { host: None, process: None, ..event });
    }

    /// Adds a connection that NCCL tries again: only if it never succeeds, something is wrong.
    pub(super) fn add_retry(&mut self, text: &str, author: Author<'_>, place: Place) {
        self.add(author.event(CONNECT, Role::Doubtful, text, None, place));
    }

    pub(super) fn add(&mut self, event: Event) {
        let key = match event.kind.as_str() {
            failure::EXCEPTION | WARNING => format!("{} {}", event.kind, without_numbers(&event.message)),
            // A failure of one kind may be a cause in one line and follow in another.
            kind => format!("{kind} {:?}", event.role),
        };
        if let Some(known) = self.by_key.get(&key).and_then(|index| self.all.get_mut(*index)) {
            known.more += 1;
            known.more_ranks.extend(event.rank);
            if event.is_before(known) && event.place.log != known.place.log {
                let more_ranks = std::mem::take(&mut known.more_ranks);
                *known =
                    Event { more: known.more, more_ranks: known.rank.into_iter().chain(more_ranks).collect(), ..event };
            }
            return;
        }
        if self.all.len() < MOST {
            self.by_key.insert(key, self.all.len());
            self.all.push(event);
        }
    }
}

#[expect(clippy::expect_used, reason = "constant patterns, which a test compiles")]
static RANK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b[Rr]ank[: ] ?(\d+)\b|\brank +: (\d+)|: task (\d+):|^\[(\d+)\] is setting up")
        .expect("a pattern that parses")
});

/// The rank that a message names as its own.
fn named_rank(text: &str) -> Option<u32> {
    let captures = RANK.captures(text)?;
    captures.iter().skip(1).flatten().next()?.as_str().parse().ok()
}

/// The value in a line of torchrun's report: `  rank      : 3 (local_rank: 3)`.
fn field<'l>(text: &'l str, name: &str) -> Option<&'l str> {
    let value = text.strip_prefix("  ")?.strip_prefix(name)?.trim_start().strip_prefix(':')?;
    Some(value.trim())
}

/// The level of a line of glog: `[E1127 12:54:56.905 file.cpp:12] …`, or the same without brackets.
fn glog_level(text: &str) -> Option<u8> {
    let head = text.strip_prefix('[').unwrap_or(text).as_bytes();
    let level = head.first().copied().filter(|level| b"EWIF".contains(level));
    level.filter(|_| head.get(1).is_some_and(u8::is_ascii_digit))
}

/// The message without the prefixes of NCCL and of glog.
fn message_of(text: &str) -> &str {
    let warning = text.split_once("NCCL WARN ").map_or(text, |(_, warning)| warning);
    let is_glog = glog_level(warning).is_some();
    warning.split_once("] ").filter(|_| is_glog).map_or(warning, |(_, message)| message).trim()
}

/// A message without what differs from one rank to the next.
fn without_numbers(message: &str) -> String {
    message.chars().take(100).map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect()
}
