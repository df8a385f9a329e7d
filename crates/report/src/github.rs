//! GitHub's workflow commands: annotations on the lines of a pull request and in the summary of a run.

use std::io::{self, Write};

use super::collected::{Collected, Collection};
use super::entry::{EntryState, RuleEntry};
use model::Severity;

/// Maximum annotations of one kind per step. GitHub silently drops the ones printed after that.
const SHOWN: usize = 10;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandKind {
    Error,
    Warning,
    Notice,
}

impl CommandKind {
    const fn command(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Notice => "notice",
        }
    }
}

impl From<Severity> for CommandKind {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Error => Self::Error,
            Severity::Warning => Self::Warning,
            Severity::Info => Self::Notice,
        }
    }
}

pub(super) struct Annotation {
    pub(super) kind: CommandKind,
    pub(super) title: String,
    /// Path in the repository, and line.
    pub(super) place: Option<(String, usize)>,
    pub(super) message: String,
}

pub(super) fn write(collection: &Collection, out: &mut dyn Write) -> io::Result<()> {
    let missing = collection.missing.iter().map(|(reference, why)| Annotation {
        kind: CommandKind::Error,
        title: "ncclcheck".to_owned(),
        place: None,
        message: format!("{reference} could not be checked: {why}"),
    });
    let told = [failed, open, notices].into_iter().flat_map(|of| collection.images.iter().flat_map(of));
    write_all(&missing.chain(told).collect::<Vec<_>>(), out)
}

/// Writes annotations, the worst first: errors, warnings, notices.
pub(super) fn write_all(annotations: &[Annotation], out: &mut dyn Write) -> io::Result<()> {
    for kind in [CommandKind::Error, CommandKind::Warning, CommandKind::Notice] {
        let of_kind: Vec<_> = annotations.iter().filter(|annotation| annotation.kind == kind).collect();
        let shown = if of_kind.len() > SHOWN { SHOWN - 1 } else { of_kind.len() };
        of_kind.iter().take(shown).try_for_each(|annotation| annotation.write(out))?;
        let more = of_kind.len() - shown;
        if more > 0 {
            let message = format!("{more} more left out: GitHub shows {SHOWN} of a kind per step; see the full report");
            Annotation { kind, title: "ncclcheck".to_owned(), place: None, message }.write(out)?;
        }
    }
    Ok(())
}

fn failed(image: &Collected) -> Vec<Annotation> {
    let annotation = |entry: &RuleEntry| annotation(entry.rule.severity.into(), entry.rule.id.clone(), entry, image);
    image.of_state(|state| *state == EntryState::Failed).into_iter().map(annotation).collect()
}

fn open(image: &Collected) -> Vec<Annotation> {
    let annotation = |entry: &RuleEntry| {
        let kind = if entry.counts { CommandKind::Warning } else { CommandKind::Notice };
        annotation(kind, format!("unknown: {}", entry.rule.id), entry, image)
    };
    image.of_state(|state| *state == EntryState::Unknown).into_iter().map(annotation).collect()
}

/// Notices about the policy.
fn notices(image: &Collected) -> Vec<Annotation> {
    let annotation = |notice: &String| Annotation {
        kind: CommandKind::Notice,
        title: "ncclcheck".to_owned(),
        place: None,
        message: notice.clone(),
    };
    image.notices.iter().map(annotation).collect()
}

fn annotation(kind: CommandKind, title: String, entry: &RuleEntry, image: &Collected) -> Annotation {
    let place = entry.place.in_repository.then(|| (entry.place.path.clone(), entry.place.line));
    let fix = Some(entry.fix.trim()).filter(|fix| !fix.is_empty()).map(|fix| format!("\nfix: {fix}"));
    Annotation { kind, title, place, message: entry.text(image) + &fix.unwrap_or_default() }
}

impl Annotation {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let place = self.place.as_ref().map(|(path, line)| format!("file={},line={line},", property(path)));
        let command = self.kind.command();
        let title = property(&self.title);
        writeln!(out, "::{command} {}title={title}::{}", place.unwrap_or_default(), data(&self.message))
    }
}

/// Escapes the message of a command, which is one line (actions/toolkit, `command.ts`).
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
