//! Reading and writing of records.

use super::Record;
use crate::document::{Document, DocumentError, to_yaml};

impl Record {
    /// Parses a record in JSON or YAML.
    pub fn parse(document: Document<'_>) -> Result<Self, DocumentError> {
        // YAML is a superset of JSON.
        document.parse()
    }

    /// Serializes the record to YAML.
    ///
    /// # Errors
    ///
    /// Fails if YAML cannot represent the record.
    pub fn to_yaml(&self) -> Result<String, String> {
        to_yaml(self)
    }
}
