//! Finds the rules for a message of a failing job: the table `symptoms.yaml`, and the lines of NCCL's log.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde::Deserialize;

use super::forms::{LineForm, form_ids, line_form};
use super::table::Table;

/// A message of a failing job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symptom {
    /// The message: as it was found, or an example of it.
    pub message: String,
    /// Its meaning; `None` where the title of the first rule has it.
    pub meaning: Option<String>,
    /// Rules that find the cause, the most likely first.
    pub rules: &'static [String],
    /// The fix where no rule finds the cause.
    pub fix: Option<String>,
    /// True for a message that says little.
    pub is_general: bool,
    /// Words with which people ask about it.
    pub asked: Option<&'static str>,
}

/// Messages of one subject.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SymptomGroup {
    #[expect(dead_code, reason = "a heading of the documentation")]
    group: String,
    /// Where the rows without a source of their own are read.
    #[serde(default)]
    #[expect(dead_code, reason = "for readers of the table")]
    source: Option<String>,
    rows: Vec<SymptomRow>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SymptomRow {
    /// A part of the message that does not change; `...` stands for a part that does.
    text: Option<String>,
    /// Other texts of the message.
    also: Vec<String>,
    /// The message as an expression, whose groups `means` and `fix` name in braces; `text` is an example.
    pattern: Option<String>,
    /// True for a text that says little, or that other programs print too.
    general: bool,
    /// A line of NCCL's log.
    log: Option<String>,
    /// Expressions that groups of the line match as a whole.
    when: BTreeMap<String, String>,
    /// The number of an error of CUDA, whose text is `text`.
    cuda: Option<u32>,
    /// The name of the error.
    name: Option<String>,
    /// The number of an error in the kernel log, whose text is `text`.
    xid: Option<u32>,
    /// Words with which people ask about it.
    asked: Option<String>,
    means: Option<String>,
    rules: Vec<String>,
    fix: Option<String>,
    source: Option<String>,
}

/// A library and what brings it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LibrarySource {
    /// Beginnings of the names of its files.
    library: Vec<String>,
    /// What it usually comes with.
    from: String,
    #[expect(dead_code, reason = "for readers of the table")]
    source: String,
}

/// A row with what finds it.
struct KnownMessage {
    row: &'static SymptomRow,
    form: Option<LineForm>,
    finders: Vec<Regex>,
    /// Expressions for groups of the line.
    when: Vec<(&'static str, Regex)>,
    /// The message without what differs from one to the next.
    message: String,
    fit: SymptomFit,
}

/// How well a row fits a text, from the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SymptomFit {
    /// The text is a part of the message.
    Part,
    /// The text contains a line that NCCL also prints in a healthy job.
    Ordinary,
    /// The text contains the message, which says little.
    General,
    /// The text contains the message.
    Whole,
    /// The text contains the message, and the row is about the numbers and names in it.
    Exact,
}

/// A place of a text where a row fits.
struct FoundMessage {
    fit: SymptomFit,
    place: Range<usize>,
    index: usize,
    symptom: Symptom,
}

pub(super) static TABLE: Table<Vec<SymptomGroup>> = Table::new(include_str!("../tables/symptoms.yaml"), |groups| {
    let mut rows = groups.iter().flat_map(|group| &group.rows);
    rows.try_for_each(|row| row.expressions().try_for_each(|one| Regex::new(&one).map(drop)))
});

pub(super) static LIBRARIES: Table<Vec<LibrarySource>> =
    Table::new(include_str!("../tables/libraries.yaml"), |_| Ok(()));

