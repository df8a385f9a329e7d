//! What the program in the container writes, as types: the lines ([`events`]), and the bodies in them, one file for each step. No
//! other module knows a name of this form. Its schema is made from these types, and the program's tests hold its output against it.
//!
//! A container may be older than we are, or hostile. So a [`Field`] that cannot be read is unknown, with the reason, and costs
//! nothing else.
#![expect(
    missing_docs,
    reason = "fields have the payload's own names, which hold their units; its modules describe them"
)]

/// Declares the objects of bodies. Any field may be missing, and the schema allows no others.
macro_rules! objects {
    ($($(#[$meta:meta])* pub struct $name:ident $fields:tt)*) => {$(
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
        #[serde(default)]
        #[schemars(deny_unknown_fields)]
        #[non_exhaustive]
        $(#[$meta])*
        pub struct $name $fields
    )*};
}

pub mod collectives;
pub mod events;
mod field;
pub mod gpus;
pub mod host_config;
pub mod isolated;
pub mod limits;
pub mod pytorch;
pub mod rdma;
mod schema;
pub mod storage;
pub mod topology;
pub mod what_if;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use field::{Field, Nullable};
pub use schema::schema;

use events::EventBody;

/// The body of a step's result.
pub trait StepBody: DeserializeOwned + Default + JsonSchema {
    /// The step's name.
    const STEP: &'static str;
}

/// The body of a partial result.
pub trait PartBody: DeserializeOwned + Default + JsonSchema {
    /// What it calls itself.
    const KIND: &'static str;
}

/// The field of a part that names its kind.
const KIND: &str = "kind";

/// Reads a body. The type's fields are [`Field`]s, which take what is there; an empty body has none of them.
pub fn read<T: DeserializeOwned + Default>(body: &EventBody) -> T {
    let mut value = Value::Object(body.clone());
    field::note_unread(&mut value);
    serde_json::from_value(value).unwrap_or_default()
}

/// Reads the body of a partial result, if it is of this kind.
pub fn read_part<P: PartBody>(body: &EventBody) -> Option<P> {
    (body.get(KIND)?.as_str()? == P::KIND).then(|| read(body))
}

/// A body as it stands in a line.
pub fn body(value: &impl Serialize) -> EventBody {
    match serde_json::to_value(value) {
        Ok(Value::Object(body)) => body,
        Ok(_) | Err(_) => EventBody::new(),
    }
}
