//! The tables of this crate, each of which another version can replace before its first use.

use std::ops::Deref;
use std::sync::OnceLock;

use serde::de::DeserializeOwned;

use super::{failure, forms, job, symptoms};

/// A table in YAML.
pub(super) struct Table<T> {
    text: &'static str,
    /// Checks that its expressions compile.
    check: fn(&T) -> Result<(), regex::Error>,
    value: OnceLock<T>,
}

impl<T: DeserializeOwned> Table<T> {
    pub(super) const fn new(text: &'static str, check: fn(&T) -> Result<(), regex::Error>) -> Self {
        Self { text, check, value: OnceLock::new() }
    }

    fn replace(&self, text: &str) -> Result<(), String> {
        let value = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
        (self.check)(&value).map_err(|error| error.to_string())?;
        self.value.set(value).map_err(|_used| "the table was already used".to_owned())
    }
}

impl<T: DeserializeOwned> Deref for Table<T> {
    type Target = T;

    #[expect(clippy::expect_used, reason = "the table is compiled in, and a test reads it")]
    fn deref(&self) -> &T {
        self.value.get_or_init(|| serde_yaml::from_str(self.text).expect("a table that parses"))
    }
}

/// What reads a text in place of a table, until the program ends. It fails where the text is not such a table, and where the
/// table was already used.
pub type ReplaceTable = fn(&str) -> Result<(), String>;

/// The tables by the names of their files without the extension, each with what replaces it.
pub fn tables() -> [(&'static str, ReplaceTable); 5] {
    [
        ("failures", |text| failure::ROWS.replace(text)),
        ("interfaces", |text| job::LOCAL.replace(text)),
        ("libraries", |text| symptoms::LIBRARIES.replace(text)),
        ("patterns", |text| forms::PATTERNS.replace(text)),
        ("symptoms", |text| symptoms::TABLE.replace(text)),
    ]
}
