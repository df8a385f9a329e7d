//! The command that a launch file names, of which only the job knows some words and variables.

use model::StartCommand;
use shell::{Field, ShellGap, ShellState, UnknownField, name_length};

use super::runner::SETTLE;

/// Variables that a job gets from nowhere but what is judged anyway, so that one without a value is unset.
const JUDGED: &[&str] = &["PATH", "HOME", "LD_", "PYTHON", "NCCL_", "TORCH_", "CUDA_", "CONDA", "VIRTUAL_ENV"];

/// The words of a job's command. `${NAME}` stands for what only the job knows, and so does a variable that the image and the
/// launch file do not set where a shell of the container expands it.
pub(super) fn fields(command: &StartCommand, words: &[String], shell: &mut ShellState) -> Vec<Field> {
    let gap = |name: &str| ShellGap::new(format!("{} does not set {name}", command.from)).settled_by(SETTLE);
    words
        .iter()
        .enumerate()
        .map(|(index, word)| {
            if index.checked_sub(1).and_then(|before| words.get(before)).is_some_and(|before| takes_script(before)) {
                for name in names(word).filter(|name| shell.variable(name) == Ok(None)).collect::<Vec<_>>() {
                    if !JUDGED.iter().any(|judged| name.starts_with(judged)) {
                        shell.export(name, Err(gap(name)));
                    }
                }
                return Ok(word.clone());
            }
            match word.split_once("${") {
                Some((prefix, rest)) => {
                    let name = rest.get(..name_length(rest)).unwrap_or_default();
                    Err(UnknownField { prefix: prefix.to_owned(), gap: gap(name) })
                }
                None => Ok(word.clone()),
            }
        })
        .collect()
}

/// True for `-c`, alone or behind other flags of a shell, as in `-lc`.
fn takes_script(word: &str) -> bool {
    let letters = word.strip_prefix('-').and_then(|flags| flags.strip_suffix('c'));
    letters.is_some_and(|letters| letters.bytes().all(|letter| letter.is_ascii_alphabetic()))
}

/// The names of the variables that a text expands.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('$').skip(1).filter_map(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        rest.get(..name_length(rest)).filter(|name| !name.is_empty())
    })
}
