//! The containers of documents: pods and templates of Kubernetes, services of Compose, and tasks of SkyPilot and dstack.

use model::document::YamlNode;
use shell::name_length;

use super::LaunchContainer;

/// The containers that a document starts. Those that run before the job's own are left out.
pub(super) fn containers(document: &YamlNode) -> Vec<LaunchContainer> {
    if let Some(YamlNode::Map(services)) = document.get("services") {
        return services.iter().map(|(_, service)| of_compose(service)).collect();
    }
    if document.get("apiVersion").is_none() && document.get("kind").is_none() {
        return of_task(document).into_iter().collect();
    }
    // In an MPIJob, the launcher starts the processes of the workers.
    let replicas = document.get("spec").and_then(|spec| spec.get("mpiReplicaSpecs"));
    let launcher = replicas.and_then(|replicas| replicas.get("Launcher"));
    let mut found = Vec::new();
    walk(launcher.unwrap_or(document), &mut found);
    found
}

fn walk(value: &YamlNode, found: &mut Vec<LaunchContainer>) {
    match value {
        YamlNode::List(values) => values.iter().for_each(|value| walk(value, found)),
        YamlNode::Map(entries) => {
            for (key, value) in entries {
                match value {
                    YamlNode::List(containers) if key == "containers" => {
                        found.extend(containers.iter().map(of_kubernetes));
                    }
                    _ if key == "initContainers" => {}
                    _ => walk(value, found),
                }
            }
        }
        YamlNode::Null | YamlNode::Scalar(_) => {}
    }
}

fn of_kubernetes(container: &YamlNode) -> LaunchContainer {
    let text = |key: &str| container.get(key).and_then(YamlNode::as_str).map(ToOwned::to_owned);
    let words = |key: &str| Some(texts(container.get(key)?)?.iter().map(|word| expanded(word, container)).collect());
    let entrypoint: Option<Vec<String>> = words("command");
    let arguments = words("args");
    LaunchContainer {
        image: text("image"),
        has_gpu: container.get("resources").is_some_and(names_gpu),
        // `command` alone replaces the image's command as well.
        arguments: if entrypoint.is_some() { Some(arguments.unwrap_or_default()) } else { arguments },
        entrypoint,
        directory: text("workingDir"),
    }
}

/// Replaces `$(NAME)` by the value in the container's `env`, and `$$(NAME)` by `$(NAME)`, as Kubernetes does. Another name in
/// a word without blanks becomes `${NAME}`, which only the cluster knows; elsewhere it stays, for a shell.
fn expanded(word: &str, container: &YamlNode) -> String {
    let mut whole = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once("$(") {
        let Some((name, end)) = after.split_once(')').filter(|(name, _)| name_length(name) == name.len()) else {
            whole = whole + before + "$(";
            rest = after;
            continue;
        };
        rest = end;
        if let Some(before) = before.strip_suffix('$') {
            whole = whole + before + "$(" + name + ")";
            continue;
        }
        whole += before;
        match variable(container, name) {
            Some(value) => whole += &value,
            None if word.contains(char::is_whitespace) => whole = whole + "$(" + name + ")",
            None => whole = whole + "${" + name + "}",
        }
    }
    whole + rest
}

/// The value of a container's variable, if the document has it as a text.
fn variable(container: &YamlNode, name: &str) -> Option<String> {
    let Some(YamlNode::List(variables)) = container.get("env") else { return None };
    let is_meant = |variable: &&YamlNode| variable.get("name").and_then(YamlNode::as_str) == Some(name);
    let value = variables.iter().rev().find(is_meant)?.get("value")?.as_str()?;
    (!value.contains("$(")).then(|| value.to_owned())
}

fn of_compose(service: &YamlNode) -> LaunchContainer {
    let text = |key: &str| service.get(key).and_then(YamlNode::as_str).map(ToOwned::to_owned);
    // Compose splits a text into words as a shell does, and runs no shell.
    let words = |key: &str| -> Option<Vec<String>> {
        let words = match service.get(key)? {
            YamlNode::Scalar(text) => split(text),
            list => texts(list)?,
        };
        Some(words.iter().map(|word| interpolated(word)).collect())
    };
    let entrypoint = words("entrypoint");
    let arguments = words("command");
    LaunchContainer {
        image: text("image"),
        has_gpu: service.get("gpus").is_some()
            || service.get("runtime").and_then(YamlNode::as_str) == Some("nvidia")
            || service.get("deploy").is_some_and(names_gpu),
        arguments: if entrypoint.is_some() { Some(arguments.unwrap_or_default()) } else { arguments },
        entrypoint,
        directory: text("working_dir"),
    }
}

fn split(text: &str) -> Vec<String> {
    let words = shell::commands(text, 1).flat_map(|command| command.words);
    // An expansion is Compose's own, and stands for itself here.
    words.map(|word| word.plain().unwrap_or_else(|| "${computed}".to_owned())).collect()
}

/// `$$` is a dollar sign, and any other `$` refers to the environment of Compose.
fn interpolated(word: &str) -> String {
    let part = |part: &str| {
        let mut names = part.split('$');
        let first = names.next().unwrap_or_default().to_owned();
        names.fold(first, |whole, rest| match rest.split_at(name_length(rest)) {
            ("", rest) => whole + "$" + rest,
            (name, rest) => whole + "${" + name + "}" + rest,
        })
    };
    word.split("$$").map(part).collect::<Vec<_>>().join("$")
}

/// A task of SkyPilot (`setup` and `run`) or dstack (`commands`), whose scripts a shell of the container runs.
fn of_task(document: &YamlNode) -> Option<LaunchContainer> {
    let script = |key: &str| document.get(key).and_then(YamlNode::as_str).map(ToOwned::to_owned);
    let text = match (script("run"), document.get("commands")) {
        (Some(run), _) => script("setup").unwrap_or_default() + "\n" + &run,
        (None, Some(commands)) => texts(commands)?.join("\n"),
        (None, None) => return None,
    };
    let resources = document.get("resources");
    let image = resources.and_then(|resources| resources.get("image_id")).and_then(YamlNode::as_str);
    let image = image.and_then(|image| image.strip_prefix("docker:")).map(ToOwned::to_owned);
    Some(LaunchContainer {
        image: image.or_else(|| script("image")),
        has_gpu: true,
        entrypoint: Some(vec!["/bin/bash".to_owned(), "-c".to_owned(), text]),
        arguments: Some(Vec::new()),
        directory: None,
    })
}

fn texts(list: &YamlNode) -> Option<Vec<String>> {
    let YamlNode::List(words) = list else { return None };
    words.iter().map(|word| word.as_str().map(ToOwned::to_owned)).collect()
}

/// True if a key or a value names GPUs: `nvidia.com/gpu: 8`, `capabilities: [gpu]`.
fn names_gpu(value: &YamlNode) -> bool {
    match value {
        YamlNode::Map(entries) => {
            entries.iter().any(|(key, value)| (key.contains(".com/") && key.contains("gpu")) || names_gpu(value))
        }
        YamlNode::List(values) => values.iter().any(names_gpu),
        YamlNode::Scalar(text) => text == "gpu",
        YamlNode::Null => false,
    }
}
