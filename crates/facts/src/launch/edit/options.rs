//! Options that a run line gets, and numbers in what a container is given.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::super::given::Starter;
use super::super::{LaunchContainer, LaunchFile};
use super::Source;

/// Options of which the last one counts. Others add up.
const SINGLE: &[&[&str]] = &[&["--ipc"], &["--network", "--net"], &["--shm-size"]];

/// Returns the text of a script in which the command that starts a container has these options; `None` where it does not show
/// the command.
pub fn with_options(file: &LaunchFile, container: &LaunchContainer, options: &[String]) -> Option<String> {
    #[expect(clippy::expect_used, reason = "a constant pattern, compiled by every test")]
    static RUN: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?:\b(?:docker|podman|nerdctl)|\$\{?\w+\}?)\s+(?:container\s+)?run\b").expect("a valid pattern")
    });
    #[expect(clippy::expect_used, reason = "a constant pattern, compiled by every test")]
    static STEP: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\bsrun\b").expect("a valid pattern"));
    let source = Source::new(&file.text);
    let is_step = container.given.starter == Starter::Scheduler;
    let place = place(&source, container);
    let begin = place.start;
    let command = file.text.get(place)?;
    let program = if is_step { &STEP } else { &RUN };
    let mut edits = Vec::new();
    for option in options {
        let (name, value) = option.split_once(['=', ' ']).unwrap_or((option, ""));
        let names = SINGLE.iter().find(|names| names.contains(&name)).copied();
        let (range, new) = match (names, given(command, names.unwrap_or(&["--container-mounts"]))) {
            (Some(_), Some(old)) => (old, value.to_owned()),
            (None, Some(old)) if name == "--container-mounts" => (old.end..old.end, format!(",{value}")),
            _ => {
                let end = program.find(command)?.end();
                (end..end, format!(" {option}"))
            }
        };
        edits.push((begin + range.start..begin + range.end, new));
    }
    Some(source.replaced(edits))
}

/// Returns the text of a launch file in which what the first group of a pattern matches in a container's part is replaced;
/// `None` where nothing matches.
pub fn with_replaced(file: &LaunchFile, container: &LaunchContainer, pattern: &str, new: &str) -> Option<String> {
    let source = Source::new(&file.text);
    let place = place(&source, container);
    let begin = place.start;
    let pattern = Regex::new(pattern).ok()?;
    let found = pattern.captures_iter(file.text.get(place)?).filter_map(|captures| captures.get(1));
    let edits: Vec<_> = found.map(|found| (begin + found.start()..begin + found.end(), new.to_owned())).collect();
    (!edits.is_empty()).then(|| source.replaced(edits))
}

/// The place of a container in its file: its command with continued lines, a batch script from its options on, or a map with
/// all that is indented as its keys are.
fn place(source: &Source<'_>, container: &LaunchContainer) -> Range<usize> {
    let first = source.line(container.line);
    let indent = first.len() - first.trim_start_matches([' ', '-']).len();
    let goes_on = |line: usize| match container.given.starter {
        Starter::Scheduler if container.name == "sbatch" => true,
        Starter::Docker | Starter::Scheduler => source.line(line).trim_end().ends_with('\\'),
        Starter::Compose | Starter::Kubernetes | Starter::Service => {
            let next = source.line(line + 1);
            next.trim().is_empty() || next.len() - next.trim_start().len() >= indent
        }
    };
    let last = (container.line..source.lines()).find(|line| !goes_on(*line)).unwrap_or(source.lines());
    source.start(container.line)..source.start(last + 1)
}

/// The place of the value that the first of these options has in a command.
fn given(command: &str, names: &[&str]) -> Option<Range<usize>> {
    let pattern = Regex::new(&format!(r#"(?:{})(?:=|\s+)["']?([^\s"']+)"#, names.join("|"))).ok()?;
    Some(pattern.captures(command)?.get(1)?.range())
}
