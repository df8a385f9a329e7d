//! A host record: a heading for each subject, a line for each item.

use std::io;

use anstyle::AnsiColor;

use super::page::{self, Page, label};
use facts::machine::Record;
use model::document::{Document, YamlNode, YamlValue};
use model::size;

/// Width of the column of names.
const COLUMN: usize = 20;
/// Limits whose values are bytes.
const IN_BYTES: &[&str] = &["memlock", "stack"];

pub(super) fn write(record: &Record, page: &mut Page<'_>) -> io::Result<()> {
    // The JSON text keeps the order of the types' fields.
    let text = serde_json::to_string(record)?;
    let subjects: YamlNode = Document { name: "record", text: &text }.parse().map_err(io::Error::other)?;
    let subjects = subjects.entries().iter().filter(|(_, node)| matches!(node.value, YamlValue::Map(_)));
    for (number, (name, items)) in subjects.enumerate() {
        if number > 0 {
            page.blank()?;
        }
        page.heading(&title(name), page::bold(AnsiColor::Cyan), "")?;
        items.entries().iter().try_for_each(|(name, value)| item(2, name, value, page))?;
    }
    Ok(())
}

/// Writes an item on one line, or with one more line for each member if it has several.
fn item(indent: usize, key: &str, value: &YamlNode, page: &mut Page<'_>) -> io::Result<()> {
    let column = indent + COLUMN;
    match &value.value {
        YamlValue::Map(members) if members.len() > 2 || members.iter().any(|(_, value)| is_deep(value)) => {
            page.row(indent, label(&title(key)), column, "")?;
            members.iter().try_for_each(|(name, value)| item(indent + 2, name, value, page))
        }
        YamlValue::List(values) if values.iter().any(is_deep) => {
            page.row(indent, label(&title(key)), column, "")?;
            values.iter().try_for_each(|value| page.text(indent + 2, &text(value, None)))
        }
        _ => {
            let (name, text) = line(key, value, None);
            page.row(indent, label(&name), column, &text)
        }
    }
}

/// The title of a key, and its value as text. A size is shown in a unit that fits it, and not in the one that ends its
/// key; `unit`, in bytes, is that of the parent's numbers.
fn line(key: &str, value: &YamlNode, unit: Option<u64>) -> (String, String) {
    let ends = [("_bytes", 1), ("_kib", 1024)];
    let sized = ends.iter().find_map(|(end, unit)| Some((key.strip_suffix(*end)?, Some(*unit))));
    let (name, unit) = sized.unwrap_or((key, if IN_BYTES.contains(&key) { Some(1) } else { unit }));
    (title(name), text(value, unit))
}

/// A key as a title. Names of kernel settings contain dots and stay as they are.
fn title(name: &str) -> String {
    if name.contains('.') { name.to_owned() } else { name.replace('_', " ") }
}

fn is_deep(value: &YamlNode) -> bool {
    matches!(value.value, YamlValue::Map(_)) && reason(value).is_none()
}

/// The reason why a value is unknown.
fn reason(value: &YamlNode) -> Option<&str> {
    match value.entries() {
        [(name, why)] if name == "unknown" => why.as_str(),
        _ => None,
    }
}

fn text(value: &YamlNode, unit: Option<u64>) -> String {
    match &value.value {
        YamlValue::Null => "absent".to_owned(),
        YamlValue::Scalar(text) => match text.as_str() {
            "true" => "yes".to_owned(),
            "false" => "no".to_owned(),
            "-1" => "unlimited".to_owned(),
            text => {
                let bytes = unit.and_then(|unit| text.parse::<u64>().ok()?.checked_mul(unit));
                bytes.map_or_else(|| text.to_owned(), size)
            }
        },
        YamlValue::List(values) if values.is_empty() => "none".to_owned(),
        YamlValue::List(values) => values.iter().map(|value| text(value, unit)).collect::<Vec<_>>().join(", "),
        YamlValue::Map(members) => match reason(value) {
            Some(why) => format!("unknown: {why}"),
            None if members.is_empty() => "none".to_owned(),
            None => members.iter().filter_map(|(key, value)| member(key, value, unit)).collect::<Vec<_>>().join(", "),
        },
    }
}

/// A member on its parent's line; `None` for an absent one, to keep the line short.
fn member(key: &str, value: &YamlNode, unit: Option<u64>) -> Option<String> {
    match (key, &value.value) {
        (_, YamlValue::Null) => None,
        ("name" | "address" | "file", YamlValue::Scalar(text)) => Some(text.clone()),
        (_, YamlValue::List(values)) if values.iter().any(is_deep) => {
            let all: Vec<_> = values.iter().map(|value| format!("({})", text(value, unit))).collect();
            Some(format!("{} {}", title(key), all.join(" ")))
        }
        _ => {
            let (name, text) = line(key, value, unit);
            Some(format!("{name} {text}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit_that_fits() {
        for (key, value, expected) in [
            ("total_kib", "24684084", "total: 23.5 GiB"),
            ("shm_bytes", "67108864", "shm: 64 MiB"),
            ("shm_bytes", "null", "shm: absent"),
            ("memlock", r#"{"soft": 8388608, "hard": -1}"#, "memlock: soft 8 MiB, hard unlimited"),
            ("nofile", r#"{"soft": 1024, "hard": 4096}"#, "nofile: soft 1024, hard 4096"),
            ("nodes", r#"[{"number": 0, "memory_kib": 1024}]"#, "nodes: number 0, memory 1 MiB"),
        ] {
            let (name, text) = line(key, &Document { name: "", text: value }.parse().unwrap(), None);
            assert_eq!(format!("{name}: {text}"), expected);
        }
    }
}
