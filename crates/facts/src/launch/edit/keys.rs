//! Keys that a document gets: those of a service of Compose, of a container, or of a pod.

use std::ops::Range;

use model::document::{Document, YamlNode, YamlValue};
use serde_json::{Map, Value, json};

use super::super::given::Starter;
use super::super::{LaunchContainer, LaunchFile};
use super::Source;

/// Returns the text of a document in which a container and its pod have these keys too; `None` where that takes more than
/// added lines and replaced words. In the keys, `null` stands for one that must be absent, and `{without: ITEM}` for a list
/// without the items that have what this one has. Any other map may be a list of `NAME=VALUE` in the document, as in Compose.
///
/// The result is read again: it says what the document said, and the keys.
pub fn with_keys(
    file: &LaunchFile,
    container: &LaunchContainer,
    own: &Map<String, Value>,
    pod: &Map<String, Value>,
) -> Option<String> {
    let documents: Vec<YamlNode> = parsed(&file.text)?;
    let mut paths = Vec::new();
    for (index, document) in documents.iter().enumerate() {
        find(document, container, &mut vec![index.to_string()], &mut paths);
    }
    let [path] = paths.as_slice() else { return None };
    let text = merged(&file.text, path, own)?;
    if pod.is_empty() { Some(text) } else { merged(&text, pod_of(path)?, pod) }
}

/// The path of the map with the pod's keys: above the list of containers, or above Argo's only container. A set of
/// containers of Argo is below it.
fn pod_of(path: &[String]) -> Option<&[String]> {
    let (container, above) = path.split_last()?;
    let above = if is_only(container) { above } else { above.split_last()?.1 };
    Some(above.strip_suffix(&["containerSet".to_owned()]).unwrap_or(above))
}

/// True for a key of Argo whose value is the only container of a pod.
fn is_only(key: &str) -> bool {
    matches!(key, "container" | "script")
}

pub(super) fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> Option<Vec<T>> {
    Document { name: "", text }.parse_all().ok()
}

/// Finds the paths of the maps that are a container: the service of its name, or an item of `containers` or the only container
/// of a template in its line.
fn find(node: &YamlNode, container: &LaunchContainer, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let is_compose = container.given.starter == Starter::Compose;
    let is_one = match path.as_slice() {
        [_, services, name] => is_compose && services == "services" && *name == container.name,
        [.., list, key] => !is_compose && (list == "containers" || is_only(key)) && node.line == container.line,
        _ => false,
    };
    if is_one {
        found.push(path.clone());
        return;
    }
    let items = node.list().iter().enumerate().map(|(index, item)| (index.to_string(), item));
    for (key, value) in items.chain(node.entries().iter().map(|(key, value)| (key.clone(), value))) {
        path.push(key);
        find(value, container, path, found);
        path.pop();
    }
}

/// The text in which the map at a path has the keys of another.
fn merged(text: &str, path: &[String], wanted: &Map<String, Value>) -> Option<String> {
    let escaped = |step: &String| step.replace('~', "~0").replace('/', "~1");
    let pointer = path.iter().fold(String::new(), |pointer, step| pointer + "/" + &escaped(step));
    let now = Value::Array(parsed(text)?);
    let mut expected = now.clone();
    put(expected.pointer_mut(&pointer)?, &Value::Object(wanted.clone()))?;
    let documents: Vec<YamlNode> = parsed(text)?;
    let (index, steps) = path.split_first()?;
    let step = |node, step: &String| match node {
        &YamlNode { value: YamlValue::List(ref items), .. } => items.get(step.parse::<usize>().ok()?),
        node => YamlNode::get(node, step),
    };
    let node = steps.iter().try_fold(documents.get(index.parse::<usize>().ok()?)?, step)?;
    let attempt = |is_first: bool| {
        let mut merge = Merge { source: Source::new(text), is_first, edits: Vec::new() };
        merge.map("", node, now.pointer(&pointer)?, wanted)?;
        let changed = merge.source.replaced(merge.edits);
        (Value::Array(parsed(&changed)?) == expected).then_some(changed)
    };
    attempt(false).or_else(|| attempt(true))
}

