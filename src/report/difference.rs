//! What tells two images apart: facts, and rules that come out otherwise.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anstyle::AnsiColor;
use serde_json::{Value as Json, json};

use super::human::{
    self,
    page::{self, Page},
};
use super::{Format, Style, Verdict, json as form};
use crate::facts::Facts;
use crate::facts::key::KEYS;
use crate::model::{Fact, Severity, Value};
use crate::rules::{Judgement, Outcome};

/// Lines of one fact that are shown unless all are wanted.
const LINES: usize = 12;

/// One of two images.
#[derive(Debug)]
pub struct Side<'a> {
    /// As the user wrote it.
    pub reference: &'a str,
    /// What was read.
    pub facts: &'a Facts,
    /// What the rules say of it.
    pub judgements: &'a [Judgement<'a>],
}

/// Two images, the second compared with the first.
#[derive(Debug)]
pub struct Difference<'a> {
    /// The one before.
    pub before: Side<'a>,
    /// The one after.
    pub after: Side<'a>,
    /// Findings from this severity on make it worse.
    pub fail_on: Severity,
}

/// A rule that comes out otherwise.
struct Turn<'a> {
    before: &'a Judgement<'a>,
    after: &'a Judgement<'a>,
}

impl Turn<'_> {
    /// A rule fails that did not, or at places where it did not.
    fn is_new(&self) -> bool {
        let Outcome::Fail(finding) = &self.after.outcome else { return false };
        match &self.before.outcome {
            Outcome::Fail(before) => !finding.places().is_subset(&before.places()),
            _ => true,
        }
    }

    fn is_fixed(&self) -> bool {
        let fails = |judgement: &Judgement<'_>| matches!(judgement.outcome, Outcome::Fail(_));
        fails(self.before) && !fails(self.after)
    }

    /// It cannot be answered any more, whether it is better or worse.
    fn is_lost(&self) -> bool {
        matches!(self.after.outcome, Outcome::Unknown(_)) && !matches!(self.before.outcome, Outcome::Unknown(_))
    }
}

