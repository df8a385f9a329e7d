//! JSON documents of images, as Docker and containerd read them.
//!
//! Both decode with Go's `encoding/json`, which matches a key to a field without regard to case, lets the last of
//! several keys win, and reads `null` as an empty list. Read by exact keys, a document with `layers` and `LAYERS`
//! would be another image than the one that runs. Keys of maps, such as labels, keep their case there too.

use std::fmt;

use serde::de::value::{BorrowedStrDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::{Error, Value};

use model::without_content;

/// Reads a document.
///
/// # Errors
/// The bytes are not JSON of the expected form, or an object has two keys for one field. The message quotes no value.
pub(super) fn parse_document<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    parse_changed(bytes, |_| {})
}

/// Like [`parse_document`], after a change.
pub(super) fn parse_changed<T: DeserializeOwned>(bytes: &[u8], change: impl FnOnce(&mut Json)) -> Result<T, String> {
    let read = || {
        let mut document: Json = serde_json::from_slice(bytes)?;
        change(&mut document);
        T::deserialize(document)
    };
    read().map_err(|error: Error| without_content(&error.to_string()))
}

/// A JSON value that keeps every key.
#[derive(Debug)]
pub(super) enum Json {
    /// A text, a number, a truth value or `null`.
    Scalar(Value),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Adds a text to the object below a key, where it does not have this field.
    pub(super) fn add_missing(&mut self, outer: &str, field: &str, text: &str) {
        let Self::Object(entries) = self else { return };
        for (_, value) in entries.iter_mut().filter(|(key, _)| is_field(key, outer)) {
            if let Self::Object(entries) = value
                && !entries.iter().any(|(key, _)| is_field(key, field))
            {
                entries.push((field.to_owned(), Self::Scalar(text.into())));
            }
        }
    }
}

/// Whether Go assigns the value of this key to the field: letters are equal under Unicode's simple case folding, which
/// maps two letters outside of ASCII to ASCII (`encoding/json`, `foldName`).
fn is_field(key: &str, field: &str) -> bool {
    let fold = |letter: char| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    };
    key.chars().map(fold).eq(field.chars().map(fold))
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Scalar(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Scalar(value.into()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Scalar(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Json::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Json::Object(entries))
    }
}

impl IntoDeserializer<'_, Error> for Json {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Json {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Scalar(value) => value.deserialize_any(visitor),
            Self::List(items) => visit_all(items, visitor),
            Self::Object(entries) => {
                let mut map = MapDeserializer::new(entries.into_iter());
                let value = visitor.visit_map(&mut map)?;
                map.end().map(|()| value)
            }
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let Self::Object(entries) = self else { return self.deserialize_any(visitor) };
        let mut named: Vec<(&str, String, Self)> = Vec::new();
        for (key, value) in entries {
            let Some(field) = fields.iter().find(|field| is_field(&key, field)) else { continue };
            if let Some((_, other, _)) = named.iter().find(|(other, ..)| other == field) {
                return Err(Error::custom(format_args!("two keys for one field: '{other}' and '{key}'")));
            }
            named.push((field, key, value));
        }
        let named = named.into_iter().map(|(field, _, value)| (BorrowedStrDeserializer::new(field), value));
        visitor.visit_map(MapDeserializer::new(named))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Scalar(Value::Null) => visit_all(Vec::new(), visitor),
            other => other.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Scalar(Value::Null) => visitor.visit_none(),
            other => visitor.visit_some(other),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct tuple
        tuple_struct map enum identifier ignored_any
    }
}

fn visit_all<'de, V: Visitor<'de>>(items: Vec<Json>, visitor: V) -> Result<V::Value, Error> {
    let mut list = SeqDeserializer::new(items.into_iter());
    let value = visitor.visit_seq(&mut list)?;
    list.end().map(|()| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Document {
        layers: Vec<String>,
        media_type: Option<String>,
        #[serde(rename = "os.kernel", default)]
        kernel: u64,
        #[serde(default)]
        labels: std::collections::BTreeMap<String, String>,
        inner: Option<Box<Document>>,
    }

    fn parse(text: &str) -> Result<Document, String> {
        parse_document(text.as_bytes())
    }

    #[test]
    fn keys_match_fields_without_regard_to_case() {
        let exact = parse(r#"{"layers": ["a"], "mediaType": "t", "os.kernel": 6, "inner": {"layers": []}}"#).unwrap();
        let other = r#"{"LAYERS": ["a"], "mediatype": "t", "OS.Kernel": 6, "Inner": {"Layer\u017f": []}}"#;
        assert_eq!(parse(other).unwrap(), exact);
        // U+212A, the Kelvin sign, folds to k.
        assert_eq!(parse(r#"{"layers": [], "os.\u212aernel": 6}"#).unwrap().kernel, 6);
    }

    #[test]
    fn a_field_has_one_key() {
        for (text, what) in [
            (r#"{"layers": ["a"], "LAYERS": ["b"]}"#, "'layers' and 'LAYERS'"),
            (r#"{"layers": [], "inner": {"layers": [], "Layers": []}}"#, "'layers' and 'Layers'"),
            (r#"{"layers": ["a"], "layers": ["b"]}"#, "'layers' and 'layers'"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn maps_keep_the_case_of_keys_and_other_keys_do_not_matter() {
        let read = parse(r#"{"layers": null, "labels": {"a": "1", "A": "2"}, "other": 1, "OTHER": [true, -1, 0.5]}"#);
        let read = read.unwrap();
        assert_eq!((read.layers.len(), read.labels.len()), (0, 2));
    }

    #[test]
    fn other_forms_are_errors() {
        for text in ["", "[]", "{\"layers\": 1}", "{\"layers\": []} x", "{}"] {
            parse(text).unwrap_err();
        }
    }
}
