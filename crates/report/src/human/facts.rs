//! All facts of an image, by area.

use std::collections::BTreeMap;
use std::io;

use anstyle::AnsiColor;

use super::overview::{fact_text, value_text};
use super::page::{self, Page, cut, label};
use facts::Facts;
use facts::key::{self, Definition};
use image::history;
use model::ImageSummary;
use model::counted;
use model::{Fact, Site, Value};

/// Maximum width of the name column of a map: a longer name, which may be any text, does not shift the other values.
const LONGEST_NAME: usize = 30;

/// Writes the facts, without those that are absent unless `verbose`.
pub(super) fn write(facts: &Facts, image: &ImageSummary, verbose: bool, page: &mut Page<'_>) -> io::Result<()> {
    let mut folded: Vec<&Definition> = Vec::new();
    for keys in key::KEYS.chunk_by(|a, b| group(a) == group(b)) {
        // Without a described host there are no host facts to show.
        if keys.contains(&key::HOST_NAME.definition) && matches!(facts.get(key::HOST_NAME), Fact::Absent) {
            continue;
        }
        let is_shown = |key: &Definition| verbose || !matches!(facts.view(key), Fact::Absent);
        let (shown, absent): (Vec<_>, Vec<_>) = keys.iter().copied().partition(|key| is_shown(key));
        folded.extend(absent);
        if !shown.is_empty() {
            area(&shown, facts, image, verbose, page)?;
        }
    }
    absent(&folded, page)
}

/// Writes the facts of one area.
fn area(
    keys: &[&'static Definition],
    facts: &Facts,
    image: &ImageSummary,
    verbose: bool,
    page: &mut Page<'_>,
) -> io::Result<()> {
    page.blank()?;
    page.heading(keys.first().map_or("", |key| group(key)), page::bold(AnsiColor::Cyan), "")?;
    let names = keys.iter().map(|key| name(key));
    let column = 4 + names.clone().map(str::len).max().unwrap_or_default();
    for (index, (key, name)) in keys.iter().zip(names).enumerate() {
        let fact = facts.view(key);
        match repeated(fact, keys.get(..index).unwrap_or_default(), facts) {
            Some(before) => page.row(2, label(name), column, &format!("same as {before}"))?,
            None => one(name, fact, column, verbose, page)?,
        }
        if verbose {
            sites(fact.sites(), image, page)?;
        }
    }
    Ok(())
}

/// Writes the number of absent facts. Those of a probe are counted on their own, since the image does not lack them.
fn absent(keys: &[&Definition], page: &mut Page<'_>) -> io::Result<()> {
    let of_run = keys.iter().filter(|key| key.is_of_run()).count();
    let counts = [
        (keys.len() - of_run, counted(keys.len() - of_run, "fact is absent", "facts are absent")),
        (of_run, format!("{} only from a probe", counted(of_run, "fact comes", "facts come"))),
    ];
    let parts: Vec<_> = counts.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect();
    if parts.is_empty() {
        return Ok(());
    }
    page.blank()?;
    page.text(0, &format!("{} (--verbose lists them)", parts.join(", ")))
}

/// The area that a fact belongs to: the first part of its name.
fn group(key: &Definition) -> &'static str {
    key.name.split_once('.').map_or("", |(area, _)| area)
}

/// The name of an earlier fact with an equal map: several sources of one thing mostly agree.
fn repeated(fact: &Fact, before: &[&'static Definition], facts: &Facts) -> Option<&'static str> {
    let map = fact.value().filter(|value| matches!(value, Value::Map(entries) if !entries.is_empty()))?;
    before.iter().find(|key| facts.view(key).value() == Some(map)).map(|key| name(key))
}

/// A fact's name inside its area.
fn name(key: &Definition) -> &'static str {
    key.name.split_once('.').map_or(key.name, |(_, name)| name)
}

fn one(name: &str, fact: &Fact, column: usize, verbose: bool, page: &mut Page<'_>) -> io::Result<()> {
    match fact.value() {
        Some(Value::Map(groups)) if groups.values().any(|group| matches!(group, Value::Map(_))) => {
            page.row(2, label(name), column, "")?;
            groups.iter().try_for_each(|(name, group)| lists(name, group, page))
        }
        Some(Value::Map(entries)) if !entries.is_empty() => {
            page.row(2, label(name), column, "")?;
            map(entries, verbose, page)
        }
        Some(Value::List(values)) if values.iter().any(|value| matches!(value, Value::Map(_))) => {
            page.row(2, label(name), column, "")?;
            values.iter().try_for_each(|value| record(value, page))
        }
        Some(Value::List(values)) if values.len() > 1 && values.iter().any(stands_alone) => {
            page.row(2, label(name), column, "")?;
            values.iter().try_for_each(|value| page.text(4, &value_text(value)))
        }
        _ => page.row(2, label(name), column, &fact_text(fact)),
    }
}

/// Returns true if a text needs its own line: a path, or a text with spaces.
fn stands_alone(value: &Value) -> bool {
    matches!(value, Value::Text(text) if text.contains(['/', ' ']))
}

/// Writes one entry a line; long values are cut unless `verbose`.
fn map(entries: &BTreeMap<String, Value>, verbose: bool, page: &mut Page<'_>) -> io::Result<()> {
    let longest = entries.keys().map(String::len).max().unwrap_or_default();
    let column = 6 + longest.min(LONGEST_NAME);
    for (name, value) in entries {
        let text = value_text(value);
        let used = column.max(6 + name.chars().count());
        let text = if verbose { text } else { cut(&text, page.room(used).max(LONGEST_NAME)) };
        page.row(4, label(name), column, &text)?;
    }
    Ok(())
}

/// Writes a name, and its lists below it.
fn lists(name: &str, group: &Value, page: &mut Page<'_>) -> io::Result<()> {
    page.text(4, name)?;
    let Value::Map(lists) = group else { return page.text(6, &value_text(group)) };
    lists.iter().try_for_each(|(name, list)| page.row(6, label(name), 8 + name.chars().count(), &value_text(list)))
}

/// Writes a record's path or setting, and its other fields below it.
fn record(value: &Value, page: &mut Page<'_>) -> io::Result<()> {
    let Value::Map(entries) = value else { return page.text(4, &value_text(value)) };
    let setting = || {
        let value = entries.get("value").map(|value| format!("={value}")).unwrap_or_default();
        Some(format!("{}{value}", entries.get("name")?))
    };
    let path = entries.get("path").map(value_text);
    let in_head: &[&str] = if path.is_some() { &["path"] } else { &["name", "value"] };
    let head = path.or_else(setting);
    let rest: Vec<_> = entries
        .iter()
        .filter(|(name, _)| !in_head.contains(&name.as_str()))
        .map(|(name, value)| format!("{name} {}", value_text(value)))
        .collect();
    page.text(4, &head.unwrap_or_else(|| "(no path)".to_owned()))?;
    if rest.is_empty() { Ok(()) } else { page.text(6, &rest.join(", ")) }
}

fn sites(at: &[Site], image: &ImageSummary, page: &mut Page<'_>) -> io::Result<()> {
    at.iter().try_for_each(|place| {
        let layer = place.layer().map(|layer| format!(", {}", history::layer(layer, image)));
        let text = format!("{place}{}", layer.unwrap_or_default());
        page.row(4, label("at"), 8, &text)
    })
}