/// Gives a value what another has; `None` where they contradict each other.
fn put(target: &mut Value, wanted: &Value) -> Option<()> {
    match (target, wanted) {
        (Value::Object(target), Value::Object(wanted)) => {
            for (key, wanted) in wanted {
                match target.get_mut(key) {
                    Some(_) if wanted.is_null() => return None,
                    Some(value) => put(value, wanted)?,
                    None if wanted.is_null() || wanted.get("without").is_some() => {}
                    None => _ = target.insert(key.clone(), wanted.clone()),
                }
            }
        }
        (Value::Array(target), Value::Array(wanted)) => {
            for item in wanted.iter().filter(|item| !target.contains(item)).cloned().collect::<Vec<_>>() {
                let is_same = |other: &Value, key: &str| item.get(key).is_some_and(|name| other.get(key) == Some(name));
                if target.iter().any(|other| is_same(other, "name") || is_same(other, "mountPath")) {
                    return None;
                }
                target.push(item);
            }
        }
        (Value::Array(target), Value::Object(wanted)) => match wanted.get("without") {
            Some(unwanted) => target.retain(|item| !has(item, unwanted)),
            None if !target.iter().all(Value::is_string) => return None,
            None => {
                for (name, assignment) in assignments(wanted) {
                    match target.iter_mut().find(|item| sets(item.as_str(), name)) {
                        Some(item) => *item = assignment,
                        None => target.push(assignment),
                    }
                }
            }
        },
        (target, wanted) if is_single(target) && is_single(wanted) => target.clone_from(wanted),
        _ => return None,
    }
    Some(())
}

/// The items that a list of `NAME=VALUE` has for a map, with their names.
fn assignments(map: &Map<String, Value>) -> impl Iterator<Item = (&String, Value)> {
    map.iter().map(|(name, value)| (name, Value::String(format!("{name}={}", flow(value)))))
}

/// True if the item of a list of `NAME=VALUE`, or of `NAME`, is of this name.
fn sets(item: Option<&str>, name: &str) -> bool {
    item.is_some_and(|item| item.split('=').next() == Some(name))
}

/// True if a value has what another has.
fn has(value: &Value, part: &Value) -> bool {
    match part {
        Value::Object(part) => part.iter().all(|(key, part)| value.get(key).is_some_and(|value| has(value, part))),
        part => value == part,
    }
}

const fn is_single(value: &Value) -> bool {
    matches!(value, Value::Bool(_) | Value::Number(_) | Value::String(_))
}

/// The edits of a text that give a map keys.
struct Merge<'t> {
    source: Source<'t>,
    /// True to begin a map with new keys. Otherwise they follow its first key with a short value.
    is_first: bool,
    edits: Vec<(Range<usize>, String)>,
}

