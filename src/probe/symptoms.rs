//! Finds the rules for a message of a failing job: the table `symptoms.yaml`, and the lines of NCCL's log.

use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

use crate::document::shipped;

use super::nccl_log::{LineForm, line_form};

/// A message of a failing job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Symptom {
    /// The message, or an example of it.
    pub message: &'static str,
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
    /// A line of NCCL's log.
    log: Option<String>,
    means: Option<String>,
    #[serde(default)]
    rules: Vec<String>,
    fix: Option<String>,
    #[serde(default)]
    #[expect(dead_code, reason = "for readers of the table")]
    source: Option<String>,
}

static TABLE: LazyLock<Vec<SymptomGroup>> = LazyLock::new(|| shipped::table("symptoms"));

/// Numbers, which differ from one message to the next.
#[expect(clippy::expect_used, reason = "a constant pattern, which the tests use")]
static NUMBERS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\d[\d.]*").expect("a pattern that parses"));

/// The known messages that occur in `text`, or that contain it: `text` may be a line of a log or a part of a message.
pub fn find_symptoms(text: &str) -> Vec<Symptom> {
    let text = text.trim();
    rows().filter(|row| !text.is_empty() && row.matches(text)).map(SymptomRow::symptom).collect()
}

fn rows() -> impl Iterator<Item = &'static SymptomRow> {
    TABLE.iter().flat_map(|group| &group.rows)
}

impl SymptomRow {
    fn form(&self) -> Option<LineForm> {
        line_form(self.log.as_deref()?)
    }

    fn matches(&self, text: &str) -> bool {
        let folded = folded(text);
        self.text.as_deref().is_some_and(|own| contains(&folded, own) || self::folded(own).contains(&folded))
            || self.form().is_some_and(|form| form.matches(text) || self::folded(form.message()).contains(&folded))
    }

    fn symptom(&'static self) -> Symptom {
        let form = self.form();
        Symptom {
            message: self.text.as_deref().or(form.as_ref().map(LineForm::message)).unwrap_or_default(),
            meaning: self.means.as_deref().or(form.map(|form| form.meaning)),
            rules: &self.rules,
            fix: self.fix.as_deref(),
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

/// The text without differences of case, space and numbers.
fn folded(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    NUMBERS.replace_all(&words, "0").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::rules::RuleSet;

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
            ("GID table changed", "rdma/gid-index-baked"),
        ] {
            assert_eq!(first_rule(text), Some(rule), "{text}");
        }
        for text in ["", "  ", "the job was cancelled by its owner"] {
            assert_eq!(find_symptoms(text), [], "{text}");
        }
    }

    #[test]
    fn every_message_finds_itself() {
        let rules = RuleSet::builtin().unwrap();
        assert!(rows().count() > 50, "{} rows", rows().count());
        for row in rows() {
            let symptom = row.symptom();
            assert!(find_symptoms(symptom.message).contains(&symptom), "{}", symptom.message);
            assert!(!symptom.rules.is_empty() || symptom.fix.is_some(), "{}", symptom.message);
            for rule in symptom.rules {
                assert!(rules.get(rule).is_some(), "{}: there is no rule {rule}", symptom.message);
            }
        }
    }
}
