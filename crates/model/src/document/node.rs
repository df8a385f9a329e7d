//! YAML without a schema, such as a third-party manifest.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_yaml::Spanned;

/// A YAML value and the line on which it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlNode {
    /// The line, from 1: that of the anchor for an alias, and of the first line of text for a block.
    pub line: usize,
    /// The value.
    pub value: YamlValue,
}

/// A YAML value; maps keep document order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum YamlValue {
    /// No value.
    Null,
    /// A string, or a number or boolean as text.
    Scalar(String),
    /// A list.
    List(Vec<YamlNode>),
    /// A map.
    Map(Vec<(String, YamlNode)>),
}

impl YamlNode {
    /// Returns the text of a scalar.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            YamlValue::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the entries of a map; anything else has none.
    pub fn entries(&self) -> &[(String, Self)] {
        if let YamlValue::Map(entries) = &self.value { entries } else { &[] }
    }

    /// Returns the values of a list; anything else has none.
    pub fn list(&self) -> &[Self] {
        if let YamlValue::List(values) = &self.value { values } else { &[] }
    }

    /// Returns an entry of a map.
    pub fn get(&self, name: &str) -> Option<&Self> {
        self.entries().iter().find_map(|(key, value)| (key == name).then_some(value))
    }

    /// Returns the entry at the end of a path of maps.
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, name| node.get(name))
    }

    /// Returns the text of an entry of a map.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, defined, .. } = Spanned::deserialize(deserializer)?;
        Ok(Self { line: usize::try_from(defined.line()).unwrap_or_default(), value })
    }
}

impl<'de> Deserialize<'de> for YamlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = YamlValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Null)
    }

    fn visit_none<E>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<YamlValue, D::Error> {
        YamlValue::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<YamlValue, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = values.next_element()? {
            list.push(value);
        }
        Ok(YamlValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<YamlValue, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(YamlValue::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Document;
    use super::*;

    #[test]
    fn nodes_have_the_line_of_their_value() {
        let text = "a: &all\n  b:\n  c: |\n    x\nd: [1,\n  2]\ne: *all\n";
        let node: YamlNode = Document { name: "", text }.parse().unwrap();
        let line = |path: &[&str]| node.at(path).map(|node| node.line);
        assert_eq!([line(&["a", "b"]), line(&["a", "c"]), line(&["e", "c"])], [Some(2), Some(4), Some(4)]);
        assert_eq!(node.get("d").unwrap().list().iter().map(|node| node.line).collect::<Vec<_>>(), [5, 6]);
    }
}
