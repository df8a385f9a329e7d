//! Fixes of rules: steps of prose and of lines to copy, filled with the facts of an image.
//!
//! A step begins with a line that is not indented and ends with its indented lines. A step that names a fact without a
//! value is left out, so no fix shows a placeholder:
//!
//! - `{torch.nccl_pin}` is a fact, and `{torch.cuda.version|major}` a part of one ([`FixFilter`]);
//! - `{install}`, `{remove}` and the other names of [`FixWord`] depend on how the image was made;
//! - `IMAGE` in a line to copy is the image's name;
//! - a line with `{baked}` begins a step, which is shown where the image's ENV has the setting;
//! - `[torch.installer == 'conda']` at the beginning shows a step only where the condition is true;
//! - `Otherwise: ` at the beginning shows a step only where the one before it is left out.

mod filter;
mod words;

use std::sync::{LazyLock, OnceLock};

use regex::{Captures, Regex};

use facts::key::{Definition, KEYS};
use model::{Fact, Site, Value, suggestion};

use super::condition::{Condition, ConditionError};
use super::eval::{ConditionTruth, Scope};
use super::message::named;

use filter::FixFilter;
use words::FixWord;

/// What begins a step that replaces the one before it.
const OTHERWISE: &str = "Otherwise: ";

/// The text of a fix.
#[derive(Debug)]
pub(super) struct FixTemplate {
    text: String,
    /// Made when it is first needed: most rules find nothing to fix.
    steps: OnceLock<Vec<FixStep>>,
}

#[derive(Debug)]
struct FixStep {
    condition: Option<Condition>,
    is_alternative: bool,
    parts: Vec<FixPart>,
}

#[derive(Debug)]
enum FixPart {
    Text(String),
    Fact {
        key: &'static Definition,
        entry: Option<String>,
        filter: Option<FixFilter>,
        /// True in a line to copy.
        is_code: bool,
    },
    Word(FixWord),
}

/// Names of an image for the commands of a fix; `None` where no command accepts one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageNames {
    /// The name by which container engines run the image.
    pub engine: Option<String>,
    /// The reference by which ncclcheck opens the image.
    pub reference: Option<String>,
    /// The argument that selects the image for `ncclcheck probe` and `preflight`: its reference, or `--in-place`.
    pub run: Option<String>,
}

/// What a fix is filled with, besides facts.
pub(super) struct FixSubject<'a> {
    pub(super) names: &'a ImageNames,
    /// The sites of the finding.
    pub(super) at: &'a [Site],
}

impl FixTemplate {
    /// Parses a fix and checks that its facts, words and conditions exist.
    pub(super) fn parse(
        text: &str,
        compile: &impl Fn(&str) -> Result<Condition, ConditionError>,
    ) -> Result<Self, ConditionError> {
        let parsed = FixStep::parse_all(text, compile)?;
        Ok(Self { text: text.to_owned(), steps: parsed.into() })
    }

    /// The fix of a built-in rule, which the tests parse.
    pub(super) const fn trusted(text: String) -> Self {
        Self { text, steps: OnceLock::new() }
    }

    #[expect(clippy::expect_used, reason = "only a built-in fix is not parsed yet, and every test parses those")]
    fn steps(&self) -> &[FixStep] {
        let trust = |text: &str| Ok(Condition::trusted(text.to_owned()));
        self.steps.get_or_init(|| FixStep::parse_all(&self.text, &trust).expect("a valid fix"))
    }

    /// The text for pages that are about no image: conditions as words, and facts by name.
    pub(super) fn page(text: &str) -> String {
        let lines = text.lines().map(|line| {
            let (before, rest) = line.strip_prefix(OTHERWISE).map_or(("", line), |rest| (OTHERWISE, rest));
            let guarded = rest.strip_prefix('[').and_then(|rest| rest.split_once("] "));
            let line =
                guarded.map_or_else(|| rest.to_owned(), |(condition, rest)| format!("Where `{condition}`: {rest}"));
            before.to_owned() + &line
        });
        FixWord::page(lines.collect::<Vec<_>>().join("\n"))
    }

    /// A fix without facts.
    pub(super) fn plain(text: String) -> Self {
        let step = FixStep { condition: None, is_alternative: false, parts: vec![FixPart::Text(text.clone())] };
        Self { text, steps: vec![step].into() }
    }

    /// The steps whose facts have values.
    pub(super) fn fill(&self, scope: &Scope<'_>, subject: &FixSubject<'_>) -> String {
        let mut filled = Vec::new();
        let mut is_shown = false;
        for step in self.steps() {
            if step.is_alternative && is_shown {
                continue;
            }
            let text = step.fill(scope, subject);
            is_shown = text.is_some();
            filled.extend(text);
        }
        filled.join("\n")
    }
}

impl FixStep {
    fn parse_all(
        text: &str,
        compile: &impl Fn(&str) -> Result<Condition, ConditionError>,
    ) -> Result<Vec<Self>, ConditionError> {
        steps(text).into_iter().map(|(start, step)| Self::parse(start, step, compile)).collect()
    }

    fn parse(
        start: usize,
        text: &str,
        compile: &impl Fn(&str) -> Result<Condition, ConditionError>,
    ) -> Result<Self, ConditionError> {
        let (is_alternative, text, start) = match text.strip_prefix(OTHERWISE) {
            Some(rest) => (true, rest, start + OTHERWISE.len()),
            None => (false, text, start),
        };
        let at = |error: ConditionError, offset: usize| ConditionError {
            part: error.part.start + offset..error.part.end + offset,
            ..error
        };
        let guard = text.strip_prefix('[').and_then(|rest| rest.split_once("] "));
        let condition = guard.map(|(condition, _)| compile(condition).map_err(|error| at(error, start + 1)));
        let body = guard.map_or(text, |(_, body)| body);
        let start = start + text.len() - body.len();
        let parts = FixPart::parse(body).map_err(|error| at(error, start))?;
        Ok(Self { condition: condition.transpose()?, is_alternative, parts })
    }

