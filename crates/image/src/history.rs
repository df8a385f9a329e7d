//! The build steps of an image: finds the step that added a file or set a variable.

use std::collections::BTreeMap;

use model::Site;
use model::{ImageSummary, LayerSummary};

/// Prefixes by which builders call a shell.
const SHELLS: [&str; 4] = ["/bin/sh -c ", "/bin/bash -c ", "/bin/bash -o pipefail -c ", "/bin/bash -euo pipefail -c "];

/// `layer 2 of 3 (sha256:ab12…)`, counted from 1.
pub fn layer(index: usize, image: &ImageSummary) -> String {
    let name = image.layers.get(index).and_then(LayerSummary::name);
    let name = name.map(|digest| format!(" ({}:{})", digest.algorithm(), digest.short())).unwrap_or_default();
    format!("layer {} of {}{name}", index + 1, image.layers.len())
}

/// The build step that produced a site.
pub fn step(site: &Site, image: &ImageSummary) -> Option<String> {
    match site {
        Site::File { layer, .. } => image.layers.get(*layer)?.history.as_deref().map(tidy),
        Site::Config(key) => {
            let layers = image.layers.iter().filter_map(|layer| layer.history.as_ref());
            image.empty_steps.iter().rev().chain(layers.rev()).find_map(|step| sets(&tidy(step), key))
        }
        Site::Launch { .. } | Site::Log { .. } | Site::Probe(_) => None,
    }
}

/// Number of the recorded build steps that set a variable.
pub fn assignments(name: &str, image: &ImageSummary) -> usize {
    let layers = image.layers.iter().filter_map(|layer| layer.history.as_ref());
    let key = format!("Env {name}");
    image.empty_steps.iter().chain(layers).filter(|step| sets(&tidy(step), &key).is_some()).count()
}

/// The part of a build step that sets a key of the configuration, if any.
fn sets(step: &str, key: &str) -> Option<String> {
    let instruction = match key {
        "User" => "USER",
        "Entrypoint" => "ENTRYPOINT",
        "Cmd" => "CMD",
        "WorkingDir" => "WORKDIR",
        _ => return assigns(step.strip_prefix("ENV ")?, key.strip_prefix("Env ")?),
    };
    (step.split(' ').next() == Some(instruction)).then(|| step.to_owned())
}

/// `ENV NAME=value` from a step that may set several: reports must not show the values of other variables.
fn assigns(assignments: &str, name: &str) -> Option<String> {
    let is = |word: &&str| word.split_once('=').is_some_and(|(before, _)| before == name);
    let any = |word: &&str| {
        word.split_once('=').is_some_and(|(before, _)| {
            before.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && before.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        })
    };
    let mut words = assignments.split(' ').skip_while(|word| !is(word));
    let first = words.next()?;
    let rest = words.take_while(|word| !any(word));
    Some(std::iter::once("ENV").chain([first]).chain(rest).collect::<Vec<_>>().join(" "))
}

/// A history step in Dockerfile syntax, on one line: without the shell that ran it and the builder's marks. The build
/// arguments that it uses come first, as a shell would set them.
pub fn tidy(step: &str) -> String {
    let command = tidy_with(step, &[]);
    let arguments = arguments(step);
    match command.strip_prefix("RUN ").filter(|_| !arguments.is_empty()) {
        Some(run) => {
            let set: Vec<_> = arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("RUN {} {run}", set.join(" "))
        }
        None => command,
    }
}

/// Variables of installers that choose what is installed although no command names them.
const UNNAMED: &[&str] = &["PIP_", "UV_", "CONDA_"];

/// The build arguments of a history step that its command uses.
pub fn arguments(step: &str) -> BTreeMap<String, String> {
    let step = step.split_whitespace().collect::<Vec<_>>().join(" ");
    let shells = SHELLS.iter().filter_map(|shell| step.split_once(shell));
    let Some((given, command)) = shells.max_by_key(|(_, command)| command.len()) else { return BTreeMap::new() };
    let given = given.strip_prefix("RUN ").unwrap_or(given).strip_prefix('|').unwrap_or_default();
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let mut arguments: Vec<(String, String)> = Vec::new();
    // The first word is the number of the arguments; a word without a name belongs to the value before it.
    for word in given.split(' ').skip(1).filter(|word| !word.is_empty()) {
        match (word.split_once('=').filter(|(name, _)| is_name(name)), arguments.last_mut()) {
            (Some((name, value)), _) => arguments.push((name.to_owned(), value.to_owned())),
            (None, Some((_, value))) => *value = format!("{value} {word}"),
            (None, None) => {}
        }
    }
    arguments.retain(|(name, _)| expands(command, name) || UNNAMED.iter().any(|start| name.starts_with(start)));
    arguments.into_iter().collect()
}

/// True if a command expands a variable.
fn expands(command: &str, name: &str) -> bool {
    command.split('$').skip(1).any(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest).strip_prefix(name);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
    })
}

/// A history step as [`tidy`] gives it, without the build arguments, and with the additional shells that the Dockerfile
/// names.
pub fn tidy_with(step: &str, shells: &[String]) -> String {
    let step = step.split_whitespace().collect::<Vec<_>>().join(" ");
    let step = step.strip_suffix(" # buildkit").unwrap_or(&step);
    if let Some((_, instruction)) = step.split_once("#(nop) ") {
        return instruction.to_owned();
    }
    let run = step.strip_prefix("RUN ").unwrap_or(step);
    let shells = SHELLS.into_iter().chain(shells.iter().map(String::as_str));
    let commands = shells.filter_map(|shell| match run.split_once(shell) {
        Some(("", command)) => Some(command),
        // Build arguments precede the shell, after their number: `|1 VERSION=2.9.0 /bin/sh -c …`.
        Some((arguments, command)) if arguments.starts_with('|') => Some(command),
        _ => None,
    });
    commands.min_by_key(|command| command.len()).map_or_else(|| step.to_owned(), |command| format!("RUN {command}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_arguments_that_a_step_uses_are_kept() {
        for (step, expected) in [
            (
                "RUN |2 INDEX=https://x/cpu OTHER=1 /bin/sh -c pip install -i ${INDEX} torch # buildkit",
                "RUN INDEX=https://x/cpu pip install -i ${INDEX} torch",
            ),
            ("|1 V=2.9.0 rc /bin/sh -c pip install torch==$V", "RUN V=2.9.0 rc pip install torch==$V"),
            ("|1 V=2.9.0 /bin/sh -c pip install torch==$VERSION", "RUN pip install torch==$VERSION"),
            (
                "|1 PIP_INDEX_URL=https://x/cpu /bin/bash -c pip install torch",
                "RUN PIP_INDEX_URL=https://x/cpu pip install torch",
            ),
            ("/bin/sh -c echo $A", "RUN echo $A"),
            ("RUN pip install torch # buildkit", "RUN pip install torch"),
            ("/bin/sh -c #(nop) ENV A=1", "ENV A=1"),
        ] {
            assert_eq!(tidy(step), expected, "{step}");
        }
    }
}
