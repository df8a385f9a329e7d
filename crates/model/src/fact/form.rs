//! The form of a fact in the record of a host: the value, `null` if it is absent, or `{unknown: reason}`. A record has
//! no places: all of it is from one machine.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Fact, Gap};

/// Forms of a fact in a record.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a value of this item's type, null, or {unknown: REASON}")]
enum Item<T> {
    // Tried first: serde would also deserialize a list of one string as a reason.
    Known(T),
    Absent,
    Unknown(Why),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Why {
    unknown: String,
}

impl<T: Serialize> Serialize for Fact<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Seen { value, .. } => value.serialize(serializer),
            Self::Absent => serializer.serialize_unit(),
            Self::Unknown(gap) => Why { unknown: gap.why.clone() }.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Fact<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Item::deserialize(deserializer)? {
            Item::Known(value) => Self::known(value),
            Item::Absent => Self::Absent,
            Item::Unknown(why) => Self::Unknown(Gap::new(why.unknown)),
        })
    }
}

/// An item that is missing in a record: the version that wrote the record did not collect it.
impl<T> Default for Fact<T> {
    fn default() -> Self {
        Self::unknown("not in the record")
    }
}