    fn fill(&self, scope: &Scope<'_>, subject: &FixSubject<'_>) -> Option<String> {
        let is_shown = |condition: &Condition| scope.eval(condition) == ConditionTruth::True;
        if !self.condition.as_ref().is_none_or(is_shown) {
            return None;
        }
        self.parts.iter().map(|part| part.fill(scope, subject)).collect()
    }
}

impl FixPart {
    fn parse(text: &str) -> Result<Vec<Self>, ConditionError> {
        /// A fact or a word in braces, or the image's name.
        #[expect(clippy::expect_used, reason = "a constant pattern, compiled by every test")]
        static PLACE: LazyLock<Regex> = LazyLock::new(|| {
            let place =
                r"\{(?<fact>[a-z_]+(?:\.\w+)+)(?:\|(?<filter>[a-z-]+))?\}|\{(?<word>[a-z]+)\}|\b(?<image>IMAGE)\b";
            Regex::new(place).expect("a valid pattern")
        });
        let mut parts = Vec::new();
        let mut end = 0;
        for captures in PLACE.captures_iter(text) {
            let Some(whole) = captures.get(0) else { continue };
            let line = line_of(text, whole.start());
            let Some(part) =
                Self::of(&captures, line).map_err(|(what, help)| ConditionError { part: whole.range(), what, help })?
            else {
                continue;
            };
            parts.push(Self::Text(text.get(end..whole.start()).unwrap_or_default().to_owned()));
            parts.push(part);
            end = whole.end();
        }
        parts.push(Self::Text(text.get(end..).unwrap_or_default().to_owned()));
        Ok(parts)
    }

    /// The part at a place of a line; `None` for what is plain text.
    fn of(captures: &Captures<'_>, line: &str) -> Result<Option<Self>, (String, Option<String>)> {
        let text = |name: &str| captures.name(name).map(|found| found.as_str());
        if let Some(name) = text("fact") {
            let Some((key, entry)) = named(name) else {
                let help = suggestion(name, KEYS.iter().map(|key| key.name));
                return Err((format!("there is no fact '{name}'"), help));
            };
            let filter = text("filter").map(|name| {
                FixFilter::find(name).ok_or_else(|| {
                    (
                        format!("there is no filter '{name}'"),
                        suggestion(name, FixFilter::ALL.iter().map(|filter| filter.name())),
                    )
                })
            });
            return Ok(Some(Self::Fact {
                key,
                entry,
                filter: filter.transpose()?,
                is_code: line.starts_with([' ', '\t']),
            }));
        }
        if let Some(name) = text("word") {
            // Other words in braces belong to commands: `awk '{print}'`.
            return Ok(FixWord::find(name).map(Self::Word));
        }
        let word = match line.trim_start().strip_prefix("ncclcheck ") {
            Some(own) if own.starts_with("probe ") || own.starts_with("preflight ") => FixWord::Run,
            Some(_) => FixWord::Reference,
            None => FixWord::Image,
        };
        Ok(line.starts_with([' ', '\t']).then_some(Self::Word(word)))
    }

    fn fill(&self, scope: &Scope<'_>, subject: &FixSubject<'_>) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Word(word) => word.fill(scope.facts(), subject),
            Self::Fact { key, entry, filter, is_code } => {
                let value = match (scope.facts().certain(key), entry) {
                    (Fact::Seen { value: Value::Map(map), .. }, Some(entry)) => map.get(entry)?,
                    (Fact::Seen { value, .. }, None) => value,
                    _ => return None,
                };
                let text = filter.map_or_else(|| Some(value.to_string()), |filter| filter.apply(value))?;
                let is_harmless = if *is_code { is_word(&text) } else { is_prose(&text) };
                is_harmless.then_some(text)
            }
        }
    }
}

/// Returns true for a value without a meaning to a shell. Values come from images, whose authors must not be able to add a
/// command to a line that users copy.
fn is_word(text: &str) -> bool {
    text.chars().all(|character| character.is_ascii_alphanumeric() || "._-+=:/@%,^".contains(character))
}

/// Returns true for a value without a meaning to Markdown, in which some reports show the prose of fixes: no link, no
/// mention of a user.
fn is_prose(text: &str) -> bool {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || " ._-+=:/%,;^()'?".contains(character);
    text.chars().all(is_plain) && !text.contains("//") && !text.contains("www.")
}

/// The line that contains an offset.
fn line_of(text: &str, offset: usize) -> &str {
    let start = text.get(..offset).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1);
    text.get(start..).and_then(|line| line.lines().next()).unwrap_or_default()
}

/// Splits a fix into steps, each with its offset.
fn steps(text: &str) -> Vec<(usize, &str)> {
    let mut starts = vec![0];
    let mut offset = 0;
    let mut was_code = false;
    for line in text.split_inclusive('\n') {
        let is_code = line.starts_with([' ', '\t']);
        // A sentence about the image's ENV is left out alone.
        let is_own = line.starts_with('[') || line.starts_with(OTHERWISE) || line.contains("{baked}");
        let begins = !is_code && (was_code || is_own);
        if begins && offset > 0 {
            starts.push(offset);
        }
        was_code = is_code;
        offset += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).filter_map(|(start, end)| Some((*start, text.get(*start..end)?.trim_end()))).collect()
}

#[cfg(test)]
mod tests;