impl Merge<'_> {
    /// Edits a map, which is the value of this key, and has these values now.
    fn map(&mut self, own: &str, node: &YamlNode, now: &Value, wanted: &Map<String, Value>) -> Option<()> {
        for (key, wanted) in wanted.iter().filter(|(_, wanted)| !wanted.is_null()) {
            match (node.get(key).zip(now.get(key)), wanted) {
                (Some((list, Value::Array(now))), Value::Object(wanted)) => match wanted.get("without") {
                    Some(unwanted) => {
                        let gone = list.list().iter().zip(now).filter(|(_, item)| has(item, unwanted));
                        gone.for_each(|(item, _)| self.remove(item));
                    }
                    None => assignments(wanted).try_for_each(|(name, assignment)| {
                        match list.list().iter().find(|item| sets(item.as_str(), name)) {
                            Some(item) => {
                                self.replace(item, self.source.start(item.line), assignment.as_str()?.to_owned())
                            }
                            None => self.item(key, list, &assignment),
                        }
                    })?,
                },
                (None, _) if wanted.get("without").is_some() => {}
                (None, _) => self.insert(own, node, key, wanted)?,
                (Some((value, now)), Value::Object(wanted)) => self.map(key, value, now, wanted)?,
                (Some((list, Value::Array(now))), Value::Array(wanted)) => {
                    wanted.iter().filter(|item| !now.contains(item)).try_for_each(|item| self.item(key, list, item))?;
                }
                (Some((_, now)), _) if now == wanted => {}
                (Some((value, _)), _) => self.word(key, value, wanted)?,
            }
        }
        Some(())
    }

    /// Adds a key to a map.
    fn insert(&mut self, own: &str, node: &YamlNode, key: &str, wanted: &Value) -> Option<()> {
        let Some(indent) = self.indent(node) else {
            let end = if node.entries().is_empty() { "" } else { ", " };
            let at = self.bracket(own, node.line, '{')?;
            self.edits.push((at..at, format!("{key}: {}{end}", flow(wanted))));
            return Some(());
        };
        let is_short = |(key, value): &&(String, YamlNode)| {
            let line = self.source.line(value.line);
            value.as_str().is_some() && line.get(indent..).is_some_and(|rest| begins(rest, key))
        };
        let lines = block(&json!({ key: wanted }), indent, self.source.newline());
        let above = node.entries().iter().find(is_short).filter(|_| !self.is_first);
        let (at, lines) = match above {
            Some((_, value)) => (self.source.start(value.line + 1), lines),
            None => (self.source.start(node.line) + indent, lines.trim_start().to_owned() + &" ".repeat(indent)),
        };
        self.edits.push((at..at, lines));
        Some(())
    }

    /// Adds an item to a list, behind its last one.
    fn item(&mut self, key: &str, list: &YamlNode, item: &Value) -> Option<()> {
        let line = self.source.line(list.line);
        let own = line.trim_start();
        let (at, text) = if own.starts_with("- ") {
            let lines = block(&json!([item]), line.len() - own.len(), self.source.newline());
            (self.source.start(last_line(list) + 1), lines)
        } else {
            let open = self.bracket(key, list.line, '[')?;
            let separator = if list.list().is_empty() { "" } else { ", " };
            (open + self.source.text.get(open..)?.find(']')?, format!("{separator}{}", flow(item)))
        };
        self.edits.push((at..at, text));
        Some(())
    }

    /// Removes an item of a list that has lines of its own.
    fn remove(&mut self, item: &YamlNode) {
        let lines = self.source.start(item.line)..self.source.start(last_line(item) + 1);
        self.edits.push((lines, String::new()));
    }

    /// Replaces the value of a key by a word.
    fn word(&mut self, key: &str, node: &YamlNode, wanted: &Value) -> Option<()> {
        let at = self.source.line(node.line).find(&format!("{key}:"))? + key.len() + 1;
        self.replace(node, self.source.start(node.line) + at, flow(wanted))
    }

    /// Replaces a single value, in quotes or not, at its first occurrence in the line behind this offset.
    fn replace(&mut self, node: &YamlNode, behind: usize, text: String) -> Option<()> {
        let old = node.as_str()?;
        let start = behind + self.source.text.get(behind..self.source.start(node.line + 1))?.find(old)?;
        self.edits.push((start..start + old.len(), text));
        Some(())
    }

    /// The column of a map's keys, if each has a line of its own.
    fn indent(&self, node: &YamlNode) -> Option<usize> {
        let line = self.source.line(node.line);
        let rest = line.trim_start_matches([' ', '-']);
        let is_key = rest.starts_with("<<:") || node.entries().iter().any(|(key, _)| begins(rest, key));
        is_key.then(|| line.len() - rest.len())
    }

    /// The offset behind the bracket that begins the value of a key.
    fn bracket(&self, key: &str, line: usize, bracket: char) -> Option<usize> {
        let text = self.source.line(line);
        let key = text.find(&format!("{key}:")).filter(|_| !key.is_empty())?;
        Some(self.source.start(line) + key + text.get(key..)?.find(bracket)? + 1)
    }
}

/// True if a text begins with this key, plain or in quotes.
fn begins(text: &str, key: &str) -> bool {
    let rest = text.trim_start_matches(['"', '\'']).strip_prefix(key);
    rest.is_some_and(|rest| rest.trim_start_matches(['"', '\'']).starts_with(':'))
}

/// The last line of a node in which a value begins.
fn last_line(node: &YamlNode) -> usize {
    let inner = node.list().iter().chain(node.entries().iter().map(|(_, value)| value));
    inner.map(last_line).fold(node.line, usize::max)
}

/// The entries of a map, a name before the others.
fn entries(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by_key(|(key, _)| *key != "name");
    entries
}

/// A map or a list as lines, indented.
fn block(value: &Value, indent: usize, newline: &str) -> String {
    let blanks = " ".repeat(indent);
    let lines = |value: &Value, more: usize| block(value, indent + more, newline);
    match value {
        Value::Object(map) => {
            let entry = |(key, value): (&String, &Value)| match value {
                Value::Object(_) => format!("{blanks}{key}:{newline}{}", lines(value, 2)),
                Value::Array(_) => format!("{blanks}{key}:{newline}{}", lines(value, 0)),
                value => format!("{blanks}{key}: {}{newline}", flow(value)),
            };
            entries(map).into_iter().map(entry).collect::<Vec<_>>().concat()
        }
        Value::Array(items) => {
            let item = |item: &Value| format!("{blanks}- {}", lines(item, 2).trim_start());
            items.iter().map(item).collect::<Vec<_>>().concat()
        }
        value => format!("{blanks}{}{newline}", flow(value)),
    }
}

/// A value within a line.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().all(|c| c.is_ascii_alphanumeric() || "_/.-=".contains(c)) => text.clone(),
        Value::Object(map) => {
            let entries = entries(map).into_iter().map(|(key, value)| format!("{key}: {}", flow(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        value => value.to_string(),
    }
}
