//! `env`: variables, the working directory, and a command in one string (GNU coreutils, `env`).

use shell::{Field, ShellKind, ShellState};

use super::super::arguments::{OptionTable, Words, known};
use super::{Outcome, Runner, Start};

/// Follows `env`.
pub(super) fn env(runner: &mut Runner<'_>, start: &Start<'_>, state: &ShellState, rest: &[Field]) -> Outcome {
    const OPTIONS: OptionTable = OptionTable::Valued("-u --unset -C --chdir -S --split-string");
    let mut child = state.child(ShellKind::Posix, "");
    let mut words = Words::new(rest);
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
            return env_string(runner, start, &child, text, words.rest());
        }
        let Some(option) = words.option(&OPTIONS)? else { break };
        let value = known(option.value)?.unwrap_or_default();
        match option.name {
            "-i" | "--ignore-environment" => {
                child.variables.clear();
                child.gap = None;
            }
            "-u" | "--unset" => child.unset(&value),
            "-C" | "--chdir" => child.enter(&value),
            "--split-string" => return env_string(runner, start, &child, &value, words.rest()),
            _ => {}
        }
    }
    env_assignments(runner, start, &mut child, words.rest())
}

fn env_assignments(runner: &mut Runner<'_>, start: &Start<'_>, child: &mut ShellState, mut rest: &[Field]) -> Outcome {
    while let Some((first, after)) = rest.split_first() {
        match first {
            Ok(text) => match text.split_once('=') {
                Some((name, value)) => child.export(name, Ok(value.to_owned())),
                None => break,
            },
            Err(unknown) => match unknown.prefix.split_once('=') {
                Some((name, _)) => child.export(name, Err(unknown.gap.clone())),
                None => return Err(unknown.gap.clone()),
            },
        }
        rest = after;
    }
    runner.rest(start, child, rest)
}

/// `env -S STRING`: quotes and blanks as in a shell.
fn env_string(runner: &mut Runner<'_>, start: &Start<'_>, child: &ShellState, text: &str, rest: &[Field]) -> Outcome {
    let words = shell::commands(text, 1).flat_map(|command| command.words);
    let words: Option<Vec<Field>> = words.map(|word| word.plain().map(Ok)).collect();
    let Some(words) = words else { return Err(Runner::gap(start, "env -S expands a variable")) };
    let words: Vec<Field> = words.into_iter().chain(rest.iter().cloned()).collect();
    env(runner, start, child, &words)
}
