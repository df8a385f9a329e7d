//! Objects of a body: what could not be read is null there, and has its reason under `unread`.

use serde_json::Value;

use crate::model::{Fact, Gap};

/// A JSON object of a body.
#[derive(Clone, Copy)]
pub(super) struct Reading<'b> {
    object: &'b Value,
}

impl<'b> Reading<'b> {
    pub(super) const fn new(object: &'b Value) -> Self {
        Self { object }
    }

    /// A field: absent if it is null or not there, unknown if the program said why it could not read it.
    pub(super) fn get(self, name: &str) -> Fact<&'b Value> {
        match self.object.get(name) {
            Some(Value::Null) | None => match self.object.get("unread").and_then(|unread| unread.get(name)) {
                Some(why) => Fact::Unknown(Gap::new(why.as_str().unwrap_or_default())),
                None => Fact::Absent,
            },
            Some(value) => Fact::seen(value, []),
        }
    }

    /// A field that matters: why it is not known, if the program could not read it. What NVML says that a GPU does not have
    /// is none.
    pub(super) fn known(self, name: &str) -> Result<Option<&'b Value>, Gap> {
        match self.get(name) {
            Fact::Seen { value, .. } => Ok(Some(value)),
            Fact::Unknown(gap) if !gap.why.contains("NOT_SUPPORTED") => Err(gap),
            Fact::Unknown(_) | Fact::Absent => Ok(None),
        }
    }

    pub(super) fn text(self, name: &str) -> Option<&'b str> {
        self.object.get(name)?.as_str()
    }

    pub(super) fn number(self, name: &str) -> Option<i64> {
        self.object.get(name)?.as_i64()
    }

    pub(super) fn float(self, name: &str) -> Option<f64> {
        self.object.get(name)?.as_f64()
    }

    pub(super) fn flag(self, name: &str) -> Option<bool> {
        self.object.get(name)?.as_bool()
    }

    /// The object of this name; an empty one where there is none.
    pub(super) fn object(self, name: &str) -> Self {
        Self { object: self.object.get(name).unwrap_or(&Value::Null) }
    }

    /// The entries of the list of this name.
    pub(super) fn list(self, name: &str) -> impl Iterator<Item = Self> + use<'b> {
        self.object.get(name).and_then(Value::as_array).into_iter().flatten().map(Self::new)
    }

    /// The texts of the list of this name.
    pub(super) fn texts(self, name: &str) -> Vec<String> {
        self.list(name).filter_map(|entry| entry.object.as_str().map(ToOwned::to_owned)).collect()
    }

    pub(super) fn as_float(self) -> Option<f64> {
        self.object.as_f64()
    }

    pub(super) fn as_text(self) -> Option<&'b str> {
        self.object.as_str()
    }

    /// The entries of an object, by name.
    pub(super) fn entries(self) -> impl Iterator<Item = (&'b str, Self)> {
        self.object.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), Self::new(value)))
    }
}
