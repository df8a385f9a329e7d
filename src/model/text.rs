//! Escaping of untrusted text. Names, labels and variables of an image may contain terminal escapes, line breaks and
//! bidirectional marks.

use std::borrow::Cow;
use std::fmt::Write as _;

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

/// Replaces all characters that can control a terminal by U+FFFD, except line breaks and tabs.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| is_plain(c) || matches!(c, '\n' | '\t')) {
        return Cow::Borrowed(text);
    }
    text.chars()
        .map(|c| if is_plain(c) || matches!(c, '\n' | '\t') { c } else { char::REPLACEMENT_CHARACTER })
        .collect::<String>()
        .into()
}

/// Returns false for control characters, and for characters that are invisible or change the direction of text (UAX
/// #9).
fn is_plain(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Formats the `help:` line below an error; empty without a hint.
pub(crate) fn help_line(hint: Option<&str>) -> String {
    hint.map(|hint| format!("\n  help: {hint}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_cannot_control_a_terminal() {
        assert_eq!(escape(b"a\x1b[31m\xff\\"), "a\\x1b[31m\\xff\\\\");
        assert_eq!(escape("a\u{202e}b".as_bytes()), "a\\u{202e}b");
        assert_eq!(escape(b" ~\x7f"), " ~\\x7f");
        assert_eq!(escape("ü".as_bytes()), "ü");
        assert_eq!(printable("a\x1b[2Jb\n"), "a\u{fffd}[2Jb\n");
        assert!(matches!(printable("plain"), Cow::Borrowed(_)));
    }
}
