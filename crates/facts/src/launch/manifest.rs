//! YAML and JSON documents that start jobs: Kubernetes resources with a pod template (Job, Deployment, PyTorchJob, MPIJob …),
//! Compose files, and those of SkyPilot, Ray, dstack, Determined or Helm, whose keys for variables and scripts are alike.

use std::collections::{BTreeMap, BTreeSet};

use model::document::{Document, DocumentError, YamlNode, YamlValue};
use model::{is_among, size};

use super::command::{job_script, of_words};
use super::given::is_computed;
use super::kubernetes::PATCH;
use super::lines::is_name;
use super::{Assignment, Launch, LaunchContainer, LaunchFile, settings, workload};

/// Endings of keys whose values are variables: a list of `{name: NAME, value: VALUE}` or `NAME=VALUE`, or a map. Others are
/// `extraEnv` and `task_env`.
const VARIABLES: &[&str] = &["env", "environment", "envs", "env_vars", "envvars", "environment_variables"];
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

/// Returns the containers, with their variables, and the variables that belong to none of them.
pub(super) fn read(name: &str, text: &str) -> Result<LaunchFile, DocumentError> {
    let documents = documents(name, text)?;
    refuse_patches(name, text, &documents)?;
    let mut all = ManifestVariables::default();
    for document in &documents {
        all.walk(document);
    }
    let maps = std::mem::take(&mut all.config_maps);
    let mut left = MOST_TAKEN;
    let mut read = || -> Result<LaunchFile, String> {
        let mut containers = Vec::new();
        for (container, nodes) in documents.iter().flat_map(workload::containers) {
            let mut own = ManifestVariables::default();
            for node in nodes {
                own.walk(node);
            }
            let settings = settings(own.resolve(&maps, &mut left)?.assignments, name);
            containers.push(LaunchContainer { settings, ..container });
        }
        let Launch { assignments, mut notes, .. } = std::mem::take(&mut all).resolve(&maps, &mut left)?;
        let is_part = |one: &LaunchContainer| one.given.unread.as_ref().is_some_and(|said| said.value == Some(PATCH));
        if containers.iter().any(|one| is_part(one) && !one.given.has_gpu) {
            notes.push(format!("it has {}; {}", PATCH.what, PATCH.help));
        }
        if documents.iter().any(|document| document.get("services").is_some() && document.get("include").is_some()) {
            notes.push("the services of `include` are unknown: name their files with --launch, too".to_owned());
        }
        let of_containers: BTreeSet<_> =
            containers.iter().flat_map(|one| &one.settings).map(|setting| (&*setting.name, &setting.site)).collect();
        let mut shared = settings(assignments, name);
        shared.retain(|setting| !of_containers.contains(&(&*setting.name, &setting.site)));
        Ok(LaunchFile { settings: shared, containers, notes, ..LaunchFile::default() })
    };
    read().map_err(|why| Document { name, text }.mistake_of("kind", why))
}

/// Refuses what only changes other files: it has no container, and what it sets depends on them.
fn refuse_patches(name: &str, text: &str, documents: &[YamlNode]) -> Result<(), DocumentError> {
    let is_kustomization = |document: &YamlNode| {
        document.text("apiVersion").is_some_and(|version| version.starts_with("kustomize.config.k8s.io/"))
    };
    let file = name.rsplit('/').next().unwrap_or(name);
    let is_operation = |item: &YamlNode| item.get("op").is_some() && item.get("path").is_some();
    let is_patch = |document: &YamlNode| !document.list().is_empty() && document.list().iter().all(is_operation);
    let what = if documents.iter().any(is_kustomization) || matches!(file, "kustomization.yaml" | "kustomization.yml") {
        "a kustomization that is not rendered"
    } else if documents.iter().any(is_patch) {
        "a JSON patch, which changes another file"
    } else {
        return Ok(());
    };
    Err(Document { name, text }.mistake_of("", what).help(Some(PATCH.help.to_owned())))
}

fn documents(name: &str, text: &str) -> Result<Vec<YamlNode>, DocumentError> {
    Document { name, text }.parse_all::<YamlNode>().map_err(|mut error| {
        let is_template = ["{{", "{%", "<%"].iter().any(|mark| text.contains(mark));
        error.what =
            format!("{}: {}", if is_template { "a template that is not rendered" } else { "invalid YAML" }, error.what);
        let help = "render it, and give the result: helm template CHART | ncclcheck check IMAGE --launch -";
        if is_template { error.help(Some(help.to_owned())) } else { error }
    })
}

/// The data of ConfigMaps, by name and key.
type ConfigMaps = BTreeMap<String, BTreeMap<String, Assignment>>;

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

