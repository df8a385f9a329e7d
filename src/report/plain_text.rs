//! Neutralises text from an image, so that it controls neither terminals nor CI services.

use crate::model::printable;

/// Prefixes of commands that CI services obey anywhere in a line (GitHub, Azure, `TeamCity`).
const COMMANDS: [&str; 3] = ["##[", "##vso[", "##teamcity["];

/// The prefix that keeps a line from being a command: GitHub obeys lines that start with two colons, even after spaces.
pub(super) fn guard(line: &str) -> &'static str {
    if line.trim_start().starts_with("::") { "\\" } else { "" }
}

/// Escapes a text to one line of plain text.
pub(super) fn clean(text: &str) -> String {
    let mut text = printable(text).replace('\n', "\\n").replace('\t', "\\t");
    for command in COMMANDS {
        text = text.replace(command, &format!("#\\{}", command.get(1..).unwrap_or_default()));
    }
    text
}

/// Like [`clean`], cut to `most` characters.
pub(super) fn short(text: &str, most: usize) -> String {
    let text = clean(text);
    match text.char_indices().nth(most) {
        None => text,
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}
