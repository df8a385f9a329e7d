//! The JSON schema of the lines, generated from the types. The program's tests validate its output against it.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::collectives::{CollectivesBody, FORCED_NETWORK, Measurement, PointToPoint, Setup, Times, WrongValues};
use super::events::{Event, PROTOCOL};
use super::field::UNREAD;
use super::gpus::GpusBody;
use super::isolated::IsolatedBody;
use super::limits::LimitsBody;
use super::pytorch::{MappedLibraries, PytorchBody, TorchBuild};
use super::rdma::RdmaBody;
use super::storage::StorageBody;
use super::topology::TopologyBody;
use super::what_if::WhatIfBody;
use super::{KIND, PartBody, StepBody};

const DESCRIPTION: &str = "wire.py describes the lines. The body of a result is the $def named after its step; the body of a \
                           part is the $def part. This schema is generated from the types in crates/probe/src/wire.";

/// The schema of one line. Bodies are `$defs`: the body of a result is named after its step, the body of a part is
/// `part`.
pub fn schema() -> String {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let bodies = [
        step::<LimitsBody>(&mut generator),
        step::<StorageBody>(&mut generator),
        step::<GpusBody>(&mut generator),
        step::<TopologyBody>(&mut generator),
        step::<RdmaBody>(&mut generator),
        step::<PytorchBody>(&mut generator),
        step::<CollectivesBody>(&mut generator),
        (FORCED_NETWORK, generator.subschema_for::<CollectivesBody>()),
        step::<WhatIfBody>(&mut generator),
        step::<IsolatedBody>(&mut generator),
    ];
    let parts = [
        part::<MappedLibraries>(&mut generator),
        part::<TorchBuild>(&mut generator),
        part::<Setup>(&mut generator),
        part::<Times>(&mut generator),
        part::<PointToPoint>(&mut generator),
        part::<Measurement>(&mut generator),
        part::<WrongValues>(&mut generator),
    ];
    let mut schema = generator.into_root_schema_for::<Event>();
    lines(&mut schema);
    schema.insert("title".to_owned(), "One line of the probe's payload".into());
    schema.insert("description".to_owned(), DESCRIPTION.into());
    if let Some(Value::Object(definitions)) = schema.get_mut("$defs") {
        for (name, body) in bodies {
            definitions.entry(name).or_insert_with(|| body.to_value());
        }
        definitions.insert("part".to_owned(), json!({ "oneOf": parts }));
    }
    Reasons.transform(&mut schema);
    format!("{:#}\n", schema.as_value())
}

/// The name of a step, and the schema of its body.
fn step<B: StepBody>(generator: &mut SchemaGenerator) -> (&'static str, Schema) {
    (B::STEP, generator.subschema_for::<B>())
}

/// The schema of a part, with the field that names its kind.
fn part<P: PartBody>(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = P::json_schema(generator);
    require(&mut schema, KIND, json!({ "const": P::KIND }));
    schema
}

/// Adds the fields that all lines share.
fn lines(schema: &mut Schema) {
    let Some(Value::Array(events)) = schema.get_mut("oneOf") else { return };
    for event in events.iter_mut().filter_map(|event| <&mut Schema>::try_from(event).ok()) {
        require(event, "ncclcheck", json!({ "const": PROTOCOL }));
        require(event, "at", json!({ "type": "number" }));
        let lengths = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
        add(event, "shortened", lengths);
        event.remove("unevaluatedProperties");
        event.insert("additionalProperties".to_owned(), false.into());
    }
}

/// Adds a required property.
fn require(schema: &mut Schema, name: &str, value: Value) {
    add(schema, name, value);
    if let Value::Array(required) = schema.ensure_object().entry("required").or_insert_with(|| json!([])) {
        required.insert(0, name.into());
    }
}

/// Adds an optional property.
fn add(schema: &mut Schema, name: &str, value: Value) {
    if let Value::Object(properties) = schema.ensure_object().entry("properties").or_insert_with(|| json!({})) {
        properties.insert(name.to_owned(), value);
    }
}

/// Allows `unread` in each object with nullable fields, and removes keywords without effect.
struct Reasons;

impl Transform for Reasons {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        for (name, nothing) in [("additionalProperties", Value::Bool(true)), ("default", Value::Null)] {
            if schema.get(name) == Some(&nothing) {
                schema.remove(name);
            }
        }
        let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
        let is_nullable = |property: &Value| {
            property
                .get("anyOf")
                .and_then(Value::as_array)
                .is_some_and(|types| types.contains(&json!({ "type": "null" })))
        };
        if properties.values().any(is_nullable) {
            let reasons = json!({ "type": "object", "additionalProperties": { "type": "string" } });
            properties.entry(UNREAD).or_insert(reasons);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps;

    #[test]
    fn the_schema_in_the_repository_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/payload/events.schema.json");
        if std::env::var_os("NCCLCHECK_BLESS").is_some() {
            std::fs::write(path, schema()).unwrap();
        }
        assert!(
            std::fs::read_to_string(path).unwrap_or_default() == schema(),
            "events.schema.json is not the schema of the types: NCCLCHECK_BLESS=1 cargo test --workspace --lib schema"
        );
    }

    #[test]
    fn every_step_has_a_body() {
        let schema: Value = serde_json::from_str(&schema()).unwrap();
        for row in steps::rows() {
            assert!(schema["$defs"][&row.name].is_object(), "{}", row.name);
        }
    }
}
