//! Suggestions for unknown options and commands: words of other tools, and misspelt words. Clap suggests any word with
//! similar letters, such as `--tls-verify` for `--severity`.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{Command, CommandFactory as _};

use model::nearest;

use super::args::Arguments;

/// Options of other tools, each with the option here that has this purpose. A word may have several: the first one that
/// the command has is suggested.
const OPTIONS: &[(&str, &str)] = &[
    ("all-platforms", "platform"),
    ("arch", "platform"),
    ("certs", "cert-dir"),
    ("creds", "authfile"),
    ("debug", "verbose"),
    ("disable-cache", "cache"),
    ("environment", "env"),
    ("exit-code", "fail-on"),
    ("exit-zero", "fail-on"),
    ("failure-threshold", "fail-on"),
    ("file", "format"),
    ("gpu", "gpus"),
    ("gpu", "host"),
    ("gpus", "host"),
    ("host-facts", "host"),
    ("ignorefile", "config"),
    ("insecure", "tls-verify"),
    ("json", "format"),
    ("level", "fail-on"),
    ("markdown", "format"),
    ("mount", "volume"),
    ("no-cache", "cache"),
    ("no-color", "color"),
    ("no-progress", "quiet"),
    ("no-tls-verify", "tls-verify"),
    ("o", "format"),
    ("out", "format"),
    ("output", "format"),
    ("parallel", "jobs"),
    ("policy", "config"),
    ("registry-config", "authfile"),
    ("rules", "profile"),
    ("sarif", "format"),
    ("severity", "fail-on"),
    ("silent", "quiet"),
    ("threads", "jobs"),
    ("threshold", "fail-on"),
    ("username", "authfile"),
    ("workers", "jobs"),
];

/// Options of other tools that name an image, which is an argument here.
const IMAGE_OPTIONS: [&str; 5] = ["i", "image", "img", "input", "reference"];

/// Commands of other tools, likewise.
const COMMANDS: &[(&str, &str)] = &[
    ("analyze", "check"),
    ("bench", "probe"),
    ("clean", "clear"),
    ("compare", "diff"),
    ("image", "check"),
    ("info", "inspect"),
    ("lint", "check"),
    ("ls", "list"),
    ("ls", "inspect"),
    ("prune", "clear"),
    ("run", "probe"),
    ("scan", "check"),
    ("show", "inspect"),
    ("system", "host"),
    ("verify", "check"),
];

/// The words with the command `check` before an image that stands in the place of a command: a path of a file or folder, or a name
/// with a character that no command has.
pub(super) fn with_command(mut words: Vec<OsString>) -> Vec<OsString> {
    let is_image = |word: &OsString| {
        let text = word.to_string_lossy();
        text == "-" || !text.starts_with('-') && (text.contains(['/', ':', '.', '@']) || Path::new(word).exists())
    };
    let is_command = |word: &OsString| Arguments::command().find_subcommand(word).is_some();
    if words.get(1).is_some_and(|word| is_image(word) && !is_command(word)) {
        words.insert(1, "check".into());
    }
    words
}

/// Replaces clap's suggestion in an error about these command-line words.
pub(super) fn improve(mut error: Error, words: &[OsString]) -> Error {
    let mut root = Arguments::command();
    root.build();
    let mut command = active(&root, words);
    match (error.kind(), error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(word)), _) if word.starts_with('-') => {
            let word = word.trim_start_matches('-').to_owned();
            let options: Vec<_> = command.get_arguments().filter(|arg| !arg.is_hide_set()).collect();
            let names: Vec<_> = options.iter().filter_map(|arg| arg.get_long()).collect();
            let name = suggested(&word, OPTIONS, &names);
            // Clap proposes to pass the option as a value.
            error.remove(ContextKind::Suggested);
            match options.iter().find(|arg| name.is_some() && arg.get_long() == name) {
                Some(option) => {
                    error.insert(ContextKind::SuggestedArg, ContextValue::String(option.to_string()));
                }
                None => drop(error.remove(ContextKind::SuggestedArg)),
            }
            if name.is_none() && IMAGE_OPTIONS.contains(&&*word) && command.get_positionals().any(is_of_images) {
                let line = "an image is named without an option".to_owned();
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![line.into()]));
            }
            // Clap's usage contains its own suggestion.
            error.insert(ContextKind::Usage, ContextValue::StyledStr(command.render_usage()));
        }
        (ErrorKind::InvalidSubcommand, _, Some(ContextValue::String(word))) => {
            let names: Vec<_> = command.get_subcommands().map(Command::get_name).collect();
            if let Some(name) = suggested(word, COMMANDS, &names) {
                let names = ContextValue::Strings(vec![name.to_owned()]);
                error.insert(ContextKind::SuggestedSubcommand, names);
            } else {
                let is_first = words.get(1).is_some_and(|first| **first == **word);
                let line = match &**word {
                    "version" => "to show the version: ncclcheck --version".to_owned(),
                    _ => format!("to check an image of this name: ncclcheck check {word}"),
                };
                error.remove(ContextKind::SuggestedSubcommand);
                if is_first {
                    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![line.into()]));
                }
            }
        }
        _ => {}
    }
    error
}

fn is_of_images(argument: &clap::Arg) -> bool {
    matches!(argument.get_id().as_str(), "image" | "images")
}

/// The command that the words select.
fn active(root: &Command, words: &[OsString]) -> Command {
    let inner = |command: &'_ Command, word: &OsString| command.find_subcommand(word).cloned();
    words.iter().skip(1).fold(root.clone(), |command, word| inner(&command, word).unwrap_or(command))
}

