//! Finds the rules for a message of a failing job: the table `symptoms.yaml`, and the lines of NCCL's log.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

use super::{LineForm, line_form};

/// A message of a failing job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symptom {
    /// The message: as it was found, or an example of it.
    pub message: String,
    /// Its meaning; `None` where the title of the first rule has it.
    pub meaning: Option<&'static str>,
    /// Rules that find the cause, the most likely first.
    pub rules: &'static [String],
    /// The fix where no rule finds the cause.
    pub fix: Option<&'static str>,
}

/// Messages of one subject.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SymptomGroup {
    #[expect(dead_code, reason = "a heading of the documentation")]
    group: String,
    rows: Vec<SymptomRow>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SymptomRow {
    /// A part of the message that does not change; `...` stands for a part that does.
    text: Option<String>,
    /// True for a text that says little, or that other programs print too.
    #[serde(default)]
    general: bool,
    /// A line of NCCL's log.
    log: Option<String>,
    /// Expressions that groups of the line match as a whole.
    #[serde(default)]
    when: BTreeMap<String, String>,
    /// The number of an error of CUDA, whose text is `text`.
    cuda: Option<u32>,
    /// The name of the error.
    name: Option<String>,
    means: Option<String>,
    #[serde(default)]
    rules: Vec<String>,
    fix: Option<String>,
    #[serde(default)]
    #[expect(dead_code, reason = "for readers of the table")]
    source: Option<String>,
}

/// A row with what finds it.
struct KnownMessage {
    row: &'static SymptomRow,
    finder: MessageFinder,
    /// The message without what differs from one to the next.
    message: String,
}

enum MessageFinder {
    /// A text, without differences of case and space.
    Text,
    /// A line, and the expressions for its groups.
    Line(LineForm, Vec<(&'static str, Regex)>),
    /// An error of CUDA.
    Cuda(Regex),
}

/// How well a row fits a text, from the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SymptomFit {
    /// The text is a part of the message.
    Part,
    /// The text contains the message, which says little.
    General,
    /// The text contains the message.
    Whole,
    /// The text contains the message, and the row is about the numbers and names in it.
    Exact,
}

#[expect(clippy::expect_used, reason = "the table is compiled in, and a test reads it")]
static TABLE: LazyLock<Vec<SymptomGroup>> =
    LazyLock::new(|| serde_yaml::from_str(include_str!("../tables/symptoms.yaml")).expect("a table that parses"));

#[expect(clippy::expect_used, reason = "constant patterns, which a test compiles")]
static KNOWN: LazyLock<Vec<KnownMessage>> = LazyLock::new(|| {
    let regex = |pattern: &str| Regex::new(pattern).expect("a pattern that parses");
    let rows = TABLE.iter().flat_map(|group| &group.rows);
    let known = rows.map(|row| {
        let form = row.log.as_deref().and_then(line_form);
        let finder = match (form, row.cuda) {
            (Some(form), _) => {
                let when = row.when.iter().map(|(group, pattern)| (&**group, regex(&format!("^(?:{pattern})$"))));
                MessageFinder::Line(form, when.collect())
            }
            (None, Some(code)) => MessageFinder::Cuda(regex(&row.cuda_pattern(code))),
            (None, None) => MessageFinder::Text,
        };
        KnownMessage { row, message: row.message(&finder), finder }
    });
    known.collect()
});

/// Words of a text of CUDA that no other program prints.
const TELLING: usize = 4;

/// The known messages that occur in `text`, or that contain it: `text` may be some lines of a log or a part of a message. The
/// most specific are first; a message that says little is there only if no other is.
pub fn find_symptoms(text: &str) -> Vec<Symptom> {
    let text = text.trim();
    let mut found: Vec<(SymptomFit, usize, Symptom)> = Vec::new();
    let folded = folded(text);
    for (index, known) in KNOWN.iter().enumerate() {
        if let Some(fit) = known.fit_of_text(&folded) {
            found.push((fit, index, known.row.symptom(known.message.clone())));
        }
    }
    for line in text.lines() {
        let fits = KNOWN.iter().enumerate().filter_map(|(index, known)| {
            let (fit, message) = known.fit_of_line(line)?;
            Some((fit, message.len(), Reverse(index), known.row.symptom(message)))
        });
        // Rows for one line are alternatives, of which the first precedes the others.
        let best = fits.max_by_key(|(fit, length, index, _)| (*fit, *length, *index));
        found.extend(best.map(|(fit, _, Reverse(index), symptom)| (fit, index, symptom)));
    }
    let best = found.iter().map(|(fit, ..)| *fit).max();
    found.retain(|(fit, ..)| match fit {
        SymptomFit::Part | SymptomFit::General => best == Some(*fit),
        SymptomFit::Whole | SymptomFit::Exact => true,
    });
    found.sort_by_key(|(fit, index, _)| (Reverse(*fit), *index));
    let mut symptoms: Vec<Symptom> = Vec::new();
    for (_, _, symptom) in found {
        if !symptoms.contains(&symptom) {
            symptoms.push(symptom);
        }
    }
    symptoms
}

impl SymptomRow {
    fn symptom(&'static self, message: String) -> Symptom {
        let form = self.log.as_deref().and_then(line_form);
        Symptom {
            message,
            meaning: self.means.as_deref().or(form.map(|form| form.meaning)),
            rules: &self.rules,
            fix: self.fix.as_deref(),
        }
    }

