//! What stands before a message: the prefixes of launchers and log collectors, and NCCL's own.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use regex::Regex;
use serde::Deserialize;

/// Where a line comes from, as far as its prefixes say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Origin<'l> {
    /// The machine, pod or container.
    pub(super) host: Option<&'l str>,
    /// The rank in the job, or the task of the launcher, which is the rank where it starts one process for each GPU.
    pub(super) rank: Option<u32>,
    /// The process.
    pub(super) process: Option<&'l str>,
    /// The time, as it is written.
    pub(super) time: Option<&'l str>,
}

/// A time of a log: milliseconds since the start of its year, because some forms have no year. The time zone is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Time(pub(super) u64);

/// A message of NCCL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NcclMessage<'l> {
    pub(super) host: &'l str,
    pub(super) pid: u32,
    pub(super) device: i32,
    /// What stands before the host, which may hold the time.
    pub(super) before: &'l str,
    /// The text from `NCCL` and the level on.
    pub(super) text: &'l str,
}

/// A line of a log collector that wraps each line in JSON.
#[derive(Deserialize)]
struct Wrapped {
    #[serde(alias = "message", alias = "msg", alias = "textPayload", alias = "MESSAGE", alias = "line")]
    log: Option<String>,
    #[serde(alias = "hostname", alias = "pod", alias = "_HOSTNAME", alias = "node")]
    host: Option<String>,
}

/// The text in a line of JSON, and the host that it names; `None` if the line is not such JSON.
pub(super) fn unwrap_json(line: &str) -> Option<(String, Option<String>)> {
    if !line.starts_with('{') || !line.ends_with('}') {
        return None;
    }
    let wrapped: Wrapped = serde_json::from_str(line).ok()?;
    Some((wrapped.log?, wrapped.host))
}

#[expect(clippy::expect_used, reason = "constant patterns, which a test compiles")]
static PREFIXES: LazyLock<[Regex; 11]> = LazyLock::new(|| {
    [
        // Docker, kubectl logs --timestamps, and most collectors.
        r"^(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?)(?:Z|[+-]\d\d:?\d\d)?(?: (?:stdout|stderr) [FP])?:? ",
        // kubectl logs --prefix.
        r"^\[pod/(?P<host>[^/\]]+)/[^\]]+\] ",
        // Open MPI and PRRTE, --tag-output.
        r"^\[(?:[\w.\-]+@)?\d+,(?P<rank>\d+)\]<std(?:out|err|diag)>: ?",
        // PyTorch names the rank of its own messages, which some collectors number.
        r"^(?:\[\d+\] )?\[rank(?P<rank>\d+)\]: ?",
        // torchrun: the role and the rank on this host.
        r"^\[[a-z][\w\-]*?\d+\]: ?",
        // srun --label.
        r"^ *(?P<rank>\d+): ",
        // docker compose.
        r"^(?P<host>[\w.\-]+) +\| ",
        // Ray and vLLM.
        r"^\((?:[\w.]+(?: rank=(?P<rank>\d+))? )?pid=(?P<process>\d+)(?:, ip=(?P<host>[\w.:\-]+))?\) ",
        // pdsh and DeepSpeed.
        r"^(?P<host>\d+\.\d+\.\d+\.\d+): ",
        // Python's logging, as vLLM and others set it up.
        r"^(?:ERROR|WARNING|INFO|CRITICAL) (?P<time>\d\d-\d\d \d\d:\d\d:\d\d) \[[^\]]+\] ?",
        // journalctl and syslog.
        r"^(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?) (?P<host>[\w.\-]+) [^\s:\[]+(?:\[(?P<process>\d+)\])?: ",
    ]
    .map(|pattern| Regex::new(pattern).expect("a pattern that parses"))
});

/// Splits a line into its origin and the text behind the prefixes.
pub(super) fn split_prefixes(line: &str) -> (Origin<'_>, &str) {
    let mut origin = Origin::default();
    let mut rest = line;
    while has_prefix(rest)
        && let Some((end, found)) = PREFIXES.iter().find_map(|prefix| {
            let captures = prefix.captures(rest)?;
            let group = |name| captures.name(name).map(|found| found.as_str());
            let found = Origin {
                host: group("host"),
                rank: group("rank").and_then(|rank| rank.parse().ok()),
                process: group("process"),
                time: group("time"),
            };
            Some((captures.get(0)?.end(), found))
        })
    {
        origin = Origin {
            host: found.host.or(origin.host),
            // PyTorch's own word for a rank counts more than the launcher's number of a task.
            rank: found.rank.or(origin.rank),
            process: found.process.or(origin.process),
            time: found.time.or(origin.time),
        };
        rest = rest.get(end..).unwrap_or_default();
    }
    (origin, rest)
}