impl Difference<'_> {
    /// Whether the second image is worse: a rule fails that did not, or elsewhere, or cannot be answered any more.
    pub fn verdict(&self) -> Verdict {
        let turns = self.turns();
        let counts = |wanted: &dyn Fn(&Turn<'_>) -> bool| {
            turns.iter().any(|turn| turn.after.rule.severity >= self.fail_on && wanted(turn))
        };
        if counts(&|turn| turn.is_new()) {
            Verdict::Fail
        } else if counts(&|turn| turn.is_lost()) {
            Verdict::Incomplete
        } else {
            Verdict::Pass
        }
    }

    /// Writes it: as one JSON object, else for people.
    pub fn write(&self, format: Format, style: &Style, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::Json => form::write_value(&self.json(), out),
            _ => self.human(style, out),
        }
    }

    fn turns(&self) -> Vec<Turn<'_>> {
        let after: BTreeMap<&str, &Judgement<'_>> =
            self.after.judgements.iter().map(|judgement| (&*judgement.rule.id, judgement)).collect();
        let pair = |before| Some(Turn { before, after: after.get(&*before.rule.id).copied()? });
        let is_turned = |turn: &Turn<'_>| {
            turn.before.outcome.name() != turn.after.outcome.name()
                || turn.before.fingerprint() != turn.after.fingerprint()
        };
        self.before.judgements.iter().filter_map(pair).filter(is_turned).collect()
    }

    fn human(&self, style: &Style, out: &mut dyn Write) -> io::Result<()> {
        let mut page = Page::new(out, style);
        page.verbatim(0, ("-", AnsiColor::Red.on_default()), 2, self.before.reference)?;
        page.verbatim(0, ("+", AnsiColor::Green.on_default()), 2, self.after.reference)?;
        let mut area = "";
        for key in KEYS {
            let lines = changes(self.before.facts.get(key.name), self.after.facts.get(key.name));
            if lines.is_empty() {
                continue;
            }
            let own = key.name.split('.').next().unwrap_or_default();
            if own != area {
                area = own;
                page.blank()?;
            }
            page.text(0, key.name)?;
            let shown = if style.verbose { lines.len() } else { lines.len().min(LINES) };
            for line in lines.iter().take(shown) {
                let (sign, color, text) = match line {
                    Line::Gone(text) => ("-", AnsiColor::Red, text),
                    Line::Come(text) => ("+", AnsiColor::Green, text),
                };
                page.row(2, (sign, color.on_default()), 4, text)?;
            }
            if shown < lines.len() {
                page.text(4, &format!("… and {} more, with --verbose", lines.len() - shown))?;
            }
        }
        let turns = self.turns();
        if !turns.is_empty() {
            page.blank()?;
        }
        for turn in &turns {
            let (before, after) = (turn.before.outcome.name(), turn.after.outcome.name());
            let text = turn.after.outcome.finding().or_else(|| turn.before.outcome.finding());
            let text = text.map_or(&turn.after.rule.title, |finding| &finding.message);
            let word = if before == after { format!("{after}, otherwise") } else { format!("{before} → {after}") };
            let rule = turn.after.rule;
            let heading = format!("{}[{}]:", rule.severity.name(), rule.id);
            page.heading(&heading, page::severity(rule.severity), &format!("{word}: {text}"))?;
        }
        page.blank()?;
        let count = |wanted: &dyn Fn(&Turn<'_>) -> bool| turns.iter().filter(|turn| wanted(turn)).count();
        let (new, fixed) = (count(&|turn| turn.is_new()), count(&|turn| turn.is_fixed()));
        let (word, color) = match self.verdict() {
            Verdict::Pass => ("NOT WORSE:", AnsiColor::Green),
            Verdict::Fail => ("WORSE:", AnsiColor::Red),
            Verdict::Incomplete => ("INCOMPLETE:", AnsiColor::Magenta),
        };
        let text = format!("{}, {fixed} fixed", human::counted(new, "new finding", "new findings"));
        page.verbatim(0, (word, page::bold(color)), word.len() + 1, &text)
    }

    fn json(&self) -> Json {
        let facts = KEYS.iter().filter_map(|key| {
            let (before, after) = (self.before.facts.get(key.name), self.after.facts.get(key.name));
            (!changes(before, after).is_empty())
                .then(|| json!({"fact": key.name, "before": plain(before), "after": plain(after)}))
        });
        let turns = self.turns();
        let rules = turns.iter().map(|turn| {
            let message =
                |judgement: &Judgement<'_>| judgement.outcome.finding().map(|finding| finding.message.clone());
            json!({
                "rule": turn.after.rule.id, "severity": turn.after.rule.severity,
                "before": turn.before.outcome.name(), "after": turn.after.outcome.name(),
                "message_before": message(turn.before), "message_after": message(turn.after),
            })
        });
        json!({
            "schema": "ncclcheck-diff/1", "before": self.before.reference, "after": self.after.reference,
            "verdict": match self.verdict() { Verdict::Pass => "not-worse", Verdict::Fail => "worse", Verdict::Incomplete => "incomplete" },
            "facts": facts.collect::<Vec<_>>(), "rules": rules.collect::<Vec<_>>(),
        })
    }
}

enum Line {
    Gone(String),
    Come(String),
}

/// What of a fact is gone, and what has come: elements of lists, entries of maps, or the whole.
fn changes(before: &Fact, after: &Fact) -> Vec<Line> {
    let (before, after) = (parts(before), parts(after));
    let gone = before.iter().filter(|part| !after.contains(part)).cloned().map(Line::Gone);
    let come = after.iter().filter(|part| !before.contains(part)).cloned().map(Line::Come);
    gone.chain(come).collect()
}

fn parts(fact: &Fact) -> Vec<String> {
    match fact {
        Fact::Absent => Vec::new(),
        Fact::Unknown(gap) => vec![format!("unknown: {gap}")],
        Fact::Seen { value: Value::List(values), .. } => values.iter().map(ToString::to_string).collect(),
        Fact::Seen { value: Value::Map(entries), .. } => {
            entries.iter().map(|(name, value)| format!("{name}={value}")).collect()
        }
        Fact::Seen { value, .. } => vec![value.to_string()],
    }
}

fn plain(fact: &Fact) -> Json {
    match fact {
        Fact::Absent => Json::Null,
        Fact::Unknown(gap) => json!({"unknown": gap.to_string()}),
        Fact::Seen { value, .. } => json!(form::Value::from(value)),
    }
}
