//! Types of the output of the program in the container: the lines ([`events`]) and the bodies in them, one file for
//! each step, with the fields that are read. No other module knows a name of this format. `payload/events.schema.json`
//! describes all fields, and the program's tests validate its output against it.
//!
//! A recording may be older than this version, and a container may be hostile. So a [`Field`] that cannot be read is
//! unknown, with the reason, and does not affect other fields.
#![expect(
    missing_docs,
    reason = "fields have the names of the payload, which include the units; its modules describe them"
)]

/// Declares the objects in bodies. Any field may be missing.
///
/// `is step "NAME"` declares the body of a step's result, and `is part "KIND"` that of a partial one.
macro_rules! objects {
    (@step $name:ident $step:literal) => {
        impl $crate::wire::StepBody for $name {
            const STEP: &'static str = $step;
        }
    };
    (@part $name:ident $kind:literal) => {
        impl $crate::wire::PartBody for $name {
            const KIND: &'static str = $kind;
        }
    };
    ($($(#[$meta:meta])* pub struct $name:ident $(is $body:ident $value:literal)? { $($fields:tt)* })*) => {$(
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
        #[serde(default)]
        $(#[$meta])*
        pub struct $name { $($fields)* }
        $(objects!(@$body $name $value);)?
    )*};
}

pub mod between_nodes;
pub mod collectives;
pub mod entrypoint;
pub mod events;
mod field;
pub mod gpus;
pub mod host_config;
pub mod isolated;
pub mod limits;
pub mod pytorch;
pub mod rdma;
mod speed;
pub mod storage;
pub mod topology;
pub mod what_if;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use field::Field;

use events::EventBody;

/// The body of a step's result.
pub trait StepBody: DeserializeOwned + Default {
    /// Name of the step.
    const STEP: &'static str;
}

/// The body of a partial result.
pub trait PartBody: DeserializeOwned + Default {
    /// Value of the field `kind`.
    const KIND: &'static str;
}

/// The field of a part that names its kind.
const KIND: &str = "kind";

/// Reads a body. The fields of the type are [`Field`]s, which accept any value and may all be missing.
pub fn read<T: DeserializeOwned + Default>(body: &EventBody) -> T {
    let mut value = Value::Object(body.clone());
    field::note_unread(&mut value);
    serde_json::from_value(value).unwrap_or_default()
}

/// Reads the body of a partial result, if it is of this kind.
pub fn read_part<P: PartBody>(body: &EventBody) -> Option<P> {
    (body.get(KIND)?.as_str()? == P::KIND).then(|| read(body))
}

/// Converts a value to the body of a line.
pub fn body(value: &impl Serialize) -> EventBody {
    match serde_json::to_value(value) {
        Ok(Value::Object(body)) => body,
        Ok(_) | Err(_) => EventBody::new(),
    }
}
