//! Kubernetes manifests (pods, and resources that contain a pod template: Job, Deployment, PyTorchJob, MPIJob …) and
//! Compose files: one or more YAML or JSON documents.

use std::collections::BTreeMap;

use crate::document::{Document, DocumentError, YamlNode};

use super::Assignment;
use super::command::of_words;
use super::lines::is_name;

/// Returns true if a text has one of the top-level keys that every such document has.
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

/// Returns the variables of all containers, in document order.
pub(super) fn read(name: &str, text: &str) -> Result<Vec<Assignment>, DocumentError> {
    let mut found = ManifestVariables { lines: lines_of_names(text), line: 0, assignments: Vec::new() };
    let documents = Document { name, text }.parse_all::<YamlNode>();
    let invalid = |mut error: DocumentError| {
        error.what = format!("invalid YAML: {}", error.what);
        error
    };
    for document in documents.map_err(invalid)? {
        found.walk(&document);
    }
    Ok(found.assignments)
}

/// The lines on which each name stands as a word, from 1, ascending. Comments have none.
fn lines_of_names(text: &str) -> BTreeMap<&str, Vec<usize>> {
    let mut lines = BTreeMap::<_, Vec<_>>::new();
    for (line, number) in text.lines().zip(1..) {
        let content = line.split(" #").next().unwrap_or_default();
        if content.trim_start().starts_with('#') {
            continue;
        }
        let words = content.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        for word in words.filter(|word| is_name(word)) {
            lines.entry(word).or_default().push(number);
        }
    }
    lines
}

struct ManifestVariables<'a> {
    lines: BTreeMap<&'a str, Vec<usize>>,
    /// The line of the last variable: the values of a document come in the order of its lines.
    line: usize,
    assignments: Vec<Assignment>,
}

impl ManifestVariables<'_> {
    fn walk(&mut self, value: &YamlNode) {
        match value {
            YamlNode::List(values) => values.iter().for_each(|value| self.walk(value)),
            YamlNode::Map(entries) => {
                for (key, value) in entries {
                    match (&**key, value) {
                        ("env" | "environment", YamlNode::List(values)) => {
                            for value in values {
                                self.item(value);
                            }
                        }
                        ("environment", YamlNode::Map(values)) => self.pairs(values),
                        ("command" | "args", YamlNode::List(values)) => self.command(values),
                        ("command" | "entrypoint", YamlNode::Scalar(line)) => self.several(super::script(line)),
                        _ => self.walk(value),
                    }
                }
            }
            YamlNode::Null | YamlNode::Scalar(_) => {}
        }
    }

    /// Reads `{name: N, value: V}` of Kubernetes, or `N=V` or `N` of Compose.
    fn item(&mut self, value: &YamlNode) {
        match value {
            YamlNode::Map(_) => {
                if let Some(name) = value.get("name").and_then(YamlNode::as_str) {
                    // Only the cluster knows a value from a secret or a pod field. A missing value is empty.
                    let given = match (value.get("valueFrom"), value.get("value")) {
                        (Some(_), _) => None,
                        (None, given) => given.map_or(Some(""), YamlNode::as_str),
                    };
                    self.push(name, given.filter(|text| !text.contains("$(")).map(ToOwned::to_owned));
                }
            }
            YamlNode::Scalar(text) => match text.split_once('=') {
                Some((name, value)) => self.push(name, interpolated(value)),
                None => self.push(text, None),
            },
            _ => {}
        }
    }

    /// Reads `N: V` of Compose. Without a value, Compose takes it from its own environment.
    fn pairs(&mut self, entries: &[(String, YamlNode)]) {
        for (name, value) in entries {
            self.push(name, value.as_str().and_then(interpolated));
        }
    }

    fn command(&mut self, words: &[YamlNode]) {
        let words: Vec<_> = words.iter().filter_map(YamlNode::as_str).map(ToOwned::to_owned).collect();
        self.several(of_words(&words));
    }

    fn several(&mut self, assignments: Vec<Assignment>) {
        for given in assignments {
            self.push(&given.name, given.value);
        }
    }

    /// Records a variable, with the next line that contains its name.
    fn push(&mut self, name: &str, value: Option<String>) {
        if is_name(name) {
            let line = self.find(name);
            self.assignments.push(Assignment { name: name.to_owned(), value, line });
        }
    }

    /// Finds the line of a variable, since [`YamlNode`] has no positions. A variable repeated by an alias is not found.
    fn find(&mut self, name: &str) -> Option<usize> {
        let lines = self.lines.get(name)?;
        let line = lines.get(lines.partition_point(|line| *line < self.line)).copied()?;
        self.line = line;
        Some(line)
    }
}

/// Resolves Compose's `$$` to a dollar sign. Returns `None` for any other `$`, which refers to the environment of
/// Compose.
fn interpolated(value: &str) -> Option<String> {
    let plain = value.replace("$$", "\0");
    (!plain.contains('$')).then(|| plain.replace('\0', "$"))
}