impl ContainerVariable {
    /// Counts the line from that of the text that has the variable.
    fn move_down(&mut self, lines: usize) {
        if let Self::Assigned(variable) | Self::OfKey { variable, .. } = self {
            variable.line = variable.line.map(|line| line + lines);
        }
    }
}

#[derive(Default)]
struct ManifestVariables {
    found: Vec<ContainerVariable>,
    /// The data of each ConfigMap in the file.
    config_maps: ConfigMaps,
    notes: Vec<String>,
    /// How many documents in texts were read.
    texts: usize,
    /// Why a script or a text is not read.
    refusal: Option<String>,
}

impl ManifestVariables {
    fn walk(&mut self, value: &YamlNode) {
        match &value.value {
            YamlValue::List(values) => values.iter().for_each(|value| self.walk(value)),
            YamlValue::Map(_) if value.text("kind") == Some("ConfigMap") => self.config_map(value),
            YamlValue::Map(entries) => self.container(value, entries),
            YamlValue::Null | YamlValue::Scalar(_) => {}
        }
    }

    /// Reads a map, which may be a container. What its command line sets takes precedence.
    fn container(&mut self, container: &YamlNode, entries: &[(String, YamlNode)]) {
        // What `env` sets takes precedence over `envFrom`.
        container.get("envFrom").into_iter().for_each(|sources| self.sources(sources));
        let is_list = |value: &YamlNode| matches!(value.value, YamlValue::List(_));
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
        // Argo gives the command a file with this script.
        let program = container.get("command").and_then(|command| command.list().last()?.as_str()?.rsplit('/').next());
        if let Some(source) = container.get("source")
            && program.is_some_and(|program| is_among(program, "ash bash dash sh zsh"))
        {
            self.script(source.as_str().unwrap_or_default(), source.line);
        }
    }

    fn entry(&mut self, key: &str, value: &YamlNode) {
        if matches!(key, "env_file" | "extends") {
            self.notes.push(format!("the variables of `{key}` are unknown: name the file with --launch, too"));
        }
        match &value.value {
            YamlValue::List(values) if names_variables(key) => values.iter().for_each(|value| self.item(value)),
            YamlValue::Map(values) if names_variables(key) && values.iter().all(|(_, value)| is_single(value)) => {
                self.pairs(values);
            }
            YamlValue::Scalar(script) if SCRIPTS.contains(&key) || WORDS.contains(&key) => {
                self.script(script, value.line);
            }
            YamlValue::List(scripts) if SCRIPTS.contains(&key) => {
                let scripts = scripts.iter().filter_map(|script| Some((script.as_str()?, script.line)));
                scripts.for_each(|(script, line)| self.script(script, line));
            }
            // A document in a text, of Ray's resources in Kubernetes.
            YamlValue::Scalar(text) if key == "runtimeEnvYAML" => {
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
                let begin = self.found.len();
                variables.for_each(|variables| self.entry("env_vars", variables));
                for variable in self.found.iter_mut().skip(begin) {
                    variable.move_down(value.line - 1);
                }
            }
            _ => self.walk(value),
        }
    }

    /// Reads the variables of a ConfigMap, for the containers that refer to it.
    fn config_map(&mut self, resource: &YamlNode) {
        let Some(name) = resource.at(&["metadata", "name"]).and_then(YamlNode::as_str) else { return };
        let Some(data) = resource.get("data") else { return };
        let data = data.entries().iter().filter_map(|(key, value)| {
            let given =
                Assignment { name: key.clone(), value: Some(value.as_str()?.to_owned()), line: Some(value.line) };
            Some((key.clone(), given))
        });
        let data = data.collect();
        self.config_maps.insert(name.to_owned(), data);
    }

    /// Reads `envFrom` of Kubernetes.
    fn sources(&mut self, sources: &YamlNode) {
        for source in sources.list() {
            let name_of = |kind: &str| source.get(kind)?.text("name").map(ToOwned::to_owned);
            let prefix = source.text("prefix").unwrap_or_default().to_owned();
            self.found.extend(name_of("configMapRef").map(|map| ContainerVariable::OfMap { map, prefix }));
            self.found.extend(name_of("secretRef").map(ContainerVariable::OfSecret));
        }
    }

