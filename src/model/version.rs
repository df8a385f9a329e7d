//! Versions of libraries and packages.

use std::cmp::Ordering;
use std::fmt;

/// A version as upstream writes it: numbers joined by dots, then anything (`2.27.5`, `2.9.0+cu128`, `12.8`). Compared
/// by its numbers, a missing one counting as 0; what follows the numbers decides only between equal ones.
#[derive(Clone, Debug)]
pub struct Version {
    text: String,
    numbers: Vec<u64>,
    rest: usize,
}

impl Version {
    /// Reads a version; `None` when the text does not begin with a number.
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

    /// The first number.
    pub fn major(&self) -> u64 {
        self.numbers.first().copied().unwrap_or_default()
    }

    /// The text as it was read.
    pub fn as_str(&self) -> &str {
        &self.text
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
    fn compared_by_numbers() {
        let version = |text| Version::parse(text).unwrap();
        assert!(version("2.9.0") < version("2.27.5"));
        assert_eq!(version("2.9"), version("2.9.0"));
        assert!(version("2.9.0") < version("2.9.0+cu128"));
        assert_eq!(version("12.8").major(), 12);
        assert!(Version::parse("v2").is_none());
        assert!(Version::parse("").is_none());
    }
}