/// The rows of the table, and a row for each line of NCCL's log that the table does not have.
static KNOWN: LazyLock<Vec<KnownMessage>> = LazyLock::new(|| {
    static ORDINARY: LazyLock<Vec<SymptomRow>> = LazyLock::new(|| {
        let rows = || TABLE.iter().flat_map(|group| &group.rows);
        let has_row = |id: &&str| rows().all(|row| row.log.as_deref() != Some(*id));
        let ids = form_ids().filter(has_row);
        ids.map(|id| SymptomRow { log: Some(id.to_owned()), ..SymptomRow::default() }).collect()
    });
    let told = TABLE.iter().flat_map(|group| &group.rows).map(|row| (row, false));
    told.chain(ORDINARY.iter().map(|row| (row, true))).map(|(row, is_ordinary)| row.known(is_ordinary)).collect()
});

/// Words of a text of CUDA that no other program prints.
const TELLING: usize = 4;

/// What precedes NCCL's last warning in the exceptions of PyTorch and of JAX.
const QUOTES: [&str; 2] = ["Last error:", "log entry (may be unrelated)"];

/// The known messages that occur in `text`, or that contain it: `text` may be some lines of a log or a part of a message. The
/// most specific are first; a message that says little is there only if no other is. Of an exception, NCCL's last warning
/// counts.
pub fn find_symptoms(text: &str) -> Vec<Symptom> {
    let text = text.trim();
    let quoted = |quote: &'static str| {
        let places = text.match_indices(quote).filter_map(|(at, _)| text.get(at + quote.len()..));
        places.filter_map(|rest| rest.trim_start().lines().next())
    };
    let last: Vec<&str> = QUOTES.into_iter().flat_map(quoted).collect();
    let mut found = find_messages(&last.join("\n"));
    if found.is_empty() {
        found = find_messages(text);
    }
    if found.is_empty() {
        let folded = folded(text);
        let parts = KNOWN.iter().enumerate().filter(|(_, known)| known.contains(&folded));
        found.extend(parts.map(|(index, known)| FoundMessage {
            fit: SymptomFit::Part,
            place: 0..0,
            index,
            symptom: known.example(),
        }));
    }
    found.sort_by_key(|found| (Reverse(found.fit), found.index));
    found.dedup_by_key(|found| found.index);
    found.into_iter().map(|found| found.symptom).collect()
}

/// Every message, with an example of it.
pub fn all_symptoms() -> impl Iterator<Item = Symptom> {
    KNOWN.iter().map(KnownMessage::example)
}

/// The rows that fit places of a text. Where several fit one place, the most specific counts, then the longest, then the first.
fn find_messages(text: &str) -> Vec<FoundMessage> {
    let mut all: Vec<_> = KNOWN.iter().enumerate().flat_map(|(index, known)| known.find(text, index)).collect();
    all.sort_by_key(|found| (Reverse(found.fit), Reverse(found.place.len()), found.index));
    let best = all.first().map(|found| found.fit);
    let mut kept: Vec<FoundMessage> = Vec::new();
    for found in all {
        let is_worse = found.fit <= SymptomFit::General && Some(found.fit) != best;
        let is_apart =
            |other: &FoundMessage| found.place.end <= other.place.start || other.place.end <= found.place.start;
        if !is_worse && kept.iter().all(is_apart) {
            kept.push(found);
        }
    }
    kept
}

impl SymptomRow {
    /// The expressions of the row, as they are compiled.
    fn expressions(&self) -> impl Iterator<Item = String> {
        self.pattern.iter().map(|pattern| in_lines(pattern)).chain(self.when.values().map(|pattern| whole(pattern)))
    }

