//! Messages of parsers without the text that they refuse: the path of a file may lead to one that holds secrets.

use super::conceal;

/// Beginnings of messages that quote the refused text before what was expected.
const QUOTING: &[&str] = &["duplicate key", "invalid type: ", "invalid value: ", "unknown field", "unknown variant"];

/// Beginnings of messages that quote only what the program expects.
const STATIC: &[&str] = &["missing field", "duplicate field", "two keys for one field"];

/// Longest quoted text that belongs to a format: `expected '='`.
const LONGEST_MARK: usize = 3;

/// Returns a parser's message without the values and names that it quotes from the parsed text.
pub fn without_content(message: &str) -> String {
    if STATIC.iter().any(|begin| message.starts_with(begin)) {
        return message.to_owned();
    }
    if QUOTING.iter().any(|begin| message.starts_with(begin)) {
        let rest = message.rfind(", expected ").or_else(|| message.rfind(" at line ")).unwrap_or(message.len());
        let (said, rest) = message.split_at_checked(rest).unwrap_or((message, ""));
        let quote = said.find(['`', '"', '\'']).unwrap_or(said.len());
        let said = if said.starts_with("duplicate key") { "duplicate key" } else { said.get(..quote).unwrap_or(said) };
        return format!("{}{rest}", said.trim_end());
    }
    let mut shown = String::new();
    let mut rest = &*conceal(message);
    while let Some(start) = rest.find(['`', '"', '\'']) {
        let (before, quoted) = rest.split_at_checked(start).unwrap_or((rest, ""));
        let mark = quoted.chars().next().unwrap_or_default();
        let Some(end) = quoted.get(1..).and_then(|inner| inner.find(mark)) else { break };
        let (quoted, after) = quoted.split_at_checked(end + 2).unwrap_or((quoted, ""));
        shown.push_str(before);
        shown.push_str(if end <= LONGEST_MARK { quoted } else { "…" });
        rest = after;
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_is_left_out() {
        for (message, expected) in [
            (
                "invalid type: string \"a, expected b\", expected u64 at line 1 column 3",
                "invalid type: string, expected u64 at line 1 column 3",
            ),
            ("invalid type: sequence, expected a map", "invalid type: sequence, expected a map"),
            ("unknown field `a`, expected one of `b`, `c`", "unknown field, expected one of `b`, `c`"),
            ("unknown field `a`, there are no fields at line 1 column 2", "unknown field at line 1 column 2"),
            ("missing field `items` at line 1 column 2", "missing field `items` at line 1 column 2"),
            ("duplicate key secret", "duplicate key"),
            ("expected `=` or '.' after \"secret\"", "expected `=` or '.' after …"),
            ("EOF while parsing a value", "EOF while parsing a value"),
        ] {
            assert_eq!(without_content(message), expected, "{message}");
        }
    }
}