    /// The message without what differs from one to the next.
    fn message(&self, finder: &MessageFinder) -> String {
        let text = self.text.as_deref();
        match (finder, self.cuda) {
            (MessageFinder::Line(form, _), _) => text.unwrap_or_else(|| form.message()).to_owned(),
            (_, Some(code)) => {
                let name = self.name.as_deref().unwrap_or_default();
                format!("CUDA error {code} ({name}): {}", text.unwrap_or_default())
            }
            _ => text.unwrap_or_default().to_owned(),
        }
    }

    /// The pattern of an error of CUDA: its number or its text as NCCL and PyTorch print them, or its name.
    fn cuda_pattern(&self, code: u32) -> String {
        let words: Vec<_> = self.text.as_deref().unwrap_or_default().split_whitespace().map(regex::escape).collect();
        let text = words.join(r"\s+");
        let name = self.name.as_deref().unwrap_or("cudaError");
        let alone = if words.len() < TELLING { String::new() } else { format!("|{text}") };
        format!(
            r"(?i)\bcuda (?:failure|error):? \(?{code}\b|\berror {code}: {text}|\bcuda(?: (?:failure|error))?(?: \d+)?:? ?['(\x22]?{text}|\b{name}\b{alone}"
        )
    }
}

impl KnownMessage {
    /// How the row fits a folded text as a whole, apart from its lines.
    fn fit_of_text(&self, text: &str) -> Option<SymptomFit> {
        let own = self.row.text.as_deref();
        if let (MessageFinder::Text, Some(own)) = (&self.finder, own)
            && contains(text, own)
        {
            return Some(if self.row.general { SymptomFit::General } else { SymptomFit::Whole });
        }
        (folded(&self.message).contains(text) && self.is_told_by(text)).then_some(SymptomFit::Part)
    }

    /// Returns true if a folded part of the message has two words besides a text that other programs print too, such as
    /// the system's text of an error. A single word can be a part of many messages.
    fn is_told_by(&self, part: &str) -> bool {
        let common = match &self.finder {
            MessageFinder::Line(form, _) => form
                .groups(&self.message)
                .and_then(|(_, mut groups)| groups.remove("error").or_else(|| groups.remove("text"))),
            MessageFinder::Text | MessageFinder::Cuda(_) => self.row.text.clone().filter(|_| self.row.general),
        };
        let common = folded(&common.unwrap_or_default());
        let own = if common.is_empty() { part.to_owned() } else { part.replace(&common, " ") };
        !common.contains(part) && own.split_whitespace().nth(1).is_some()
    }

