//! `env`: variables, the working directory, and a command in one string (GNU coreutils, `env`).

use shell::{Field, ShellKind, ShellState};

use super::super::arguments::{assignment, known};
use super::super::wrapper::Wrapper;
use super::{Outcome, Runner, Start};

/// Follows `env`.
pub(super) fn env(
    runner: &mut Runner<'_>,
    table: &Wrapper,
    start: &Start<'_>,
    state: &ShellState,
    rest: &[Field],
) -> Outcome {
    let mut child = state.child(ShellKind::Posix, "");
    let mut words = start.options(rest);
    let mut name = None;
    loop {
        if words.peek() == Some("-") {
            words.next();
            child.variables.clear();
            child.gap = None;
            continue;
        }
        // `-vS` and `-iS` end in the letter of the option with a value.
        if let Some(text) = words.peek()
            && let Some((before, after)) = text.split_once('S')
            && before.starts_with('-')
            && !before.starts_with("--")
            && before.chars().skip(1).all(|c| matches!(c, 'v' | 'i' | '0'))
        {
            words.next();
            if before.contains('i') {
                child.variables.clear();
                child.gap = None;
            }
            let text = if after.is_empty() { words.next().transpose()?.unwrap_or_default() } else { after };
            return env_string(runner, table, start, &child, text, words.rest());
        }
        let Some(option) = words.option(table)? else { break };
        let value = known(option.value)?.unwrap_or_default();
        match &*option.name {
            "-i" | "--ignore-environment" => {
                child.variables.clear();
                child.gap = None;
            }
            "-u" | "--unset" => child.unset(&value),
            "-C" | "--chdir" => child.enter(&value),
            "--split-string" => return env_string(runner, table, start, &child, &value, words.rest()),
            "-a" | "--argv0" => name = Some(Ok(value)),
            _ => {}
        }
    }
    let mut rest = words.rest();
    while let Some((first, after)) = rest.split_first()
        && let Some((name, value)) = assignment(first)
    {
        child.export(name, value);
        rest = after;
    }
    runner.rest_named(start, &child, rest, name)
}

/// `env -S STRING`: quotes and blanks as in a shell.
fn env_string(
    runner: &mut Runner<'_>,
    table: &Wrapper,
    start: &Start<'_>,
    child: &ShellState,
    text: &str,
    rest: &[Field],
) -> Outcome {
    let words = shell::commands(text, 1).flat_map(|command| command.words);
    let words: Option<Vec<Field>> = words.map(|word| word.plain().map(Ok)).collect();
    let Some(words) = words else { return Err(Runner::gap(start, "env -S expands a variable")) };
    let words: Vec<Field> = words.into_iter().chain(rest.iter().cloned()).collect();
    env(runner, table, start, child, &words)
}
