//! A field of a body: its value, or the reason for its absence.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use model::{Fact, Gap};

/// Key of an object's reasons for null fields.
const UNREAD: &str = "unread";

/// Key of the object that replaces a null with a reason, so that the field gets its reason. No program writes this key.
const REASON: &str = "\0unread";

/// A field of a body. It is absent if it is null or missing, and unknown if the program could not read it or wrote a
/// value of another type.
#[derive(Clone, Debug, PartialEq)]
pub struct Field<T>(Fact<T>);

impl<T> Field<T> {
    /// The value, absence or gap.
    pub const fn fact(&self) -> &Fact<T> {
        &self.0
    }

    /// The value, if there is one.
    pub const fn value(&self) -> Option<&T> {
        self.0.value()
    }

    /// Returns true if the program wrote neither a value nor a reason.
    pub const fn is_absent(&self) -> bool {
        matches!(self.0, Fact::Absent)
    }

    /// The value of a field that a fact needs, or its gap. NVML's `NOT_SUPPORTED` means that the GPU lacks the feature,
    /// which is not a gap.
    pub fn known(&self) -> Result<Option<&T>, Gap> {
        match &self.0 {
            Fact::Seen { value, .. } => Ok(Some(value)),
            Fact::Unknown(gap) if !gap.why.contains("NOT_SUPPORTED") => Err(gap.clone()),
            Fact::Unknown(_) | Fact::Absent => Ok(None),
        }
    }

    /// The value of a field of this object, as [`Self::known`] returns it.
    pub fn known_in<U>(&self, field: impl FnOnce(&T) -> &Field<U>) -> Result<Option<&U>, Gap> {
        self.known()?.map_or(Ok(None), |object| field(object).known())
    }
}

impl<T: Copy> Field<T> {
    /// A copy of the value, if there is one.
    pub fn copied(&self) -> Option<T> {
        self.value().copied()
    }
}

impl Field<String> {
    /// The text, if there is one.
    pub fn text(&self) -> Option<&str> {
        self.value().map(String::as_str)
    }
}

impl<T> Field<Vec<T>> {
    /// The entries of a list that a fact needs, or its gap; empty if there is no list.
    pub fn known_list(&self) -> Result<&[T], Gap> {
        Ok(self.known()?.map_or(&[], Vec::as_slice))
    }

    /// The entries; empty if there is no list.
    pub fn list(&self) -> &[T] {
        self.value().map_or(&[], Vec::as_slice)
    }
}

impl<T> Default for Field<T> {
    fn default() -> Self {
        Self(Fact::Absent)
    }
}

impl<T> From<T> for Field<T> {
    fn from(value: T) -> Self {
        Self(Fact::seen(value, []))
    }
}

impl<T> From<Option<T>> for Field<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or_else(Self::default, Into::into)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|value| Self(read(value)))
    }
}

/// Reads a field. Not inlined, so that the many types of fields share more code.
#[inline(never)]
fn read<T: DeserializeOwned>(value: Value) -> Fact<T> {
    match value {
        Value::Null => Fact::Absent,
        value => match value.get(REASON) {
            Some(why) => Fact::Unknown(Gap::new(why.as_str().unwrap_or_default())),
            None => match serde_json::from_value(value) {
                Ok(value) => Fact::seen(value, []),
                Err(error) => Fact::Unknown(Gap::new(error.to_string())),
            },
        },
    }
}

impl<T: Serialize> Serialize for Field<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

/// Replaces each null by its reason under `unread`, in this object and all objects below it.
pub(super) fn note_unread(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(note_unread),
        Value::Object(object) => {
            object.values_mut().for_each(note_unread);
            let Some(Value::Object(unread)) = object.get(UNREAD).cloned() else { return };
            for (name, why) in unread {
                if object.get(&name).is_none_or(Value::is_null) {
                    object.insert(name, Value::Object(Map::from_iter([(REASON.to_owned(), why)])));
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::gpus::GpusBody;
    use super::super::read;
    use super::*;

    fn gpus(gpu: &Value) -> GpusBody {
        let Value::Object(body) = json!({ "gpus": [gpu] }) else { panic!("no object") };
        read(&body)
    }

    #[test]
    fn an_unreadable_field_does_not_affect_others() {
        let body = gpus(&json!({ "index": 3, "name": 7, "pcie": "fast", "ecc": null, "new": [], "unread": {
            "ecc": "NVML_ERROR_NO_PERMISSION", "index": "not null" } }));
        let [gpu] = body.gpus.list() else { panic!("{body:?}") };
        assert_eq!(gpu.index.copied(), Some(3));
        assert_eq!(gpu.ecc.known().unwrap_err().why, "NVML_ERROR_NO_PERMISSION");
        assert_eq!(gpu.name.known().unwrap_err().why, "invalid type: integer `7`, expected a string");
        assert!(gpu.pcie.known_in(|pcie| &pcie.width).unwrap_err().why.contains("\"fast\""));
        assert!(gpu.mig.is_absent() && gpu.mig.known().unwrap().is_none());
    }

    #[test]
    fn an_unsupported_feature_is_not_a_gap() {
        let body =
            gpus(&json!({ "persistence_mode": null, "unread": { "persistence_mode": "NVML_ERROR_NOT_SUPPORTED" } }));
        assert_eq!(body.gpus.list()[0].persistence_mode.known(), Ok(None));
    }
}
