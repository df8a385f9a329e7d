//! A host record: a heading for each subject, a line for each item.

use std::io;

use anstyle::AnsiColor;

use super::page::{self, Page, label};
use crate::document::YamlNode;
use crate::host::Record;

/// Width of the column of names.
const COLUMN: usize = 20;

pub(super) fn write(record: &Record, page: &mut Page<'_>) -> io::Result<()> {
    // The JSON text keeps the order of the types' fields.
    let subjects: YamlNode = serde_json::from_str(&serde_json::to_string(record)?)?;
    let subjects = members(&subjects).iter().filter(|(_, value)| matches!(value, YamlNode::Map(_)));
    for (number, (name, items)) in subjects.enumerate() {
        if number > 0 {
            page.blank()?;
        }
        page.heading(&title(name), page::bold(AnsiColor::Cyan), "")?;
        members(items).iter().try_for_each(|(name, value)| item(2, &title(name), value, page))?;
    }
    Ok(())
}

/// Writes an item on one line, or with one more line for each member if it has several.
fn item(indent: usize, name: &str, value: &YamlNode, page: &mut Page<'_>) -> io::Result<()> {
    let column = indent + COLUMN;
    match value {
        YamlNode::Map(members) if members.len() > 2 || members.iter().any(|(_, value)| is_deep(value)) => {
            page.row(indent, label(name), column, "")?;
            members.iter().try_for_each(|(name, value)| item(indent + 2, &title(name), value, page))
        }
        YamlNode::List(values) if values.iter().any(is_deep) => {
            page.row(indent, label(name), column, "")?;
            values.iter().try_for_each(|value| page.text(indent + 2, &text(value)))
        }
        value => page.row(indent, label(name), column, &text(value)),
    }
}

/// A key as a title. Names of kernel settings contain dots and stay as they are.
fn title(name: &str) -> String {
    if name.contains('.') { name.to_owned() } else { name.replace('_', " ") }
}

fn members(value: &YamlNode) -> &[(String, YamlNode)] {
    if let YamlNode::Map(members) = value { members } else { &[] }
}

fn is_deep(value: &YamlNode) -> bool {
    matches!(value, YamlNode::Map(_)) && reason(value).is_none()
}

/// The reason why a value is unknown.
fn reason(value: &YamlNode) -> Option<&str> {
    match members(value) {
        [(name, why)] if name == "unknown" => why.as_str(),
        _ => None,
    }
}

fn text(value: &YamlNode) -> String {
    match value {
        YamlNode::Null => "absent".to_owned(),
        YamlNode::Scalar(text) => match text.as_str() {
            "true" => "yes".to_owned(),
            "false" => "no".to_owned(),
            "-1" => "unlimited".to_owned(),
            text => text.to_owned(),
        },
        YamlNode::List(values) if values.is_empty() => "none".to_owned(),
        YamlNode::List(values) => values.iter().map(text).collect::<Vec<_>>().join(", "),
        YamlNode::Map(members) => match reason(value) {
            Some(why) => format!("unknown: {why}"),
            None if members.is_empty() => "none".to_owned(),
            None => members.iter().filter_map(|(name, value)| member(name, value)).collect::<Vec<_>>().join(", "),
        },
    }
}

/// A member on its parent's line; `None` for an absent one, to keep the line short.
fn member(name: &str, value: &YamlNode) -> Option<String> {
    match (name, value) {
        (_, YamlNode::Null) => None,
        ("name" | "address" | "file", YamlNode::Scalar(text)) => Some(text.clone()),
        (_, YamlNode::List(values)) if values.iter().any(is_deep) => {
            let all: Vec<_> = values.iter().map(|value| format!("({})", text(value))).collect();
            Some(format!("{} {}", title(name), all.join(" ")))
        }
        (_, value) => Some(format!("{} {}", title(name), text(value))),
    }
}
