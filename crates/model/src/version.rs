//! Versions of libraries and packages.

use std::cmp::Ordering;
use std::fmt;

use serde::{Serialize, Serializer};

/// A version as upstream writes it: numbers joined by dots, then any suffix (`2.27.5`, `2.9.0+cu128`, `12.8`). Versions
/// compare by their numbers, where a missing one is 0, and then by their suffixes.
#[derive(Clone, Debug)]
pub struct Version {
    text: String,
    numbers: Vec<u64>,
    rest: usize,
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl Version {
    /// Parses a version; `None` if the text does not begin with a number.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = Vec::new();
        let mut rest = 0;
        for part in text.split('.') {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            let Some(Ok(number)) = part.get(..digits).map(str::parse) else {
                break;
            };
            numbers.push(number);
            rest += usize::from(numbers.len() > 1) + digits;
            if digits < part.len() {
                break;
            }
        }
        (!numbers.is_empty()).then(|| Self { text: text.to_owned(), numbers, rest })
    }

    /// Returns the first number.
    pub fn major(&self) -> u64 {
        self.numbers.first().copied().unwrap_or_default()
    }

    /// Returns the text as it was parsed.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Compares releases as PEP 440 does: a local version, `2.9.0+cu128`, equals its release unless both versions are
    /// local, and a pre-release, `2.9.0rc1` or `2.9.0.dev3`, is older.
    pub fn cmp_release(&self, other: &Self) -> Ordering {
        let length = self.numbers.len().max(other.numbers.len());
        let number = |version: &Self, index| version.numbers.get(index).copied().unwrap_or_default();
        let own = self.suffix();
        let others = other.suffix();
        let local = |suffix: &str| suffix.split_once('+').map(|(_, local)| local.to_owned());
        let is_before = |suffix: &str| {
            let word: String =
                suffix.trim_start_matches(['.', '-', '_']).chars().take_while(char::is_ascii_alphabetic).collect();
            matches!(&*word, "a" | "b" | "c" | "rc" | "alpha" | "beta" | "pre" | "preview" | "dev")
        };
        let public = |suffix: &str| suffix.split('+').next().unwrap_or_default().to_owned();
        (0..length)
            .map(|index| number(self, index).cmp(&number(other, index)))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
            .then(is_before(others).cmp(&is_before(own)))
            .then_with(|| if is_before(own) { public(own).cmp(&public(others)) } else { Ordering::Equal })
            .then_with(|| match (local(own), local(others)) {
                (Some(own), Some(others)) => own.cmp(&others),
                _ => Ordering::Equal,
            })
    }

    fn suffix(&self) -> &str {
        self.text.get(self.rest..).unwrap_or_default()
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let length = self.numbers.len().max(other.numbers.len());
        let number = |version: &Self, index| version.numbers.get(index).copied().unwrap_or_default();
        (0..length)
            .map(|index| number(self, index).cmp(&number(other, index)))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| self.suffix().cmp(other.suffix()))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Version {}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_pep_440() {
        let order = |one: &str, other: &str| Version::parse(one).unwrap().cmp_release(&Version::parse(other).unwrap());
        for (one, other, expected) in [
            ("2.9.0+cu128", "2.9.0", Ordering::Equal),
            ("2.9.0+cu128", "2.9", Ordering::Equal),
            ("2.9.0+cu126", "2.9.0+cu128", Ordering::Less),
            ("2.9.0rc1", "2.9.0", Ordering::Less),
            ("2.9.0.dev20250101+cu128", "2.9.0", Ordering::Less),
            ("2.9.0a0+git1234", "2.8.0", Ordering::Greater),
            ("2.9.0a9", "2.9.0rc1", Ordering::Less),
            ("2.10", "2.9.1", Ordering::Greater),
            ("5.15.0-91-generic", "5.15", Ordering::Equal),
        ] {
            assert_eq!(order(one, other), expected, "{one}, {other}");
            assert_eq!(order(other, one), expected.reverse(), "{other}, {one}");
        }
    }

    #[test]
    fn versions_are_compared_by_numbers() {
        let version = |text| Version::parse(text).unwrap();
        assert!(version("2.9.0") < version("2.27.5"));
        assert_eq!(version("2.9"), version("2.9.0"));
        assert!(version("2.9.0") < version("2.9.0+cu128"));
        assert_eq!(version("12.8").major(), 12);
        assert!(Version::parse("v2").is_none());
        assert!(Version::parse("").is_none());
    }
}
