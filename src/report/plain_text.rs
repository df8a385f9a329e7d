//! Text that an image brought, as text and nothing else.

use crate::model::printable;

/// Beginnings of commands that CI services obey wherever in a line they stand (GitHub, Azure, `TeamCity`).
const COMMANDS: [&str; 3] = ["##[", "##vso[", "##teamcity["];

/// What keeps a line from being a command: GitHub obeys lines that begin with two colons, spaces before them or not.
pub(super) fn guard(line: &str) -> &'static str {
    if line.trim_start().starts_with("::") { "\\" } else { "" }
}

/// One line of plain text, whoever wrote it.
pub(super) fn clean(text: &str) -> String {
    let mut text = printable(text).replace('\n', "\\n").replace('\t', "\\t");
    for command in COMMANDS {
        text = text.replace(command, &format!("#\\{}", command.get(1..).unwrap_or_default()));
    }
    text
}

/// The same, and not endless.
pub(super) fn short(text: &str, most: usize) -> String {
    let text = clean(text);
    match text.char_indices().nth(most) {
        None => text,
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}
