//! The environment and the labels that Apptainer gives a container (Apptainer's user guide, "Environment and Metadata").

use std::collections::BTreeMap;

use model::{Gap, ImageConfig};
use shell::{Word, commands};

use super::script::ShellVariables;
use super::{ImageFiles, ScriptStart};

/// `PATH` before an image's own scripts run (apptainer, `internal/pkg/util/env`).
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The configuration of an image.
pub(super) fn config(files: &ImageFiles<'_>) -> ImageConfig {
    let mut variables = ShellVariables::new(&[("PATH", PATH)]);
    for (path, text) in files.texts_in(".singularity.d/env", ".sh") {
        match text {
            Ok(text) => variables.run(files, &path.to_string(), &text),
            Err(gap) => variables.lose(gap),
        }
    }
    let mut config = ImageConfig { labels: labels(files), ..ImageConfig::default() };
    config.unknown.environment = variables.gap();
    config.unknown.user = Some(
        Gap::new("Apptainer runs a container as the host's user, in the folder where it is called")
            .settled_by("check the image that it was made of"),
    );
    files.read_start(".singularity.d/runscript", start, &mut config);
    for (name, value) in variables.exported() {
        match value {
            Ok(value) => _ = config.environment.insert(name, value),
            Err(gap) => _ = config.unknown.variables.insert(name, gap),
        }
    }
    config
}

/// The entrypoint and the command that a run script keeps of an OCI image: texts of quoted words.
fn start(script: &str) -> Option<ScriptStart> {
    let script: Vec<_> = commands(script, 1).filter(|command| !command.words.is_empty()).collect();
    let words = |name: &str| -> Option<Vec<String>> {
        let mut values = script.iter().take(2).filter_map(|line| line.words.first()?.assignment());
        let value = values.find(|(found, _)| *found == name)?.1.plain()?;
        commands(&value, 1).flat_map(|command| command.words).map(|word| Word::plain(&word)).collect()
    };
    Some((words("OCI_ENTRYPOINT")?, words("OCI_CMD")?))
}

/// The labels, in a JSON object of texts. Labels of another form are of no interest.
fn labels(files: &ImageFiles<'_>) -> BTreeMap<String, String> {
    let text = files.text(".singularity.d/labels.json").and_then(Result::ok).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_scripts_of_oci_images_keep_the_command() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let script = "#!/bin/sh\nOCI_ENTRYPOINT='\"tini\" \"--\"'\nOCI_CMD='\"python3\" \"a b.py\"'\n\nexec \"$@\"\n";
        assert_eq!(start(script), Some((words(&["tini", "--"]), words(&["python3", "a b.py"]))));
        assert_eq!(start("#!/bin/sh\nOCI_ENTRYPOINT=''\nOCI_CMD=''\n"), Some((vec![], vec![])));
        for other in ["#!/bin/sh\nexec python3\n", "OCI_ENTRYPOINT='\"$HOME\"'\nOCI_CMD=''", ""] {
            assert_eq!(start(other), None, "{other}");
        }
    }
}