/// The name for a word of another tool, or else the name that was probably misspelt.
fn suggested<'n>(word: &str, table: &[(&str, &'n str)], names: &[&'n str]) -> Option<&'n str> {
    let meant = table.iter().find(|(other, name)| *other == word && names.contains(name));
    meant.map(|(_, name)| *name).or_else(|| nearest(word, names.iter().copied()))
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Parser as _};

    use super::*;

    /// The message for a command line that is refused.
    fn message(line: &str) -> String {
        let words: Vec<OsString> = line.split_whitespace().map(Into::into).collect();
        improve(Arguments::try_parse_from(&words).unwrap_err(), &words).to_string()
    }

    #[test]
    fn words_of_other_tools() {
        insta::assert_snapshot!(message("ncclcheck check --severity high x"), @"
        error: unexpected argument '--severity' found

          tip: a similar argument exists: '--fail-on <SEVERITY>'

        Usage: ncclcheck check [OPTIONS] [IMAGE]...

        For more information, try '--help'.
        ");
        for (line, name) in [
            ("check --insecure x", "--tls-verify[=<BOOL>]"),
            ("check --gpu h100 x", "--host <HOST|FILE>"),
            ("check --gpus 8 x", "--host <HOST|FILE>"),
            ("check --no-cache x", "--cache <URL|off>"),
            ("check -o report.json x", "--format <FORMAT[=FILE]>"),
            ("audit merge --output report.json", "--format <FORMAT[=FILE]>"),
            ("probe --gpu 2 x", "--gpus <GPUS>"),
            ("host --json", "--format <FORMAT[=FILE]>"),
            ("scan x", "check"),
            ("compare x y", "diff"),
            ("rules ls", "list"),
            ("ls x", "inspect"),
        ] {
            let text = message(&format!("ncclcheck {line}"));
            assert!(text.contains(&format!("exists: '{name}'")), "{line}: {text}");
        }
    }

    #[test]
    fn an_image_needs_no_option() {
        for line in ["check -i x", "check --image x", "inspect --input x.tar", "probe --image x"] {
            let text = message(&format!("ncclcheck {line}"));
            assert!(text.contains("tip: an image is named without an option"), "{line}: {text}");
        }
        assert!(message("ncclcheck version").contains("tip: to show the version: ncclcheck --version"));
    }

    #[test]
    fn an_image_in_the_place_of_a_command_is_checked() {
        let line = |words: &[&str]| {
            let words = with_command(words.iter().map(OsString::from).collect());
            words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        for image in ["a/b", "a:1", "x.tar", ".", "-", "Cargo.toml", "src"] {
            assert_eq!(line(&["ncclcheck", image, "-v"]), format!("ncclcheck check {image} -v"));
        }
        for words in
            [&["ncclcheck"][..], &["ncclcheck", "chekc"], &["ncclcheck", "--version"], &["ncclcheck", "man", "a/b"]]
        {
            assert_eq!(line(words), words.join(" "));
        }
        assert!(message("ncclcheck ubuntu").contains("tip: to check an image of this name: ncclcheck check ubuntu"));
    }

    #[test]
    fn misspelt_words() {
        assert!(message("ncclcheck check --fromat json x").contains("exists: '--format <FORMAT[=FILE]>'"));
        assert!(message("ncclcheck chekc x").contains("exists: 'check'"));
        for line in ["check --verify-severely x", "check --sleep-rank 1:all_reduce x", "log -i x"] {
            let text = message(&format!("ncclcheck {line}"));
            assert!(!text.contains("tip:") && text.contains("Usage: ncclcheck"), "{line}: {text}");
        }
    }

    #[test]
    fn verbose_may_be_repeated() {
        for line in ["check -vvv x", "inspect -v -v x", "log --verbose -v x.log"] {
            let words = format!("ncclcheck {line}");
            assert!(Arguments::try_parse_from(words.split_whitespace()).is_ok(), "{line}");
        }
    }

    #[test]
    fn every_format_has_the_letter_f() {
        fn formats(command: &Command) -> Vec<(String, Option<char>)> {
            let own = command.get_arguments().filter(|arg| arg.get_long() == Some("format"));
            let own = own.map(|arg| (command.get_name().to_owned(), arg.get_short()));
            own.chain(command.get_subcommands().flat_map(formats)).collect()
        }
        let formats = formats(&Arguments::command());
        assert!(formats.len() > 10, "{formats:?}");
        assert_eq!(formats.iter().find(|(_, letter)| *letter != Some('f')), None);
    }

    #[test]
    fn suggested_names_exist() {
        fn gather(command: &Command, options: &mut Vec<String>, commands: &mut Vec<String>) {
            options.extend(command.get_arguments().filter_map(Arg::get_long).map(str::to_owned));
            for inner in command.get_subcommands() {
                commands.push(inner.get_name().to_owned());
                gather(inner, options, commands);
            }
        }
        let mut options = Vec::new();
        let mut commands = Vec::new();
        gather(&Arguments::command(), &mut options, &mut commands);
        for (table, known) in [(OPTIONS, options), (COMMANDS, commands)] {
            for (word, name) in table {
                assert!(known.iter().any(|known| known == name), "{word}: there is no {name}");
            }
            assert!(table.is_sorted_by_key(|(word, _)| word), "{table:?}");
        }
    }
}
