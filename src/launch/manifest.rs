//! Kubernetes manifests (pods, and everything that has a pod in it: Job, Deployment, PyTorchJob, MPIJob …) and Compose
//! files, one or more documents of YAML or JSON.

use serde::Deserialize as _;
use serde_yaml::{Mapping, Value};

use super::Assignment;
use super::command::of_words;
use super::lines::is_name;

/// Whether a text claims to be such a document: a top-level key that every one of them has.
pub(super) fn is_manifest(text: &str) -> bool {
    let key = |line: &str| {
        ["apiVersion:", "kind:", "services:", "\"apiVersion\":", "\"kind\":", "\"services\":"]
            .iter()
            .any(|key| line.starts_with(key))
    };
    text.lines().any(key)
        || (text.trim_start().starts_with('{')
            && text.lines().any(|line| key(line.trim_start_matches([' ', '{', '\t']))))
}

/// The variables of all containers, in the order of the text.
pub(super) fn read(text: &str) -> Result<Vec<Assignment>, String> {
    let mut found = Found { text, line: 0, assignments: Vec::new() };
    for document in serde_yaml::Deserializer::from_str(text) {
        let document = Value::deserialize(document).map_err(|error| format!("this is no valid YAML: {error}"))?;
        found.walk(&document);
    }
    Ok(found.assignments)
}

struct Found<'a> {
    text: &'a str,
    /// Lines that were looked at: what comes later in a document comes later in its text.
    line: usize,
    assignments: Vec<Assignment>,
}

impl Found<'_> {
    fn walk(&mut self, value: &Value) {
        match value {
            Value::Sequence(values) => values.iter().for_each(|value| self.walk(value)),
            Value::Mapping(entries) => {
                for (key, value) in entries {
                    match (key.as_str(), value) {
                        (Some("env" | "environment"), Value::Sequence(values)) => {
                            for value in values {
                                self.item(value);
                            }
                        }
                        (Some("environment"), Value::Mapping(values)) => self.pairs(values),
                        (Some("command" | "args"), Value::Sequence(values)) => self.command(values),
                        (Some("command" | "entrypoint"), Value::String(line)) => self.several(super::script(line)),
                        _ => self.walk(value),
                    }
                }
            }
            Value::Tagged(tagged) => self.walk(&tagged.value),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// `{name: N, value: V}` of Kubernetes, `N=V` or `N` of Compose.
    fn item(&mut self, value: &Value) {
        match value {
            Value::Mapping(entry) => {
                if let Some(name) = entry.get("name").and_then(Value::as_str) {
                    // A value from a secret or a field of the pod is known to the cluster alone; none at all is empty.
                    let given = if entry.contains_key("valueFrom") { None } else { entry.get("value") };
                    let empty = Value::String(String::new());
                    let given = given.or((!entry.contains_key("valueFrom")).then_some(&empty));
                    self.push(name, given.and_then(scalar).filter(|text| !text.contains("$(")));
                }
            }
            Value::String(text) => match text.split_once('=') {
                Some((name, value)) => self.push(name, interpolated(value)),
                None => self.push(text, None),
            },
            _ => {}
        }
    }

    /// `N: V` of Compose; without a value it is taken from whoever starts it.
    fn pairs(&mut self, entries: &Mapping) {
        for (name, value) in entries {
            if let Some(name) = name.as_str() {
                self.push(name, scalar(value).and_then(|text| interpolated(&text)));
            }
        }
    }

    fn command(&mut self, words: &[Value]) {
        let words: Vec<_> = words.iter().filter_map(scalar).collect();
        self.several(of_words(&words));
    }

    fn several(&mut self, assignments: Vec<Assignment>) {
        for given in assignments {
            self.push(&given.name, given.value);
        }
    }

    /// Writes down one, with the next line that has its name.
    fn push(&mut self, name: &str, value: Option<String>) {
        if is_name(name) {
            let line = self.find(name);
            self.assignments.push(Assignment { name: name.to_owned(), value, line });
        }
    }

    /// YAML keeps no lines. What an alias repeats is not found again, and has none.
    fn find(&mut self, name: &str) -> Option<usize> {
        let is_whole = |line: &str| {
            line.match_indices(name).any(|(at, _)| {
                let inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
                !line.get(..at).is_some_and(|before| before.ends_with(inside) || before.contains(" #"))
                    && !line.get(at + name.len()..).is_some_and(|behind| behind.starts_with(inside))
            })
        };
        let lines = self.text.lines().enumerate().skip(self.line.saturating_sub(1));
        let found = lines.filter(|(_, line)| !line.trim_start().starts_with('#')).find(|(_, line)| is_whole(line));
        let line = found.map(|(index, _)| index + 1);
        self.line = line.unwrap_or(self.line);
        line
    }
}

/// A scalar as the container gets it.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(value) => Some(value.to_string()),
        Value::String(value) => Some(value.clone()),
        _ => None,
    }
}

/// Compose's `$$` is a dollar; any other begins a variable of whoever starts it.
fn interpolated(value: &str) -> Option<String> {
    let plain = value.replace("$$", "\0");
    (!plain.contains('$')).then(|| plain.replace('\0', "$"))
}
