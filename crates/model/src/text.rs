//! Escaping of untrusted text. Names, labels and variables of an image may contain terminal escapes, line breaks and
//! bidirectional marks.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::conceal;

/// Escapes `bytes` to one unambiguous line: anything but plain printable text becomes `\xNN` or `\u{…}`, and a
/// backslash `\\`.
pub fn escape(bytes: &[u8]) -> String {
    // Nearly all paths and names are plain ASCII, and need no look at each character.
    let is_plain_ascii = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'\\';
    if let Ok(text) = std::str::from_utf8(bytes)
        && bytes.iter().all(is_plain_ascii)
    {
        return text.to_owned();
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                c if is_plain(c) => text.push(c),
                c if c.is_ascii() => _ = write!(text, "\\x{:02x}", u32::from(c)),
                c => _ = write!(text, "\\u{{{:x}}}", u32::from(c)),
            }
        }
        for byte in chunk.invalid() {
            _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// The bytes of an escaped text. A backslash that begins no escape stands for itself.
pub(super) fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend(before.as_bytes());
        rest = if let Some((part, rest)) = escaped_part(after) {
            bytes.extend(part);
            rest
        } else {
            bytes.push(b'\\');
            after
        };
    }
    bytes.extend(rest.as_bytes());
    bytes
}

/// The bytes of the escape after a backslash, and the text behind it.
fn escaped_part(text: &str) -> Option<(Vec<u8>, &str)> {
    if let Some(rest) = text.strip_prefix('\\') {
        return Some((vec![b'\\'], rest));
    }
    if let Some(rest) = text.strip_prefix("u{") {
        let (digits, rest) = rest.split_once('}')?;
        let character = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
        return Some((character.to_string().into_bytes(), rest));
    }
    let rest = text.strip_prefix('x')?;
    let (digits, rest) = rest.split_at_checked(2)?;
    Some((vec![u8::from_str_radix(digits, 16).ok()?], rest))
}

/// Prefixes of commands that CI services obey anywhere in a line (GitHub, Azure, `TeamCity`).
const COMMANDS: [&str; 3] = ["##[", "##vso[", "##teamcity["];

/// Maximum number of characters of one line that is printed, twice that of `PATH_MAX`.
const LONGEST_LINE: usize = 8 << 10;

/// Makes a text one printable line: line breaks become `\n`, tabs `\t`, other characters that can control a terminal
/// U+FFFD, and commands of CI services are broken. All text from outside passes through this function before it is
/// printed.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) && !text.contains("##") {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => line.push_str("\\n"),
            '\t' => line.push_str("\\t"),
            c if is_plain(c) => line.push(c),
            _ => line.push(char::REPLACEMENT_CHARACTER),
        }
    }
    for command in COMMANDS {
        if line.contains(command) {
            line = line.replace(command, &format!("#\\{}", command.get(1..).unwrap_or_default()));
        }
    }
    line.into()
}

/// The prefix that keeps a line from being a command: GitHub obeys lines that start with two colons, even after spaces.
pub fn command_guard(line: &str) -> &'static str {
    if line.trim_start().starts_with("::") { "\\" } else { "" }
}

/// Makes each line of a text printable. The line breaks are those of the program: text from outside has passed through
/// [`printable`] before.
pub fn printable_lines(text: &str) -> String {
    text.split('\n').map(printable_line).collect::<Vec<_>>().join("\n")
}

/// Makes an error or a note printable, and conceals secrets in it. Only line breaks before an indented line are those of the program (`help:`, an
/// excerpt): all others came from outside.
pub fn printable_message(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in conceal(text).split('\n') {
        match lines.last_mut() {
            Some(last) if !line.starts_with("  ") => *last = format!("{last}\n{line}"),
            _ => lines.push(line.to_owned()),
        }
    }
    lines.iter().map(|line| printable_line(line)).collect::<Vec<_>>().join("\n")
}

fn printable_line(line: &str) -> String {
    let text = printable(line);
    let end = text.char_indices().nth(LONGEST_LINE).map(|(end, _)| end);
    match end.and_then(|end| text.get(..end)) {
        Some(start) => format!("{}{start}…", command_guard(start)),
        None => format!("{}{text}", command_guard(&text)),
    }
}