    fn known(&'static self, is_ordinary: bool) -> KnownMessage {
        let form = self.log.as_deref().and_then(line_form);
        let text = self.text.as_deref();
        let message = match (&form, self.cuda, self.xid) {
            (Some(form), ..) => text.unwrap_or_else(|| form.message()).to_owned(),
            (None, Some(code), _) => {
                let name = self.name.as_deref().unwrap_or_default();
                format!("CUDA error {code} ({name}): {}", text.unwrap_or_default())
            }
            (None, None, Some(number)) => format!("Xid {number}: {}", text.unwrap_or_default()),
            (None, None, None) => text.or(self.asked.as_deref()).unwrap_or_default().to_owned(),
        };
        let fit = match () {
            () if is_ordinary => SymptomFit::Ordinary,
            () if self.cuda.is_some() && self.general => SymptomFit::Whole,
            () if self.cuda.is_some() || self.xid.is_some() || !self.when.is_empty() => SymptomFit::Exact,
            () if self.general => SymptomFit::General,
            () => SymptomFit::Whole,
        };
        let when = self.when.iter().map(|(group, pattern)| (&**group, regex(&whole(pattern)))).collect();
        KnownMessage { row: self, finders: self.finders(form.as_ref()), form, when, message, fit }
    }

    fn finders(&self, form: Option<&LineForm>) -> Vec<Regex> {
        let own = match (form, self.cuda, self.xid, &self.pattern) {
            (Some(form), ..) => Some(quoted_form(form.expression())),
            (None, Some(code), ..) => Some(self.cuda_pattern(code)),
            (None, None, Some(number), _) => {
                Some(format!(r"(?i)\bxid\b(?:\s*\([^)]*\))?(?:\s+(?:errors?|code|number))*\s*[:=#]?\s*{number}\b"))
            }
            (None, None, None, Some(pattern)) => Some(in_lines(pattern)),
            (None, None, None, None) => self.text.as_deref().map(text_pattern),
        };
        own.into_iter().chain(self.also.iter().map(|text| text_pattern(text))).map(|pattern| regex(&pattern)).collect()
    }

    /// The pattern of an error of CUDA: its number or its text as NCCL, PyTorch and vLLM print them, or its name.
    fn cuda_pattern(&self, code: u32) -> String {
        let words: Vec<_> = self.text.as_deref().unwrap_or_default().split_whitespace().map(regex::escape).collect();
        let text = words.join(r"\s+");
        let name = regex::escape(self.name.as_deref().unwrap_or("cudaError"));
        let alone = if words.len() < TELLING { String::new() } else { format!("|{text}") };
        format!(
            r"(?i)\bcuda (?:failure|error):? \(?{code}\b(?:\)?:? ['\x22]?{text})?|\berror {code}: {text}|\bcuda(?: (?:failure|error))?(?: \S+:\d+)?(?: \d+)?:? ?['(\x22]?{text}|\b{name}\b{alone}"
        )
    }
}

impl KnownMessage {
    /// The row with an example of its message.
    fn example(&self) -> Symptom {
        let found = self.finders.iter().find_map(|finder| finder.captures(&self.message));
        self.symptom(self.message.clone(), found.as_ref())
    }

    /// The row, filled with what was found.
    fn symptom(&self, message: String, found: Option<&Captures<'_>>) -> Symptom {
        let fill = |text: &str| found.map_or_else(|| text.to_owned(), |found| fill(text, found));
        let meaning = self.row.means.as_deref().or(self.form.as_ref().map(|form| form.meaning));
        Symptom {
            message,
            meaning: meaning.map(fill),
            rules: &self.row.rules,
            fix: self.row.fix.as_deref().map(fill),
            is_general: self.fit <= SymptomFit::General,
            asked: self.row.asked.as_deref(),
        }
    }

    /// The places of a text where the row fits.
    fn find(&self, text: &str, index: usize) -> Vec<FoundMessage> {
        let finders = self.finders.iter().enumerate();
        let found =
            finders.flat_map(|(number, finder)| finder.captures_iter(text).take(PLACES).map(move |it| (number, it)));
        let found = found.filter_map(|(number, captures)| {
            let group = |name: &str| captures.name(name).map_or("", |found| found.as_str());
            let is_met = self.when.iter().all(|(name, pattern)| pattern.is_match(group(name)));
            let whole = captures.get(0).filter(|_| is_met)?;
            let is_example = self.form.is_none() && self.row.pattern.is_none() && number == 0;
            // The end of JAX's quotation.
            let own = whole.as_str().trim().trim_end_matches("'.");
            let message = if is_example { self.message.clone() } else { own.to_owned() };
            let symptom = self.symptom(message, Some(&captures));
            Some(FoundMessage { fit: self.fit, place: whole.range(), index, symptom })
        });
        found.collect()
    }

