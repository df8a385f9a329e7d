//! The environment that enroot gives a container (enroot, `doc/image-format.md`; `common::envfmt` and
//! `common::envsubst` in `src/common.sh`).

use std::collections::BTreeMap;

use model::{Gap, ImageConfig, UnknownConfig};
use shell::{Piece, Word, commands, name_length};

use super::{ImageFiles, ScriptStart};

/// The configuration of an image; `None` if enroot did not make it.
pub(super) fn config(files: &ImageFiles<'_>) -> Option<ImageConfig> {
    let mut config = ImageConfig::default();
    config.unknown.user =
        Some(Gap::new("enroot runs a container as the host's user").settled_by("check the image that it was made of"));
    files.read_start("etc/rc", start, &mut config);
    match files.text("etc/environment") {
        None => _ = files.text("etc/rc")?,
        Some(Err(gap)) => config.unknown.environment = Some(gap),
        Some(Ok(text)) => variables(&text, &mut config.environment, &mut config.unknown),
    }
    Some(config)
}

/// The entrypoint and the command of a script that enroot made of an OCI image: it executes the first with the user's
/// arguments, or both.
fn start(script: &str) -> Option<ScriptStart> {
    let commands: Vec<_> = commands(script, 1).collect();
    let executed = commands.iter().filter(|line| is(line.words.first(), "exec")).map(|line| &line.words);
    let [given, default] = executed.collect::<Vec<_>>().try_into().ok()?;
    let (arguments, entrypoint) = given.split_last()?;
    let is_arguments = arguments
        .pieces
        .iter()
        .any(|piece| matches!(piece, Piece::Parameter { parameter, .. } if parameter.name == "@"));
    let texts = |words: &[Word]| words.iter().map(Word::plain).collect::<Option<Vec<_>>>();
    let entrypoint = texts(entrypoint)?;
    let default = texts(default)?;
    let command = default.strip_prefix(entrypoint.as_slice()).filter(|_| is_arguments)?.to_vec();
    // The first word is `exec`.
    Some((entrypoint.get(1..)?.to_vec(), command))
}

fn is(word: Option<&Word>, text: &str) -> bool {
    word.and_then(Word::plain).as_deref() == Some(text)
}

fn variables(text: &str, environment: &mut BTreeMap<String, String>, unknown: &mut UnknownConfig) {
    for (index, line) in text.lines().enumerate() {
        let Some((name, value)) = line.trim_start().split_once('=') else { continue };
        if name.is_empty() || name_length(name) != name.len() || name.starts_with("ENROOT_") {
            continue;
        }
        let value = unquoted(value);
        // The last line of a name counts.
        unknown.variables.remove(name);
        environment.remove(name);
        if is_substituted(value) {
            let why = format!("/etc/environment, line {}: {name} depends on a variable of the host", index + 1);
            let gap = Gap::new(why).settled_by("set the variable at launch, and name it with --env");
            unknown.variables.insert(name.to_owned(), gap);
        } else {
            environment.insert(name.to_owned(), value.to_owned());
        }
    }
}

/// Removes quotes that surround a value.
fn unquoted(value: &str) -> &str {
    let inner = value.trim_end();
    let is_quote = |c: char| matches!(c, '"' | '\'');
    inner.strip_prefix(is_quote).and_then(|rest| rest.strip_suffix(is_quote)).unwrap_or(value)
}

/// True if a value refers to a variable of the host: `${NAME}`.
fn is_substituted(value: &str) -> bool {
    value.split("${").skip(1).any(|rest| {
        let length = name_length(rest);
        length > 0 && rest.get(length..).is_some_and(|rest| rest.starts_with('}'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_of_oci_images_keep_the_command() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let script = |entrypoint: &str, command: &str| {
            format!(
                "# maintainer x\n\ncd \"/srv\" || exit 1\n\nif [ $# -gt 0 ]; then\n    exec {entrypoint} \"$@\"\nelse\n    \
                 exec {entrypoint} {command}\nfi\n"
            )
        };
        assert_eq!(start(&script("'tini' '--'", "'a b'")), Some((words(&["tini", "--"]), words(&["a b"]))));
        assert_eq!(start(&script("", "'/bin/sh'")), Some((vec![], words(&["/bin/sh"]))));
        for other in ["exec python3\n", "exec a $X\nexec a b\n", "exec a \"$@\"\nexec b\n", ""] {
            assert_eq!(start(other), None, "{other}");
        }
    }

    #[test]
    fn lines_are_read_as_enroot_reads_them() {
        let mut environment = BTreeMap::new();
        let mut unknown = UnknownConfig::default();
        let text =
            "# A=0\n  A=1\nB=\"x y\"\nC='x' \nD=a=b\nE=$HOME\nF=${HOME}/x\nexport G=1\n1H=1\nENROOT_X=1\nI=\nA=2\n";
        variables(text, &mut environment, &mut unknown);
        let found: Vec<_> = environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(found, ["A=2", "B=x y", "C=x", "D=a=b", "E=$HOME", "I="]);
        let (name, gap) = unknown.variables.first_key_value().unwrap();
        assert_eq!((name.as_str(), unknown.variables.len()), ("F", 1));
        assert_eq!(gap.why, "/etc/environment, line 7: F depends on a variable of the host");
    }
}
