//! Options whose value is one of some words, or a number.

use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// The value of an option of which one word, such as `auto`, leaves the choice to the program.
pub(in crate::cli) type Automatic<T> = Option<T>;

/// A parser of whole numbers up to 2³² - 1, in place of clap's, whose messages are those of Rust's types.
pub(super) fn number<T: FromStr>(least: u32) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.parse::<u32>().ok().filter(|number| *number >= least).and_then(|_| text.parse().ok());
        number.ok_or_else(|| format!("expected a whole number from {least} to {}", u32::MAX))
    }
}

/// A parser of these words, which stand for these values.
pub(super) fn choice<T: Clone + Send + Sync + 'static, const N: usize>(
    choices: [(&'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let words = PossibleValuesParser::new(choices.iter().map(|(word, _)| *word).collect::<Vec<_>>());
    words.try_map(move |word| {
        let found = choices.iter().find(|(other, _)| *other == word);
        found.map(|(_, value)| value.clone()).ok_or("an unknown word")
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::Arguments;

    /// Words of Rust's parsers of numbers, and of clap's ranges.
    const RUST: [&str; 4] = ["target type", "non-zero type", "in string", "is not in"];

    /// All commands below a command, each with the words that lead to it.
    fn commands(of: &clap::Command, words: &[String], found: &mut Vec<(Vec<String>, clap::Command)>) {
        found.push((words.to_vec(), of.clone()));
        for command in of.get_subcommands() {
            commands(command, &[words, &[command.get_name().to_owned()]].concat(), found);
        }
    }

    #[test]
    fn refused_values_are_explained_without_types_of_rust() {
        let mut all = Vec::new();
        commands(&<Arguments as clap::CommandFactory>::command(), &["ncclcheck".to_owned()], &mut all);
        let mut refused = 0;
        for (words, command) in all {
            for option in command.get_arguments().filter_map(clap::Arg::get_long) {
                for value in ["0", "-1", "x", "", "1.5", "99999999999999999999999"] {
                    let line = words.iter().cloned().chain([format!("--{option}={value}")]);
                    let Err(error) = Arguments::try_parse_from(line) else { continue };
                    refused += usize::from(error.kind() == clap::error::ErrorKind::ValueValidation);
                    let text = error.to_string();
                    assert!(!RUST.iter().any(|word| text.contains(word)), "{text}");
                }
            }
        }
        assert!(refused > 50, "{refused}");
    }
}