    /// Reads `{name: N, value: V}` of Kubernetes, or `N=V` or `N` of Compose.
    fn item(&mut self, node: &YamlNode) {
        match &node.value {
            YamlValue::Map(_) => {
                let Some(name) = node.text("name") else { return };
                // Only the cluster knows a value from a secret or a pod field. A missing value is empty.
                let given = match (node.get("valueFrom"), node.get("value")) {
                    (Some(source), _) => return self.taken(name, source, node.line),
                    (None, given) => given.map_or(Some(""), YamlNode::as_str),
                };
                let value = given.filter(|text| !is_computed(text)).map(ToOwned::to_owned);
                self.push(name, value, node.line);
            }
            YamlValue::Scalar(text) => match text.split_once('=') {
                Some((name, value)) => self.push(name, interpolated(value), node.line),
                None => self.push(text, None, node.line),
            },
            _ => {}
        }
    }

    /// Reads `valueFrom` of Kubernetes.
    fn taken(&mut self, name: &str, source: &YamlNode, line: usize) {
        self.push(name, None, line);
        let text = |name: &str| source.get("configMapKeyRef")?.text(name).map(ToOwned::to_owned);
        if let (Some(map), Some(key)) = (text("name"), text("key"))
            && let Some(ContainerVariable::Assigned(variable)) = self.found.pop_if(|_| is_name(name))
        {
            self.found.push(ContainerVariable::OfKey { variable, map, key });
        }
    }

    /// Reads `N: V` of Compose and others. Without a value, Compose takes it from its own environment.
    fn pairs(&mut self, entries: &[(String, YamlNode)]) {
        for (name, value) in entries {
            self.push(name, value.as_str().and_then(interpolated), value.line);
        }
    }

    /// Reads the words of the command line that a container's keys make up together.
    fn command(&mut self, container: &YamlNode) {
        let nodes = WORDS.iter().filter_map(|key| container.get(key)).flat_map(YamlNode::list);
        let words: Vec<_> = nodes.filter_map(|node| Some((node.as_str()?.to_owned(), node.line))).collect();
        self.several(of_words(words));
    }

    /// Reads a script whose first line is this one of the document.
    fn script(&mut self, script: &str, line: usize) {
        match job_script(script, line) {
            Ok(launch) => self.several(launch),
            Err(why) => _ = self.refusal.get_or_insert(why),
        }
    }

    /// Records what a script or a command line sets.
    fn several(&mut self, launch: Launch) {
        self.found.extend(launch.assignments.into_iter().map(ContainerVariable::Assigned));
        self.notes.extend(launch.notes);
    }

    fn push(&mut self, name: &str, value: Option<String>, line: usize) {
        if is_name(name) {
            let variable = Assignment { name: name.to_owned(), value, line: Some(line) };
            self.found.push(ContainerVariable::Assigned(variable));
        }
    }

    /// Puts the values of ConfigMaps in their places. Each of many containers can take all of a large one.
    fn resolve(self, maps: &ConfigMaps, left: &mut usize) -> Result<Launch, String> {
        if let Some(why) = self.refusal {
            return Err(why);
        }
        let mut pay = |prefix: &str, given: &Assignment| {
            let bytes = ASSIGNMENT + prefix.len() + given.name.len() + given.value.as_ref().map_or(0, String::len);
            *left = left.checked_sub(bytes).ok_or_else(|| {
                format!("its containers take more than {} of variables from ConfigMaps", size(MOST_TAKEN as u64))
            })?;
            Ok::<_, String>(())
        };
        let mut launch = Launch { notes: self.notes, ..Launch::default() };
        let absent = |kind: &str, name: &str| {
            format!("the variables of the {kind} '{name}' are unknown: the file does not hold it")
        };
        for variable in self.found {
            match variable {
                ContainerVariable::Assigned(given) => launch.assignments.push(given),
                ContainerVariable::OfKey { variable, map, key } => {
                    let given = maps.get(&map).and_then(|data| data.get(&key));
                    given.map_or(Ok(()), |given| pay("", given))?;
                    let value = given.and_then(|given| given.value.clone());
                    launch.assignments.push(Assignment { value, ..variable });
                }
                ContainerVariable::OfMap { map, prefix } => match maps.get(&map) {
                    Some(data) => {
                        for given in data.values() {
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

/// Returns true for a key whose values are variables.
fn names_variables(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    VARIABLES.iter().any(|ending| key.ends_with(ending))
}

/// Returns true for what may be the value of a variable.
const fn is_single(value: &YamlNode) -> bool {
    matches!(value.value, YamlValue::Null | YamlValue::Scalar(_))
}

/// Resolves Compose's `$$` to a dollar sign. Returns `None` for any other `$`, which refers to the environment of
/// Compose.
fn interpolated(value: &str) -> Option<String> {
    let plain = value.replace("$$", "\0");
    (!plain.contains('$')).then(|| plain.replace('\0', "$"))
}