    /// Returns true if a folded text is a part of the message that has two words besides a text that other programs print
    /// too, such as the system's text of an error. A single word can be a part of many messages.
    fn contains(&self, part: &str) -> bool {
        let common = match &self.form {
            Some(form) => form
                .groups(&self.message)
                .and_then(|(_, mut groups)| groups.remove("error").or_else(|| groups.remove("text"))),
            None if self.row.general => self.row.text.clone(),
            None if self.row.cuda.is_none() => self.message.split_once(": ").map(|(_, reason)| reason.to_owned()),
            None => None,
        };
        let common = folded(&common.unwrap_or_default());
        let own = if common.is_empty() { part.to_owned() } else { part.replace(&common, " ") };
        let is_told = !common.contains(part) && own.split_whitespace().filter(|word| word.len() > 2).nth(1).is_some();
        is_told && !self.finders.is_empty() && folded(&self.message).contains(part)
    }
}

/// Places of one text where a row is looked for.
const PLACES: usize = 64;

#[expect(clippy::expect_used, reason = "a test compiles those of the crate, and Table those of other tables")]
fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a pattern that parses")
}

/// The pattern of a text, without differences of case and space.
fn text_pattern(text: &str) -> String {
    let part = |part: &str| part.split_whitespace().map(regex::escape).collect::<Vec<_>>().join(r"\s+");
    let mut parts: Vec<_> = text.split("...").map(part).collect();
    if let Some(last) = parts.last_mut().filter(|last| last.is_empty()) {
        // What differs at the end is a word.
        r"\S*".clone_into(last);
    }
    let edge = |is_word: bool| if is_word { r"\b" } else { "" };
    let is_word = |character: char| character.is_alphanumeric();
    format!("(?i){}{}{}", edge(text.starts_with(is_word)), parts.join(r".*?"), edge(text.ends_with(is_word)))
}

/// The pattern of a group that matches as a whole.
fn whole(pattern: &str) -> String {
    format!("^(?:{pattern})$")
}

/// The pattern of a message that may begin in any line.
fn in_lines(pattern: &str) -> String {
    format!("(?m){pattern}")
}

/// The pattern of a line of NCCL's log, also where an exception quotes it without NCCL's prefix.
pub(super) fn quoted_form(expression: &str) -> String {
    let levels = ["NCCL (?:INFO|WARN) ", "NCCL WARN ", "NCCL INFO "];
    let pattern = levels.iter().fold(expression.to_owned(), |pattern, level| pattern.replace(level, ""));
    let pattern = pattern.strip_suffix('$').map_or_else(|| pattern.clone(), |open| format!(r"{open}(?:$|['\x22])"));
    in_lines(&pattern)
}