    /// How the row fits a line, with the message in it.
    fn fit_of_line(&self, line: &str) -> Option<(SymptomFit, String)> {
        match &self.finder {
            MessageFinder::Text => None,
            MessageFinder::Cuda(pattern) => pattern.is_match(line).then(|| (SymptomFit::Exact, self.message.clone())),
            MessageFinder::Line(form, when) => {
                let (message, groups) = form.groups(line)?;
                let is_met =
                    |(group, pattern): &(&str, Regex)| pattern.is_match(groups.get(*group).map_or("", |text| text));
                let fit = if when.is_empty() { SymptomFit::Whole } else { SymptomFit::Exact };
                when.iter().all(is_met).then_some((fit, message))
            }
        }
    }
}

/// Returns true if the parts of `pattern` occur in this order.
fn contains(folded: &str, pattern: &str) -> bool {
    let mut rest = folded;
    pattern.split("...").all(|part| match rest.split_once(&*self::folded(part)) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

/// The text without differences of case and space. Numbers stay: they distinguish errors.
fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn first_rule(text: &str) -> Option<&'static str> {
        find_symptoms(text).first()?.rules.first().map(String::as_str)
    }

    #[test]
    fn messages_of_jobs() {
        for (text, rule) in [
            ("unhandled system error", "runtime/shm-too-small"),
            (
                "torch.distributed.DistBackendError: Unhandled  System Error, NCCL version 2.27.5",
                "runtime/shm-too-small",
            ),
            ("libcudart.so.12: cannot open shared object file", "cuda/cudart-missing"),
            ("/lib/libc.so.6: version `GLIBC_2.34' not found (required by x)", "torch/import-fails"),
            (
                "n1:7:9 [3] NCCL WARN NET/IB : Got completion from peer 10.1.1.1<33> with \
                 status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0)",
                "runtime/rdma-ping-fails",
            ),
            (
                "Got completion from peer 10.1.1.1<33> with error 12, opcode 0, len 3, vendor err 129",
                "runtime/rdma-ping-fails",
            ),
            ("GID table changed", "rdma/gid-index-baked"),
        ] {
            assert_eq!(first_rule(text), Some(rule), "{text}");
        }
        for text in ["", "  ", "the job was cancelled by its owner", "ordinal", "-"] {
            assert_eq!(find_symptoms(text), [], "{text}");
        }
    }

    #[test]
    fn errors_of_the_system_alone_say_nothing() {
        let texts = (1..134).map(|number| std::io::Error::from_raw_os_error(number).to_string());
        // Those of glibc, where this program has another C library.
        let texts = texts
            .chain(["Connection timed out", "Cannot allocate memory", "Operation not supported"].map(str::to_owned));
        for text in texts {
            let text = text.split(" (os error").next().unwrap_or_default();
            for text in [text.to_owned(), format!("error: {text}"), format!("{text} (12)")] {
                assert_eq!(find_symptoms(&text), [], "{text}");
            }
        }
        for text in ["attaching to shared memory segment", "failed with error Connection timed out", "out of memory"] {
            assert!(!find_symptoms(text).is_empty(), "{text}");
        }
    }

    /// What is found for a message: the first rule, or the beginning of the meaning or of the fix; and the number of rows.
    fn answer(text: &str) -> (String, usize) {
        let found = find_symptoms(text);
        let first = found.first().unwrap_or_else(|| panic!("nothing is known of {text}"));
        (first.rules.first().cloned().unwrap_or_else(|| first.meaning.unwrap_or_default().to_owned()), found.len())
    }

    #[test]
    fn errors_of_cuda_are_told_apart() {
        for (text, expected) in [
            (
                "host:1:2 [0] transport/p2p.cc:275 NCCL WARN Cuda failure 101 'invalid device ordinal'",
                "env/cuda-visible-devices-baked",
            ),
            ("Cuda failure 2 'out of memory'", "runtime/gpu-memory-taken"),
            ("Cuda failure 'out of memory'", "runtime/gpu-memory-taken"),
            ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "runtime/gpu-memory-taken"),
            (
                "transport/shm.cc:590 NCCL WARN Cuda failure 217 'peer access is not supported between these two devices'",
                "nccl/cumem-host-no-p2p",
            ),
            ("RuntimeError: CUDA error: an illegal memory access was encountered", "A kernel read"),
            ("NCCL WARN Cuda failure 700 'an illegal memory access was encountered'", "A kernel read"),
            ("NCCL WARN Cuda failure 800 'operation not permitted'", "The call is not permitted"),
            ("NCCL WARN Cuda failure 801 'operation not supported'", "This GPU, driver or system"),
            ("init.cc:416 NCCL WARN Cuda failure 'operation not supported'", "This GPU, driver or system"),
            ("Cuda failure 802", "host/fabric-manager-missing"),
            ("Error 802: system not yet initialized", "host/fabric-manager-missing"),
            ("cudaErrorSystemNotReady", "host/fabric-manager-missing"),
            ("Error 803: system has unsupported display driver / cuda driver combination", "host/compat-refused"),
            ("Error 804: forward compatibility was attempted on non supported HW", "host/compat-refused"),
            ("CUDA error 46: CUDA-capable device(s) is/are busy or unavailable", "runtime/gpu-exclusive"),
            // No row knows the number.
            ("NCCL WARN Cuda failure 719 'unspecified launch failure'", "A kernel failed"),
            ("NCCL WARN Cuda failure 716 'misaligned address'", "A call of CUDA failed with an error that"),
        ] {
            let (first, count) = answer(text);
            assert!(first.starts_with(expected) && count == 1, "{text}: {first}, {count} rows");
        }
        // Other numbers are not 802.
        for text in ["Error 12: system", "Error 80: x", "error 803: y"] {
            assert!(find_symptoms(text).iter().all(|symptom| !symptom.message.contains("802")), "{text}");
        }
    }

