//! The form of a fact in the record of a host: the value, `null` if it is absent, or `{unknown: reason}`. A record has
//! no places: all of it is from one machine.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Fact, Gap};

/// What a record may hold in place of a fact.
#[derive(Deserialize)]
#[serde(untagged)]
enum Item<T> {
    // Tried first: serde takes a list of one text for a reason, too.
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

/// An item that a record leaves out: its writer did not look for it.
impl<T> Default for Fact<T> {
    fn default() -> Self {
        Self::unknown("not in the record")
    }
}
