//! Options whose value is one of some words.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// The value of an option of which one word, such as `auto`, leaves the choice to the program.
pub(in crate::cli) type Automatic<T> = Option<T>;

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
