//! YAML and JSON documents that start jobs: Kubernetes resources with a pod template (Job, Deployment, PyTorchJob, MPIJob …),
//! Compose files, and those of SkyPilot, Ray, dstack, Determined or Helm, whose keys for variables and scripts are alike.

use std::collections::{BTreeMap, VecDeque};

use model::document::{Document, DocumentError, YamlNode};
use model::size;

use super::command::{job_script, of_words};
use super::lines::is_name;
use super::{Assignment, Launch, workload};

/// Keys whose values are variables: a list of `{name: NAME, value: VALUE}` or `NAME=VALUE`, or a map.
const VARIABLES: &[&str] = &["env", "environment", "envs", "env_vars", "envVars", "environment_variables"];
/// Keys of the words of one command line, in their order in it.
const WORDS: &[&str] = &["entrypoint", "command", "args"];
/// Keys whose values are scripts: a text, or a list of them.
const SCRIPTS: &[&str] = &["run", "setup", "commands"];

/// Most bytes of the variables that containers take from ConfigMaps, each as often as it is taken. Linux gives a process at
/// most 6 MiB of arguments and environment.
const MOST_TAKEN: usize = 16 << 20;

/// Most documents in texts. Each is parsed with a budget of its own for what its anchors repeat.
const MOST_TEXTS: usize = 20;

/// What an assignment takes beside its texts.
const ASSIGNMENT: usize = size_of::<Assignment>();

/// Returns true if a file is a document: by its name, or by one of the top-level keys of Kubernetes and Compose.
pub(super) fn is_manifest(name: &str, text: &str) -> bool {
    let key = |line: &str| {
        ["apiVersion:", "kind:", "services:", "\"apiVersion\":", "\"kind\":", "\"services\":"]
            .iter()
            .any(|key| line.starts_with(key))
    };
    [".yaml", ".yml", ".json"].iter().any(|ending| name.ends_with(ending))
        || text.lines().any(key)
        || (text.trim_start().starts_with('{')
            && text.lines().any(|line| key(line.trim_start_matches([' ', '{', '\t']))))
}

/// Returns the variables of all containers, in document order.
pub(super) fn read(name: &str, text: &str) -> Result<Launch, DocumentError> {
    let mut found = ManifestVariables { lines: lines_of_names(text), ..ManifestVariables::default() };
    let mut containers = Vec::new();
    for document in documents(name, text)? {
        found.walk(&document);
        containers.extend(workload::containers(&document));
    }
    let launch = found.resolve().map_err(|why| Document { name, text }.mistake_of("kind", why))?;
    Ok(Launch { containers, ..launch })
}

fn documents(name: &str, text: &str) -> Result<Vec<YamlNode>, DocumentError> {
    Document { name, text }.parse_all::<YamlNode>().map_err(|mut error| {
        error.what = format!("invalid YAML: {}", error.what);
        error
    })
}

/// The lines on which each name stands as a word, from 1, ascending. Comments have none.
fn lines_of_names(text: &str) -> BTreeMap<&str, VecDeque<usize>> {
    let mut lines = BTreeMap::<_, VecDeque<_>>::new();
    for (line, number) in text.lines().zip(1..) {
        let content = line.split(" #").next().unwrap_or_default();
        if content.trim_start().starts_with('#') {
            continue;
        }
        let words = content.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        for word in words.filter(|word| is_name(word)) {
            lines.entry(word).or_default().push_back(number);
        }
    }
    lines
}

/// What a container is given.
enum ContainerVariable {
    Assigned(Assignment),
    /// One key of a Kubernetes ConfigMap, as the value of a variable.
    OfKey {
        variable: Assignment,
        map: String,
        key: String,
    },
    /// All keys of a ConfigMap, each with this prefix.
    OfMap {
        map: String,
        prefix: String,
    },
    /// All keys of a Secret.
    OfSecret(String),
}

#[derive(Default)]
struct ManifestVariables<'a> {
    lines: BTreeMap<&'a str, VecDeque<usize>>,
    /// The line of the last variable: the values of a document come in the order of its lines.
    line: usize,
    found: Vec<ContainerVariable>,
    /// The data of each ConfigMap in the file.
    config_maps: BTreeMap<String, Vec<Assignment>>,
    notes: Vec<String>,
    /// How many documents in texts were read.
    texts: usize,
    /// Why a script or a text is not read.
    refusal: Option<String>,
}

