//! The table of programs that start another one, `rules/tables/wrappers.yaml`.

use model::{Table, is_among};
use serde::Deserialize;
use shell::Field;

use crate::table;

/// What the words behind a wrapper's options name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Starts {
    /// A command.
    #[default]
    Program,
    /// A script or a module of Python.
    Python,
    /// A command on another machine, or in a service.
    Elsewhere,
    /// What files of the program's own name.
    Files,
    /// What code for this program reads.
    Own,
}

/// A program that starts another one: a row of the table.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Wrapper {
    names: String,
    modules: String,
    commands: Vec<String>,
    pub(super) starts: Starts,
    /// What the text of a script of this name contains.
    pub(super) package: String,
    valued: String,
    flags: String,
    /// Options with two values.
    pub(super) pairs: String,
    dashes: String,
    /// Words between the options and the command.
    pub(super) operands: usize,
    /// Options that name the working directory.
    pub(super) directory: String,
    /// Options that set a variable.
    pub(super) sets: String,
    /// Options with which the script is a module.
    pub(super) module: String,
    /// Options with which the script is a program.
    pub(super) program: String,
    /// True if the script runs in the interpreter of the launcher.
    pub(super) in_process: bool,
    source: String,
}

pub(crate) static TABLE: Table<Vec<Wrapper>> = table!("wrappers");

/// The wrapper of this name with these words behind it, and the words behind its command.
pub(super) fn of_program<'w>(name: &str, words: &'w [Field]) -> Option<(&'static Wrapper, &'w [Field])> {
    find(words, |row| is_among(name, &row.names))
}

/// The wrapper that `python -m MODULE` runs.
pub(super) fn of_module<'w>(name: &str, words: &'w [Field]) -> Option<(&'static Wrapper, &'w [Field])> {
    find(words, |row| is_among(name, &row.modules))
}

fn find(words: &[Field], is_meant: impl Fn(&Wrapper) -> bool) -> Option<(&'static Wrapper, &[Field])> {
    TABLE.iter().filter(|row| is_meant(row)).find_map(|row| {
        let behind = |command: &str| {
            let mut words = words;
            for part in command.split(' ') {
                words = words.split_first().filter(|(word, _)| word.as_deref() == Ok(part))?.1;
            }
            Some(words)
        };
        let words = if row.commands.is_empty() { Some(words) } else { row.commands.iter().find_map(|one| behind(one)) };
        Some((row, words?))
    })
}

impl Wrapper {
    /// An option as the table has it, and whether it has a value; `None` for one that the table lacks.
    pub(super) fn option(&self, written: &str) -> Option<(String, bool)> {
        let is_long = written.starts_with("--") || (!self.reads_letters() && written.len() > 2);
        let name = match written.trim_start_matches('-') {
            long if is_long => format!("--{}", long.replace('_', "-")),
            _ => written.to_owned(),
        };
        let has_value = is_among(&name, &self.valued) || is_among(&name, &self.pairs);
        (has_value || is_among(&name, &self.flags)).then_some((name, has_value))
    }

    /// True if letters of options may be written together.
    pub(super) fn reads_letters(&self) -> bool {
        self.dashes != "either"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        for row in &*TABLE {
            let names = &row.names;
            assert!(!names.is_empty() && !row.source.is_empty(), "{names}");
            assert!(matches!(&*row.dashes, "" | "either"), "{names}");
            for list in [&row.valued, &row.flags, &row.pairs, &row.module, &row.program, &row.directory, &row.sets] {
                for option in list.split_whitespace() {
                    assert!(option.starts_with('-') && !option.contains('_'), "{names}: {option}");
                    assert!(row.option(option).is_some(), "{names}: {option}");
                }
            }
            let both = row.valued.split_whitespace().find(|option| is_among(option, &row.flags));
            assert_eq!(both, None, "{names}");
        }
    }

    #[test]
    fn the_words_of_a_command_choose_the_row() {
        let words: Vec<Field> = ["job", "submit", "--", "python"].map(|word| Ok(word.to_owned())).to_vec();
        let (row, rest) = of_program("ray", &words).unwrap();
        assert_eq!((row.starts, rest.len()), (Starts::Elsewhere, 2));
        assert!(of_program("ray", &words[1..]).is_none_or(|(_, rest)| rest.len() == 2));
        assert!(
            of_program("accelerate", &words).is_none() && of_module("accelerate.commands.launch", &words).is_some()
        );
    }
}
