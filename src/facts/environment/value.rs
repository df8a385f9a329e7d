//! Values as the libraries read them.

use crate::model::Version;

use super::super::settings::{CNumber, strtoll};
use super::vocabulary::{Reads, VariableUse, table};

/// Describes the problem of a value for a report; `None` when the reader takes it as written. `version` is the version
/// of the reader.
pub(super) fn problem(about: &VariableUse, value: &str, version: Option<&Version>) -> Option<String> {
    match about.reads {
        Reads::Switch => switch(value, version),
        Reads::Integer => integer(value).is_none().then(|| STOPS.to_owned()),
        // NCCL treats empty as unset.
        _ if value.is_empty() => None,
        Reads::Text => None,
        Reads::Number => number(value, about.range),
        Reads::Flag => number(value, Some(about.range.unwrap_or((0, 1)))),
        Reads::Word => word(about, value).map(|word| format!("{word} is not one of {}", about.of.join(", "))),
        Reads::Words => {
            let list = value.strip_prefix('^').unwrap_or(value);
            let unknown = list.split(',').filter(|part| !part.is_empty()).find_map(|part| word(about, part));
            unknown.map(|word| format!("{word} is not one of {}", about.of.join(", ")))
        }
        Reads::Level if value.starts_with(|c: char| c.is_ascii_digit()) => None,
        Reads::Level if table().levels.iter().any(|level| level == value) => None,
        Reads::Level => Some(format!("NCCL ignores it: levels are {}, in upper case", table().levels.join(", "))),
    }
}

const STOPS: &str = "PyTorch stops with `Invalid value for environment variable`";

fn word<'v>(about: &VariableUse, value: &'v str) -> Option<&'v str> {
    let is = |word: &String| if about.exact { word == value } else { word.eq_ignore_ascii_case(value) };
    (!about.of.iter().any(is)).then_some(value)
}

fn number(value: &str, range: Option<(i64, i64)>) -> Option<String> {
    let read = strtoll(value);
    match read {
        CNumber { number: None, .. } => Some("it does not fit in 64 bits, so NCCL uses its default".to_owned()),
        CNumber { digits: "", .. } => Some("it is not a number, so NCCL reads 0".to_owned()),
        CNumber { number: Some(number), rest, .. } if !rest.trim().is_empty() => {
            Some(format!("NCCL reads it as {number} and ignores '{rest}'"))
        }
        CNumber { number: Some(number), octal: true, .. } => {
            Some(format!("NCCL reads it as {number}: a number with a leading 0 is octal"))
        }
        CNumber { number: Some(number), .. } => {
            let (least, most) = range?;
            (!(least..=most).contains(&number)).then(|| format!("{number} is not between {least} and {most}"))
        }
    }
}

/// PyTorch's booleans are words since 2.2; before, only the numbers 0 and 1.
fn switch(value: &str, version: Option<&Version>) -> Option<String> {
    const WORDS: &[&str] = &["y", "yes", "1", "t", "true", "n", "no", "0", "f", "false"];
    let has_words = version.is_none_or(|version| Version::parse("2.2").is_some_and(|first| *version >= first));
    let is_read = if has_words {
        WORDS.contains(&value.to_ascii_lowercase().as_str())
    } else {
        integer(value).is_some_and(|number| (0..=1).contains(&number))
    };
    (!is_read).then(|| STOPS.to_owned())
}

/// C++'s `std::stoi`: a decimal number and an ignored rest.
fn integer(value: &str) -> Option<i32> {
    let text = value.trim_start();
    let length = text
        .bytes()
        .enumerate()
        .take_while(|(index, b)| b.is_ascii_digit() || (*index == 0 && matches!(b, b'-' | b'+')))
        .count();
    text.get(..length)?.parse().ok()
}