impl ManifestVariables<'_> {
    fn walk(&mut self, value: &YamlNode) {
        match value {
            YamlNode::List(values) => values.iter().for_each(|value| self.walk(value)),
            YamlNode::Map(_) if value.get("kind").and_then(YamlNode::as_str) == Some("ConfigMap") => {
                self.config_map(value);
            }
            YamlNode::Map(entries) => self.container(value, entries),
            YamlNode::Null | YamlNode::Scalar(_) => {}
        }
    }

    /// Reads a map, which may be a container. What its command line sets takes precedence.
    fn container(&mut self, container: &YamlNode, entries: &[(String, YamlNode)]) {
        // What `env` sets takes precedence over `envFrom`.
        container.get("envFrom").into_iter().for_each(|sources| self.sources(sources));
        let is_list = |value: &YamlNode| matches!(value, YamlNode::List(_));
        let last = entries.iter().rposition(|(key, value)| WORDS.contains(&&**key) && is_list(value));
        let mut begin = 0;
        let mut end = 0;
        for (index, (key, value)) in entries.iter().enumerate() {
            self.entry(key, value);
            if Some(index) == last {
                begin = self.found.len();
                self.command(container);
                end = self.found.len();
            }
        }
        if let Some(rest) = self.found.get_mut(begin..) {
            rest.rotate_left(end - begin);
        }
    }

    fn entry(&mut self, key: &str, value: &YamlNode) {
        match value {
            YamlNode::List(values) if VARIABLES.contains(&key) => values.iter().for_each(|value| self.item(value)),
            YamlNode::Map(values) if VARIABLES.contains(&key) && values.iter().all(|(_, value)| is_single(value)) => {
                self.pairs(values);
            }
            YamlNode::Scalar(script) if SCRIPTS.contains(&key) || WORDS.contains(&key) => {
                self.script(script);
            }
            YamlNode::List(scripts) if SCRIPTS.contains(&key) => {
                scripts.iter().filter_map(YamlNode::as_str).for_each(|script| self.script(script));
            }
            // A document in a text, of Ray's resources in Kubernetes.
            YamlNode::Scalar(text) if key == "runtimeEnvYAML" => {
                self.texts += 1;
                if self.texts > MOST_TEXTS {
                    let why = format!("of the values of runtimeEnvYAML, at most {MOST_TEXTS} are read");
                    self.refusal.get_or_insert(why);
                    return;
                }
                let documents = documents(key, text).unwrap_or_else(|error| {
                    self.notes.push(format!("the variables of runtimeEnvYAML are unknown: {}", error.what));
                    Vec::new()
                });
                let variables = documents.iter().filter_map(|document| document.get("env_vars"));
                variables.for_each(|variables| self.entry("env_vars", variables));
            }
            _ => self.walk(value),
        }
    }

    /// Reads the variables of a ConfigMap, for the containers that refer to it.
    fn config_map(&mut self, resource: &YamlNode) {
        let name = resource.get("metadata").and_then(|metadata| metadata.get("name")).and_then(YamlNode::as_str);
        let (Some(name), Some(YamlNode::Map(data))) = (name, resource.get("data")) else { return };
        let data = data.iter().filter_map(|(key, value)| {
            let value = value.as_str()?.to_owned();
            let line = self.find(key);
            Some(Assignment { name: key.clone(), value: Some(value), line })
        });
        let data = data.collect();
        self.config_maps.insert(name.to_owned(), data);
    }

    /// Reads `envFrom` of Kubernetes.
    fn sources(&mut self, sources: &YamlNode) {
        let YamlNode::List(sources) = sources else { return };
        let text = |node: &YamlNode, key: &str| node.get(key).and_then(YamlNode::as_str).map(ToOwned::to_owned);
        for source in sources {
            let prefix = text(source, "prefix").unwrap_or_default();
            if let Some(map) = source.get("configMapRef").and_then(|reference| text(reference, "name")) {
                self.found.push(ContainerVariable::OfMap { map, prefix });
            }
            if let Some(secret) = source.get("secretRef").and_then(|reference| text(reference, "name")) {
                self.found.push(ContainerVariable::OfSecret(secret));
            }
        }
    }

    /// Reads `{name: N, value: V}` of Kubernetes, or `N=V` or `N` of Compose.
    fn item(&mut self, value: &YamlNode) {
        match value {
            YamlNode::Map(_) => {
                let Some(name) = value.get("name").and_then(YamlNode::as_str) else { return };
                // Only the cluster knows a value from a secret or a pod field. A missing value is empty.
                let given = match (value.get("valueFrom"), value.get("value")) {
                    (Some(source), _) => return self.taken(name, source),
                    (None, given) => given.map_or(Some(""), YamlNode::as_str),
                };
                self.push(name, given.filter(|text| !text.contains("$(")).map(ToOwned::to_owned));
            }
            YamlNode::Scalar(text) => match text.split_once('=') {
                Some((name, value)) => self.push(name, interpolated(value)),
                None => self.push(text, None),
            },
            _ => {}
        }
    }

    /// Reads `valueFrom` of Kubernetes.
    fn taken(&mut self, name: &str, source: &YamlNode) {
        self.push(name, None);
        let key = source.get("configMapKeyRef");
        let text = |name: &str| key.and_then(|key| key.get(name)).and_then(YamlNode::as_str).map(ToOwned::to_owned);
        if let (Some(map), Some(key)) = (text("name"), text("key"))
            && let Some(ContainerVariable::Assigned(variable)) = self.found.pop_if(|_| is_name(name))
        {
            self.found.push(ContainerVariable::OfKey { variable, map, key });
        }
    }

    /// Reads `N: V` of Compose and others. Without a value, Compose takes it from its own environment.
    fn pairs(&mut self, entries: &[(String, YamlNode)]) {
        for (name, value) in entries {
            self.push(name, value.as_str().and_then(interpolated));
        }
    }

    /// Reads the words of the command line that a container's keys make up together.
    fn command(&mut self, container: &YamlNode) {
        let lists = WORDS.iter().filter_map(|key| match container.get(key) {
            Some(YamlNode::List(words)) => Some(words),
            _ => None,
        });
        let words: Vec<_> = lists.flatten().filter_map(YamlNode::as_str).map(ToOwned::to_owned).collect();
        self.several(of_words(&words));
    }

    fn script(&mut self, script: &str) {
        match job_script(script) {
            Ok(launch) => self.several(launch),
            Err(why) => _ = self.refusal.get_or_insert(why),
        }
    }

    /// Records what a script or a command line sets. Their lines are not those of the document.
    fn several(&mut self, launch: Launch) {
        for given in launch.assignments {
            self.push(&given.name, given.value);
        }
        self.notes.extend(launch.notes);
    }

    /// Records a variable, with the next line that contains its name.
    fn push(&mut self, name: &str, value: Option<String>) {
        if is_name(name) {
            let line = self.find(name);
            self.found.push(ContainerVariable::Assigned(Assignment { name: name.to_owned(), value, line }));
        }
    }

    /// Finds the line of a variable, since [`YamlNode`] has no positions. A variable repeated by an alias is not found.
    fn find(&mut self, name: &str) -> Option<usize> {
        let lines = self.lines.get_mut(name)?;
        lines.drain(..lines.partition_point(|line| *line < self.line));
        // Another assignment of the same variable is on another line, if there is one.
        let line = if lines.len() > 1 { lines.pop_front()? } else { lines.front().copied()? };
        self.line = line;
        Some(line)
    }

    /// Puts the values of ConfigMaps in their places. Each of many containers can take all of a large one.
    fn resolve(self) -> Result<Launch, String> {
        if let Some(why) = self.refusal {
            return Err(why);
        }
        let mut left = MOST_TAKEN;
        let mut pay = |prefix: &str, given: &Assignment| {
            let bytes = ASSIGNMENT + prefix.len() + given.name.len() + given.value.as_ref().map_or(0, String::len);
            left = left.checked_sub(bytes).ok_or_else(|| {
                format!("its containers take more than {} of variables from ConfigMaps", size(MOST_TAKEN as u64))
            })?;
            Ok::<_, String>(())
        };
        let of_map = |(map, data)| std::iter::repeat(map).zip(data);
        let all = self.config_maps.iter().map(|(map, data)| (map.as_str(), data.iter())).flat_map(of_map);
        // Of a repeated key, the first counts.
        let mut keys = BTreeMap::new();
        all.for_each(|(map, given)| _ = keys.entry((map, given.name.as_str())).or_insert(given));
        let mut launch = Launch { notes: self.notes, ..Launch::default() };
        let absent = |kind: &str, name: &str| {
            format!("the variables of the {kind} '{name}' are unknown: the file does not hold it")
        };
        for variable in self.found {
            match variable {
                ContainerVariable::Assigned(given) => launch.assignments.push(given),
                ContainerVariable::OfKey { variable, map, key } => {
                    let given = keys.get(&(&*map, &*key)).copied();
                    given.map_or(Ok(()), |given| pay("", given))?;
                    let value = given.and_then(|given| given.value.clone());
                    launch.assignments.push(Assignment { value, ..variable });
                }
                ContainerVariable::OfMap { map, prefix } => match self.config_maps.get(&map) {
                    Some(data) => {
                        for given in data {
                            pay(&prefix, given)?;
                            let name = format!("{prefix}{}", given.name);
                            launch.assignments.push(Assignment { name, ..given.clone() });
                        }
                    }
                    None => launch.notes.push(absent("ConfigMap", &map)),
                },
                ContainerVariable::OfSecret(name) => launch.notes.push(absent("Secret", &name)),
            }
        }
        Ok(launch)
    }
}

/// Returns true for what may be the value of a variable.
const fn is_single(value: &YamlNode) -> bool {
    matches!(value, YamlNode::Null | YamlNode::Scalar(_))
}

/// Resolves Compose's `$$` to a dollar sign. Returns `None` for any other `$`, which refers to the environment of
/// Compose.
fn interpolated(value: &str) -> Option<String> {
    let plain = value.replace("$$", "\0");
    (!plain.contains('$')).then(|| plain.replace('\0', "$"))
}