/// Returns true if a prefix may start here: a quick test for the many lines that have none.
fn has_prefix(line: &str) -> bool {
    line.starts_with(['[', '(', ' ']) || line.bytes().take(64).any(|byte| byte == b'|') || {
        let word = line.split(' ').next().unwrap_or_default();
        word.starts_with(|first: char| first.is_ascii_digit())
            || word.len() == 3
            || word.bytes().all(|byte| byte.is_ascii_uppercase())
    }
}

static NCCL: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"NCCL "));

/// The messages of NCCL in a line, each behind NCCL's prefix. Where processes write to one file, a line may hold several.
pub(super) fn nccl_messages(line: &str) -> impl Iterator<Item = NcclMessage<'_>> {
    let mut heads = heads(line).peekable();
    std::iter::from_fn(move || {
        let (head, message) = heads.next()?;
        let end = heads.peek().map_or(line.len(), |(next, _)| next.start);
        let text = line.get(head.end..end).unwrap_or_default().trim_end();
        Some(NcclMessage { text, ..message })
    })
}

/// NCCL's prefixes in a line: `[TIME] HOST:PID:THREAD [DEVICE] FILE:LINE (FUNCTION) `, of which the time, the file and the
/// function may be missing.
fn heads(line: &str) -> impl Iterator<Item = (Range<usize>, NcclMessage<'_>)> {
    NCCL.find_iter(line.as_bytes()).filter_map(move |at| {
        let level = line.get(at + 5..)?;
        let is_level =
            ["INFO ", "WARN ", "TRACE ", "CALL ", "ABORT ", "ERROR "].iter().any(|name| level.starts_with(name));
        let before = line.get(..at).filter(|_| is_level)?.trim_end();
        let before = before.strip_suffix(')').and_then(|text| text.rsplit_once(" (")).map_or(before, |(text, _)| text);
        let before = if before.ends_with(']') { before } else { before.rsplit_once(' ')?.0 };
        let (before, device) = before.strip_suffix(']')?.rsplit_once('[')?;
        let before = before.trim_end();
        let start = before.rfind(' ').map_or(0, |space| space + 1);
        let mut parts = before.get(start..)?.rsplitn(3, ':');
        let thread = parts.next()?;
        let pid = parts.next()?.parse().ok()?;
        let host = parts.next().filter(|host| !host.is_empty() && thread.parse::<u64>().is_ok())?;
        // A launcher's prefix may have no space behind it: `[1,0]<stdout>:host`, `[default0]:host`.
        let host = host.rsplit_once(['>', ']']).map_or(host, |(_, host)| host.trim_start_matches(':'));
        let device = device.parse().ok()?;
        Some((start..at, NcclMessage { host, pid, device, before: before.get(..start)?, text: "" }))
    })
}

#[expect(clippy::expect_used, reason = "a constant pattern, which a test compiles")]
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    // An ISO date, one of syslog, or glog's, which follows the letter of the level.
    let date = r"(?:\d{4}[-/])?(?P<m>\d\d)[-/](?P<d>\d\d)|(?P<name>[A-Z][a-z]{2}) +(?P<of>\d{1,2})|[EWIF](?P<gm>\d{1,2})(?P<gd>\d\d)";
    let clock = r"(?P<hours>\d\d):(?P<minutes>\d\d):(?P<seconds>\d\d)(?:[.,](?P<fraction>\d{1,3}))?";
    Regex::new(&format!("(?:{date})[T ]{clock}")).expect("a pattern that parses")
});