/// Returns true when the value is one that has a cost.
pub(super) fn is_costly(when: &str, about: &VariableUse, value: &str) -> bool {
    let number = || if about.reads == Reads::Switch { truth(value) } else { strtoll(value).number };
    match when {
        "set" => !value.is_empty(),
        _ if value.is_empty() => false,
        "zero" => number() == Some(0),
        "one" => number() == Some(1),
        "nonzero" => number().is_some_and(|number| number != 0),
        "not-negative" => number().is_some_and(|number| number >= 0),
        words => words.split(' ').any(|word| word.eq_ignore_ascii_case(value)),
    }
}

fn truth(value: &str) -> Option<i64> {
    match value.to_ascii_lowercase().as_str() {
        "y" | "yes" | "1" | "t" | "true" => Some(1),
        "n" | "no" | "0" | "f" | "false" => Some(0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(reads: Reads, value: &str) -> String {
        let about = VariableUse { reads, of: vec!["WARN".to_owned(), "INFO".to_owned()], ..VariableUse::default() };
        problem(&about, value, None).unwrap_or_else(|| "-".to_owned())
    }

    #[test]
    fn problems() {
        for (reads, value, expected) in [
            (Reads::Flag, "1", "-"),
            (Reads::Flag, "", "-"),
            (Reads::Flag, "true", "it is not a number, so NCCL reads 0"),
            (Reads::Flag, "2", "2 is not between 0 and 1"),
            (Reads::Number, "4M", "NCCL reads it as 4 and ignores 'M'"),
            (Reads::Number, "010", "NCCL reads it as 8: a number with a leading 0 is octal"),
            (Reads::Number, "00", "-"),
            (Reads::Number, "9223372036854775808", "it does not fit in 64 bits, so NCCL uses its default"),
            (Reads::Word, "warn", "-"),
            (Reads::Word, "WARNING", "WARNING is not one of WARN, INFO"),
            (Reads::Words, "^INFO,warn", "-"),
            (Reads::Words, "INFO,NETWORK", "NETWORK is not one of WARN, INFO"),
            (Reads::Level, "NVL", "-"),
            (Reads::Level, "2", "-"),
            (Reads::Switch, "True", "-"),
            (Reads::Switch, "on", STOPS),
            (Reads::Switch, "", STOPS),
            (Reads::Integer, "600s", "-"),
            (Reads::Integer, "ten", STOPS),
            (Reads::Text, "anything", "-"),
        ] {
            assert_eq!(told(reads, value), expected, "{value}");
        }
        assert!(told(Reads::Level, "nvl").starts_with("NCCL ignores it"));
        let about = VariableUse { reads: Reads::Switch, ..VariableUse::default() };
        assert!(problem(&about, "true", Version::parse("2.1.2").as_ref()).is_some());
    }

    #[test]
    fn an_integer_is_what_stoi_reads() {
        for (value, number) in [
            ("600s", Some(600)),
            (" 7", Some(7)),
            ("-5", Some(-5)),
            ("+5", Some(5)),
            ("1-2", Some(1)),
            ("--1", None),
            ("s600", None),
            ("", None),
            ("2147483647", Some(i32::MAX)),
            ("2147483648", None),
        ] {
            assert_eq!(integer(value), number, "{value}");
        }
    }

    #[test]
    fn ranges_hold_their_ends() {
        let about = |range| VariableUse { reads: Reads::Number, range, ..VariableUse::default() };
        for (value, range, expected) in [
            ("4", Some((4, 8)), None),
            ("8", Some((4, 8)), None),
            ("3", Some((4, 8)), Some("3 is not between 4 and 8")),
            ("9", Some((4, 8)), Some("9 is not between 4 and 8")),
            ("9", None, None),
            ("5 ", Some((4, 8)), None),
            ("0x", None, Some("NCCL reads it as 0 and ignores 'x'")),
        ] {
            assert_eq!(problem(&about(range), value, None).as_deref(), expected, "{value}");
        }
        let flag = VariableUse { reads: Reads::Flag, range: Some((-2, 2)), ..VariableUse::default() };
        assert_eq!(problem(&flag, "-2", None), None);
    }

    #[test]
    fn words_are_compared_as_their_reader_does() {
        let about = |reads, exact| VariableUse { reads, exact, of: vec!["IB".to_owned()], ..VariableUse::default() };
        for (reads, exact, value, is_good) in [
            (Reads::Word, false, "ib", true),
            (Reads::Word, true, "ib", false),
            (Reads::Word, true, "IB", true),
            (Reads::Words, true, "^IB", true),
            (Reads::Words, true, ",IB,", true),
            (Reads::Words, true, "IB^", false),
            (Reads::Words, true, "^", true),
        ] {
            assert_eq!(problem(&about(reads, exact), value, None).is_none(), is_good, "{value}");
        }
        for (value, is_good) in [("LOC", true), ("SYS", true), ("9", true), ("x9", false), ("9x", true)] {
            assert_eq!(told(Reads::Level, value) == "-", is_good, "{value}");
        }
    }

    #[test]
    fn switches_are_words_since_2_2_and_numbers_before() {
        let about = VariableUse { reads: Reads::Switch, ..VariableUse::default() };
        for (value, before, since) in [
            ("0", true, true),
            ("1", true, true),
            ("2", false, false),
            ("-1", false, false),
            ("01", true, false),
            ("YES", false, true),
            ("n", false, true),
            ("on", false, false),
        ] {
            for (version, is_good) in [("2.1.2", before), ("2.2", since), ("2.10", since)] {
                let problem = problem(&about, value, Version::parse(version).as_ref());
                assert_eq!(problem.is_none(), is_good, "{value} for {version}");
            }
            assert_eq!(problem(&about, value, None).is_none(), since, "{value}");
        }
    }

    #[test]
    fn costly_values_are_recognised() {
        let costs =
            |when: &str, reads, value: &str| is_costly(when, &VariableUse { reads, ..VariableUse::default() }, value);
        for (when, costly, free) in [
            ("set", &["0", "x"][..], &[""][..]),
            ("zero", &["0", "-0", "x"], &["", "1"]),
            ("one", &["1", "0x1"], &["", "0", "2"]),
            ("nonzero", &["1", "-1"], &["", "0", "99999999999999999999"]),
            ("not-negative", &["0", "1"], &["", "-1"]),
            ("info TRACE", &["INFO", "trace"], &["", "warn"]),
        ] {
            for value in costly {
                assert!(costs(when, Reads::Number, value), "{when}: {value}");
            }
            for value in free {
                assert!(!costs(when, Reads::Number, value), "{when}: {value}");
            }
        }
        for (value, one, zero) in [
            ("yes", true, false),
            ("T", true, false),
            ("1", true, false),
            ("no", false, true),
            ("False", false, true),
            ("2", false, false),
        ] {
            assert_eq!(
                (costs("one", Reads::Switch, value), costs("zero", Reads::Switch, value)),
                (one, zero),
                "{value}"
            );
        }
    }

    #[test]
    fn blanks_and_signs_before_a_number_are_read_and_what_is_left_is_kept() {
        for (text, number, digits, rest) in [
            ("\t\n\x0b\x0c\r 5", Some(5), "5", ""),
            ("+5", Some(5), "5", ""),
            ("-0X1f", Some(-31), "1f", ""),
            ("0xg", Some(0), "0", "xg"),
            ("0x1g", Some(1), "1", "g"),
            ("- 5", Some(0), "", "- 5"),
            ("+-5", Some(0), "", "+-5"),
            ("0", Some(0), "0", ""),
        ] {
            let read = strtoll(text);
            assert_eq!((read.number, read.digits, read.rest), (number, digits, rest), "{text}");
        }
        for (text, octal) in [("0", false), ("00", false), ("07", true), ("0x10", false), ("10", false)] {
            assert_eq!(strtoll(text).octal, octal, "{text}");
        }
    }
}