/// Fills in the groups of a message, and `{from}`: what the library in it comes with.
fn fill(text: &str, found: &Captures<'_>) -> String {
    let group = |name: &str| found.name(name).map_or("", |found| found.as_str());
    let names = ["library", "symbol", "version", "file", "resource"];
    let filled = names.iter().fold(text.to_owned(), |text, name| text.replace(&format!("{{{name}}}"), group(name)));
    let library = group("library");
    let sources = LIBRARIES.iter().filter(|known| known.library.iter().any(|name| library.starts_with(&**name)));
    let from = sources.map(|known| known.from.clone()).next();
    let search = || format!("a package that `apt-file search {library}` or `dnf provides '*/{library}'` names");
    if filled.contains("{from}") { filled.replace("{from}", &from.unwrap_or_else(search)) } else { filled }
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
        // Those of ENFILE and EMFILE are a message of their own.
        let numbers = (1..134).filter(|number| ![23, 24].contains(number));
        let texts = numbers.map(|number| std::io::Error::from_raw_os_error(number).to_string());
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
        (first.rules.first().cloned().or(first.meaning.clone()).unwrap_or_default(), found.len())
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
            (
                "NCCL WARN Cuda failure 702 'the launch timed out and was terminated'",
                "A call of CUDA failed with an error that",
            ),
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
    fn only_the_most_specific_row_answers() {
        for (text, expected) in [
            (
                "XlaRuntimeError: INTERNAL: NCCL operation ncclGroupEnd() failed: unhandled system error. Last NCCL \
                 warning(error) log entry (may be unrelated) 'Call to ibv_modify_qp failed with error Connection timed out'.",
                "runtime/rdma-gid-variable",
            ),
            (
                "NCCL INFO socketPollConnect: connect to 169.254.170.23<3> returned Connection refused",
                "runtime/virtual",
            ),
            ("Connect to 10.0.0.5<21724> failed : Software caused connection abort", "runtime/virtual-interface"),
            ("bootstrap.cc:77 NCCL WARN Message truncated : received 172 bytes instead of 64", "nccl/several-copies"),
            (
                "NET/Socket : peer 192.0.2.94<4> message truncated : receiving 4 bytes instead of 2",
                "env/algorithm-forced",
            ),
            ("Call to ibv_reg_mr failed with error Bad address errno 14", "host/gpu-direct-missing"),
            ("NET/OFI Request 0x7f completed with error. RC: 113. Error: 2 (UNDELIVERABLE)", "EFA drops the packets"),
            ("NET/OFI Selected provider is efa, fabric is efa (found 4 nics)", "libfabric provider of the AWS plugin"),
            ("Failed: Cuda error custom_all_reduce.cuh:368 'invalid argument'", "vLLM's own all-reduce"),
            ("x.so: undefined symbol: ncclCommWindowRegister", "nccl/symbol-missing"),
            (
                "ImportError: x.so: undefined symbol: some_function",
                "A library that the process loads lacks some_function",
            ),
            (
                "libmpi.so.40: cannot open shared object file",
                "The dynamic loader does not find libmpi.so.40. It usually",
            ),
            ("libnew.so.1: cannot open shared object file", "The dynamic loader does not find libnew.so.1. It usually"),
            ("version `GLIBCXX_3.4.32' not found (required by x.so)", "A file was built with a newer GCC"),
            ("NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.", "runtime/gpu-unreachable"),
            ("Xid 137", "A program accessed memory of another GPU"),
            ("Xid 13", "A kernel of a program"),
        ] {
            let (first, count) = answer(text);
            assert!(first.starts_with(expected) && count == 1, "{text}: {first}, {count} rows");
        }
    }

    #[test]
    fn every_message_finds_itself() {
        let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rules");
        assert!(KNOWN.len() > 250, "{} rows", KNOWN.len());
        for known in KNOWN.iter() {
            let symptom = known.example();
            let is_found = |found: &Symptom| (&found.meaning, found.rules) == (&symptom.meaning, symptom.rules);
            let found = find_symptoms(&symptom.message);
            assert!(known.row.text.is_none() || found.iter().any(is_found), "{}: {found:?}", symptom.message);
            let is_helpful = !symptom.rules.is_empty() || symptom.fix.is_some() || known.fit == SymptomFit::Ordinary;
            assert!(is_helpful, "{}", symptom.message);
            for rule in symptom.rules {
                assert!(rules.join(format!("{rule}.yaml")).is_file(), "{}: there is no rule {rule}", symptom.message);
            }
            let texts = [symptom.meaning.unwrap_or_default(), symptom.fix.unwrap_or_default()];
            for name in ["{library}", "{symbol}", "{version}", "{file}", "{resource}", "{from}"] {
                assert!(texts.iter().all(|text| !text.contains(name)), "{texts:?}");
            }
        }
    }
}