impl Time {
    /// The first time in a text.
    pub(super) fn find(text: &str) -> Option<Self> {
        let captures = TIME.captures(text)?;
        let group = |name| captures.name(name).map(|found| found.as_str());
        let number = |name| group(name)?.parse::<u64>().ok();
        let named = group("name").and_then(|name| {
            let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
            months.iter().position(|month| *month == name).map(|index| index as u64 + 1)
        });
        let month = number("m").or(named).or_else(|| number("gm"))?;
        let day = number("d").or_else(|| number("of")).or_else(|| number("gd"))?;
        let fraction: String = group("fraction").unwrap_or_default().chars().chain("000".chars()).take(3).collect();
        // Every month has 31 days here: times are only compared.
        let hours = (month * 31 + day) * 24 + number("hours")?;
        let seconds = (hours * 60 + number("minutes")?) * 60 + number("seconds")?;
        Some(Self(seconds * 1000 + fraction.parse::<u64>().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_launchers_and_collectors() {
        for (line, host, rank, process, rest) in [
            ("[pod/train-0/pytorch] x", Some("train-0"), None, None, "x"),
            ("2026-05-22T10:26:17.123456Z stdout F [rank3]: x", None, Some(3), None, "x"),
            ("[1,12]<stdout>:node:1:2 [0] x", None, Some(12), None, "node:1:2 [0] x"),
            ("[prterun-head-17@1,2]<stderr>: x", None, Some(2), None, "x"),
            ("[default3]:[rank11]: x", None, Some(11), None, "x"),
            (" 7: x", None, Some(7), None, "x"),
            ("worker-1  | x", Some("worker-1"), None, None, "x"),
            ("(RayWorkerWrapper pid=123, ip=10.0.0.2) x", Some("10.0.0.2"), None, Some("123"), "x"),
            ("(Worker_TP3 pid=217) ERROR x", None, None, Some("217"), "ERROR x"),
            ("Nov 27 10:00:00 node-7 train[88]: x", Some("node-7"), None, Some("88"), "x"),
            ("RuntimeError: x", None, None, None, "RuntimeError: x"),
            ("[0] is setting up", None, None, None, "[0] is setting up"),
        ] {
            let (origin, text) = split_prefixes(line);
            assert_eq!((origin.host, origin.rank, origin.process, text), (host, rank, process, rest), "{line}");
        }
        let line = r#"{"log":"node:1:2 [0] NCCL INFO x","stream":"stderr","pod":"train-0"}"#;
        assert_eq!(unwrap_json(line), Some(("node:1:2 [0] NCCL INFO x".to_owned(), Some("train-0".to_owned()))));
        assert_eq!(unwrap_json(r#"{"loss": 1}"#), None);
    }

    #[test]
    fn prefixes_of_nccl() {
        for (line, expected) in [
            ("a:10:22 [0] NCCL INFO x", [("a", 10, 0, "NCCL INFO x")].to_vec()),
            ("a.b:10:22 [-1] misc/socket.cc:621 NCCL WARN x y", [("a.b", 10, -1, "NCCL WARN x y")].to_vec()),
            ("a:1:2 [3] bootstrap.cc:7 (bootstrapInit) NCCL WARN x", [("a", 1, 3, "NCCL WARN x")].to_vec()),
            ("a:1:2 [3] nccl_net_ofi_rdma_init:7836 NCCL WARN x", [("a", 1, 3, "NCCL WARN x")].to_vec()),
            // Two processes that write at once.
            (
                "a:1:2 [0] NCCL INFO Using net a:5:6 [1] NCCL INFO y",
                [("a", 1, 0, "NCCL INFO Using net"), ("a", 5, 1, "NCCL INFO y")].to_vec(),
            ),
            ("NCCL version 2.20.5+cuda12.4", Vec::new()),
            ("the NCCL INFO lines", Vec::new()),
        ] {
            let found: Vec<_> =
                nccl_messages(line).map(|found| (found.host, found.pid, found.device, found.text)).collect();
            assert_eq!(found, expected, "{line}");
        }
        let line = "[2026-05-22 10:26:17] a:1:2 [4] misc/shmutils.cc:93 NCCL WARN x";
        assert_eq!(
            nccl_messages(line).next().and_then(|found| Time::find(found.before)),
            Time::find("May 22 10:26:17")
        );
    }

    #[test]
    fn times_of_several_forms() {
        let time = Time::find("2026-06-26 06:24:44.903").unwrap();
        for text in
            ["[E626 06:24:44.903881913 x]", "06-26 06:24:44,903", "Jun 26 06:24:44.903", "2026-06-26T06:24:44.903Z"]
        {
            assert_eq!(Time::find(text), Some(time), "{text}");
        }
        assert!(Time::find("2026-07-01 00:00:00").unwrap() > time && Time::find("10:26:17").is_none());
    }
}
