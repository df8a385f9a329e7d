//! A variable that a launch file no longer sets, or to another value.

use std::ops::Range;

use regex::Regex;

use super::super::{LaunchFile, read};
use super::Source;

/// Returns the text of a launch file in which the variable that this line sets has another value, or none. `None` where the
/// line does not show that alone, or where another line uses the variable.
///
/// The result is read again: every other variable is what it was.
pub fn with_variable(file: &LaunchFile, line: usize, name: &str, value: Option<&str>) -> Option<String> {
    let source = Source::new(&file.text);
    let used = Regex::new(&format!(r"\$\{{?{name}\b")).ok()?;
    if value.is_none() && used.is_match(&file.text) {
        return None;
    }
    let (range, new) = match value {
        Some(value) => (written(&source, line, name)?, value.to_owned()),
        None => (own_lines(&source, line, name).or_else(|| option(&source, line, name))?, String::new()),
    };
    let changed = source.replaced(vec![(range, new)]);
    let all_others = |text: &str| Some(others(&read(&file.name, text).ok()?, name));
    (all_others(&changed)? == all_others(&file.text)?).then_some(changed)
}

/// What a file sets but this variable, and the images of its containers.
fn others(file: &LaunchFile, name: &str) -> Vec<(String, Option<String>)> {
    let of_containers = file.containers.iter().flat_map(|one| &one.settings);
    let settings = file.settings.iter().chain(&file.unpassed).chain(of_containers).filter(|set| set.name != name);
    let images = file.containers.iter().map(|one| (one.name.clone(), one.image.clone()));
    settings.map(|set| (set.name.clone(), set.value.clone())).chain(images).collect()
}

/// The lines that hold nothing but the assignment, if the rest is complete without them.
fn own_lines(source: &Source<'_>, line: usize, name: &str) -> Option<Range<usize>> {
    let text = source.line(line);
    let form = format!(
        r#"^\s*(?:(?:(?:export\s+)?{name}=|(?:-e|--env|-x)(?:\s+|=)["']?{name}(?:=|\s))(?:[^\s"';|&]|"[^"]*"|'[^']*')*\s*\\?|-\s*["']?{name}=.*|-\s*\{{\s*name:\s*["']?{name}["']?\s*,\s*value:[^{{}}]*\}}\s*|["']?{name}["']?:\s.*)$"#
    );
    // `{name: NAME, value: VALUE}` of Kubernetes, on two lines.
    let item = Regex::new(&format!(r#"^\s*-\s+name:\s*["']?{name}["']?\s*$"#)).ok()?;
    let is_pair = item.is_match(text) && source.line(line + 1).trim_start().starts_with("value:");
    let is_own = is_pair || Regex::new(&form).ok()?.is_match(text);
    let lines = complete(source, line..line + 1 + usize::from(is_pair)).filter(|_| is_own)?;
    Some(source.start(lines.start)..source.start(lines.end))
}

/// These lines, if the text is complete without them: they do not end a command that goes on in them, and are not all that a
/// condition or a loop does. The key of a list or a map goes with its only entry.
fn complete(source: &Source<'_>, lines: Range<usize>) -> Option<Range<usize>> {
    let before = source.line(lines.start.saturating_sub(1)).trim_end();
    let form = |line: &str| {
        let own = line.trim_start();
        (line.len() - own.len(), own.starts_with('-'))
    };
    let first = source.line(lines.start);
    let ends_command = before.ends_with('\\') && !first.ends_with('\\');
    let is_body = ["then", "do", "else", "{", "("].iter().any(|word| before.ends_with(word));
    let is_only = before.ends_with(':') && form(source.line(lines.end)) != form(first);
    (!ends_command && !is_body).then(|| lines.start - usize::from(is_only)..lines.end)
}

/// An option among others of its line.
fn option(source: &Source<'_>, line: usize, name: &str) -> Option<Range<usize>> {
    let form =
        format!(r#"\s(?:-e|--env|-x)(?:\s+|=)(?:{name}=[^\s"';|&]*|"{name}=[^"]*"|'{name}=[^']*'|{name})(\s|$)"#);
    let captures = Regex::new(&form).ok()?.captures(source.line(line))?;
    let start = source.start(line);
    Some(start + captures.get(0)?.start()..start + captures.get(1)?.start())
}

/// The place of a value: behind the name, or in the line `value:` below it.
fn written(source: &Source<'_>, line: usize, name: &str) -> Option<Range<usize>> {
    let behind = Regex::new(&format!(r#"\b{name}["']?(?:=|:\s+)["']?([^\s"';|&,}}\]]+)"#)).ok()?;
    let below = Regex::new(r#"^\s*value:\s*["']?([^\s"',}\]]+)"#).ok()?;
    let found = |line: usize, pattern: &Regex| {
        let place = pattern.captures(source.line(line))?.get(1)?;
        Some(source.start(line) + place.start()..source.start(line) + place.end())
    };
    found(line, &behind).or_else(|| found(line + 1, &below).filter(|_| source.line(line).contains("name:")))
}