    #[test]
    fn calls_of_verbs_are_told_apart() {
        let memlock = "runtime/rdma-registration-fails";
        for (text, expected) in [
            ("NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory errno 12", memlock),
            ("Call to ibv_reg_mr failed with error Cannot allocate memory", memlock),
            ("NCCL WARN Call to ibv_create_qp failed with error Unknown error -12", memlock),
            ("Call to ibv_reg_mr_iova2 failed with error Invalid argument", "A call of libibverbs failed"),
            ("NCCL WARN Call to ibv_create_ah failed with error No such device", "A call of libibverbs failed"),
            (
                "NCCL WARN Call to ibv_modify_qp failed with error No data available errno 61",
                "A call of libibverbs failed",
            ),
            ("Call to ibv_modify_qp failed with error Connection timed out", "runtime/rdma-gid-variable"),
            ("Call to ibv_modify_qp failed with error Network is unreachable", "The GID cannot be used here"),
            ("Call to ibv_modify_qp failed with error No such device", "The GID cannot be used here"),
            (
                "NET/IB : Got completion from peer 10.0.0.9<3> with error 5, opcode 48, len 3, vendor err 249",
                "The request was",
            ),
            (
                "NET/IB : Got completion from peer 10.0.0.9<3> with error 12, opcode 0, len 3, vendor err 129",
                "runtime/rdma-ping",
            ),
            (
                "NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_1:1, curr state INIT, next \
                 state RTR, local GID index 3, local GID ::ffff:192.0.2.10, remote GID ::ffff:192.0.2.20",
                "runtime/rdma-gid-variable",
            ),
            (
                "NCCL WARN Call to ibv_modify_qp failed with 22 Invalid argument, on dev mlx5_1:1, curr state INIT, next \
                 state RTR, local GID index 3, local GID ::ffff:192.0.2.10, remote GID ::ffff:192.0.2.20",
                "Two queue pairs could not be connected",
            ),
        ] {
            let (first, count) = answer(text);
            assert!(first.starts_with(expected) && count == 1, "{text}: {first}, {count} rows");
        }
    }

    #[test]
    fn shared_memory_and_multicast_are_told_apart() {
        for (text, expected) in [
            (
                "Error while creating shared memory segment /dev/shm/nccl-a (size 9637888), error: No space left on device (28)",
                "runtime/shm-too-small",
            ),
            ("Error while creating shared memory segment /dev/shm/nccl-a (size 9637888)", "runtime/shm-too-small"),
            (
                "Error while attaching to shared memory segment /dev/shm/nccl- (size 0), error: No such file or directory (2)",
                "The ranks of a host chose different kinds",
            ),
            (
                "Error while creating shared memory segment /dev/shm/nccl-a (size 9), error: Permission denied (13)",
                "A segment of shared memory could not be created",
            ),
            (
                "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 2 'out of memory'.",
                "The GPU has no multicast memory left",
            ),
            (
                "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2 : CUDA error 401 'the operation cannot be \
                 performed in the present state'",
                "runtime/multicast-refused",
            ),
        ] {
            let (first, count) = answer(text);
            assert!(first.starts_with(expected) && count == 1, "{text}: {first}, {count} rows");
        }
    }

    #[test]
    fn the_most_specific_message_of_a_text_counts() {
        let text = "torch.distributed.DistBackendError: NCCL error, unhandled system error, NCCL version 2.27.5\nLast error:\n\
                    Call to ibv_modify_qp failed with error Connection timed out";
        assert_eq!(answer(text), ("runtime/rdma-gid-variable".to_owned(), 1));
        let text = "NCCL INFO NET/IB : No device found.\nNCCL WARN Cuda failure 700 'an illegal memory access was encountered'";
        assert_eq!(answer(text).1, 1);
        assert_eq!(answer("NCCL INFO NET/IB : No device found."), ("rdma/no-provider".to_owned(), 1));
        assert!(find_symptoms("NET/IB : No device found.")[0].fix.is_some());
    }

    #[test]
    fn every_message_finds_itself() {
        let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rules");
        assert!(KNOWN.len() > 70, "{} rows", KNOWN.len());
        for known in KNOWN.iter() {
            let symptom = known.row.symptom(known.message.clone());
            let found = find_symptoms(&symptom.message);
            let is_found = found.iter().any(|found| (found.meaning, found.rules) == (symptom.meaning, symptom.rules));
            assert!(is_found, "{}: {found:?}", symptom.message);
            assert!(!symptom.rules.is_empty() || symptom.fix.is_some(), "{}", symptom.message);
            for rule in symptom.rules {
                assert!(rules.join(format!("{rule}.yaml")).is_file(), "{}: there is no rule {rule}", symptom.message);
            }
        }
    }
}
