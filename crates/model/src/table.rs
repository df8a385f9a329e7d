//! Tables that a program contains, and that other rules may bring in another version.

use std::ops::Deref;
use std::sync::OnceLock;

use serde::de::DeserializeOwned;

use super::document::{Document, DocumentError};

/// A table of `rules/tables`: the one that the program contains, unless another was read in its place before its first use.
#[derive(Debug)]
pub struct Table<T> {
    name: &'static str,
    shipped: fn() -> T,
    value: OnceLock<T>,
}

impl<T> Table<T> {
    /// Creates a table from the name of its file without the extension, and what reads the one that the program contains.
    pub const fn new(name: &'static str, shipped: fn() -> T) -> Self {
        Self { name, shipped, value: OnceLock::new() }
    }
}

impl<T> Deref for Table<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.get_or_init(self.shipped)
    }
}

/// A table of any type.
pub trait ReplaceableTable: Sync {
    /// Name of its file without the extension.
    fn name(&self) -> &'static str;

    /// Reads another table in its place, which counts until the program ends.
    ///
    /// # Errors
    /// The text is not such a table, or the table was already used.
    fn replace(&self, document: Document<'_>) -> Result<(), DocumentError>;
}

impl<T: DeserializeOwned + Send + Sync> ReplaceableTable for Table<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn replace(&self, document: Document<'_>) -> Result<(), DocumentError> {
        let used = |_| document.mistake_in(0..0, "the table was already used");
        self.value.set(document.parse()?).map_err(used)
    }
}
