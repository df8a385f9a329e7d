//! Words of a list: one, several, or a boolean.

use model::Version;

use super::super::vocabulary::VariableUse;
use super::Misreading;

/// One of the words.
pub(super) fn word(about: &VariableUse, value: &str) -> Option<Misreading> {
    let found = not_one_of(value, about);
    (!is_known(about, value)).then_some(Misreading { stops: about.stops, ..found })
}

/// One of the words, with blanks around it (`src/include/param/parser_enum.h`).
pub(super) fn choice(about: &VariableUse, value: &str) -> Option<Misreading> {
    word(about, value.trim())
}

/// Text that begins with one of the words.
pub(super) fn prefix(about: &VariableUse, value: &str) -> Option<Misreading> {
    about.of.iter().all(|word| !value.starts_with(word.as_str())).then(|| not_one_of(value, about))
}

/// Several words after a `^` that excludes them (`src/debug.cc`). Since 2.30.3, NCCL skips blanks around a word, and one
/// unknown word voids the list (`src/include/param/parser_bitset.h`); before, it skipped the word.
pub(super) fn list(about: &VariableUse, value: &str, version: &Version) -> Option<Misreading> {
    let is_typed = Version::parse("2.30.3").is_some_and(|first| *version >= first);
    let list = value.strip_prefix('^').unwrap_or(value);
    let mut words = list.split(',').map(|word| if is_typed { word.trim() } else { word });
    let unknown = words.find(|word| !word.is_empty() && !is_known(about, word))?;
    let Misreading { what, .. } = not_one_of(unknown, about);
    let what = if is_typed { format!("{what}, so NCCL ignores the whole list") } else { what };
    Some(Misreading::ignored(what))
}

/// A boolean of NCCL 2.30.3 and later (`src/include/param/parser_default.h`).
pub(super) fn boolean(value: &str) -> Option<Misreading> {
    let is_read = ["1", "T", "TRUE", "0", "F", "FALSE"].iter().any(|word| word.eq_ignore_ascii_case(value));
    (!is_read).then(|| Misreading::ignored("NCCL ignores it: booleans are 1, T, TRUE, 0, F and FALSE"))
}

fn is_known(about: &VariableUse, value: &str) -> bool {
    about.of.iter().any(|word| if about.exact { word == value } else { word.eq_ignore_ascii_case(value) })
}

fn not_one_of(word: &str, about: &VariableUse) -> Misreading {
    Misreading::ignored(format!("{} is not one of {}", shown(word), about.of.join(", ")))
}

/// A word, in quotes where a blank at its end would not be seen.
fn shown(word: &str) -> String {
    if word.is_empty() || word.trim() != word { format!("'{word}'") } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_unknown_word_voids_a_list_since_2_30_3() {
        let about = VariableUse { of: vec!["INIT".to_owned(), "NET".to_owned()], ..VariableUse::default() };
        let void = |word: &str| Some(format!("{word} is not one of INIT, NET, so NCCL ignores the whole list"));
        let skipped = |word: &str| Some(format!("{word} is not one of INIT, NET"));
        for (value, before, since) in [
            ("INIT,net", None, None),
            ("^INIT", None, None),
            (",INIT,,", None, None),
            ("INIT, NET", skipped("' NET'"), None),
            ("INIT,RAS", skipped("RAS"), void("RAS")),
            ("INIT;NET", skipped("INIT;NET"), void("INIT;NET")),
            ("INIT^NET", skipped("INIT^NET"), void("INIT^NET")),
        ] {
            for (version, expected) in [("2.30.2", before), ("2.30.3", since)] {
                let found = list(&about, value, &Version::parse(version).unwrap());
                assert_eq!(found.map(|found| found.what), expected, "{value} for {version}");
            }
        }
    }

    #[test]
    fn blanks_around_a_choice_are_skipped() {
        let about = VariableUse { of: vec!["INFO".to_owned()], ..VariableUse::default() };
        for (value, is_word, is_choice) in [("info", true, true), (" INFO ", false, true), ("INFO,", false, false)] {
            assert_eq!(
                (word(&about, value).is_none(), choice(&about, value).is_none()),
                (is_word, is_choice),
                "{value}"
            );
        }
    }

    #[test]
    fn booleans_of_typed_parameters() {
        for (value, is_read) in
            [("1", true), ("t", true), ("False", true), ("yes", false), ("2", false), ("1 ", false), ("on", false)]
        {
            assert_eq!(boolean(value).is_none(), is_read, "{value}");
        }
    }
}