/// Returns false for control characters, and for characters that are invisible or change the direction of text (UAX
/// #9).
fn is_plain(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Returns true if a word is one of those in a list that blanks separate.
pub fn is_among(word: &str, list: &str) -> bool {
    list.split_ascii_whitespace().any(|one| one == word)
}

/// Quotes one word of a shell's command (POSIX.1-2017, Shell Command Language, 2.2).
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Formats the `help:` line below an error; empty without a hint.
pub fn help_line(hint: Option<&str>) -> String {
    hint.map(|hint| format!("\n  help: {hint}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escaped_text_has_its_bytes() {
        for bytes in [&b"plain/path"[..], b"a\\b", b"\xff\xfe/x", "caf\u{e9}\u{202e}".as_bytes(), b"a\nb", b"\\x41"] {
            assert_eq!(unescape(&escape(bytes)), bytes, "{}", escape(bytes));
        }
        assert_eq!(unescape("a\\q"), b"a\\q");
    }

    #[test]
    fn hostile_text_cannot_control_a_terminal() {
        assert_eq!(escape(b"a\x1b[31m\xff\\"), "a\\x1b[31m\\xff\\\\");
        assert_eq!(escape("a\u{202e}b".as_bytes()), "a\\u{202e}b");
        assert_eq!(escape(b" ~\x7f"), " ~\\x7f");
        assert_eq!(escape("ü".as_bytes()), "ü");
        assert_eq!(printable("a\x1b[2Jb\n\t"), "a\u{fffd}[2Jb\\n\\t");
        assert_eq!(printable("a ##vso[task] ##[group] # ##"), "a #\\#vso[task] #\\#[group] # ##");
        assert!(matches!(printable("plain # text"), Cow::Borrowed(_)));
    }

    #[test]
    fn only_the_program_breaks_lines() {
        let said = "no image 'x\n::error::y'\n  help: write z\n    1 | a\nb";
        assert_eq!(printable_message(said), "no image 'x\\n::error::y'\n  help: write z\n    1 | a\\nb");
        assert_eq!(printable_message("  ::error::x\n  ::add-mask::y"), "\\  ::error::x\n\\  ::add-mask::y");
        assert_eq!(printable_lines("a\n::b\n"), "a\n\\::b\n");
        let long = printable_message(&"x".repeat(1 << 20));
        assert_eq!(long.chars().count(), LONGEST_LINE + 1);
    }

    /// Texts that people have used against terminals, logs and CI services.
    fn payloads() -> impl Iterator<Item = String> {
        const COMMANDS: &[&str] = &[
            "::error title=x::y",
            "::warning::y",
            "::add-mask::y",
            "::set-output name=a::b",
            "::stop-commands::t",
            "##vso[task.setvariable variable=a]b",
            "##vso[task.complete result=Succeeded;]",
            "##[error]x",
            "##[group]x",
            "##teamcity[buildStatus status='SUCCESS']",
            "section_start:0:x",
            "\x1b[31m",
            "\x1b]0;title\x07",
            "\x1b[2J",
            "\x1b]8;;https://x\x1b\\y",
            "\u{9b}31m",
            "\u{202e}txt",
            "\u{200b}",
            "\u{feff}",
            "\0",
            "\x7f",
            "\u{85}",
            "\u{2028}::error::x",
            "error: x",
            "help: run this",
        ];
        const BREAKS: &[&str] = &["", "\n", "\r", "\r\n", "\n\n", "\t", "\x0b", "\x0c", "\u{2029}"];
        COMMANDS.iter().flat_map(|command| BREAKS.iter().map(move |before| format!("{before}{command}")))
    }

    #[test]
    fn no_payload_leaves_its_line() {
        assert!(payloads().count() >= 200);
        for payload in payloads() {
            for text in [format!("reading {payload}"), payload.clone(), format!("{payload}\n  help: x {payload}")] {
                let message = printable_message(&text);
                let expected = 1 + text.matches("\n  ").count();
                assert_eq!(message.split('\n').count(), expected, "{payload:?}: {message:?}");
                assert!(message.split('\n').all(|line| line.chars().all(is_plain)), "{payload:?}: {message:?}");
                let is_command = |line: &str| {
                    line.trim_start().starts_with("::") || super::COMMANDS.iter().any(|command| line.contains(command))
                };
                assert!(!message.split('\n').any(is_command), "{payload:?}: {message:?}");
            }
        }
    }
}
