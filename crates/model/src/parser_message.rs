//! Messages of parsers in words of YAML and JSON, and without the text that they refuse: the path of a file may lead to one that holds
//! secrets.

use super::conceal;

/// Beginnings of messages that quote the refused text before what was expected.
const QUOTING: &[&str] = &["duplicate key", "invalid type: ", "invalid value: ", "unknown field", "unknown variant"];

/// Beginnings of messages that quote only what the program expects.
const STATIC: &[&str] = &["missing field", "duplicate field", "two keys for one field"];

/// Longest quoted text that belongs to a format: `expected '='`.
const LONGEST_MARK: usize = 3;

/// Returns a parser's message in words of users, without the values and names that it quotes from the parsed text.
pub fn without_content(message: &str) -> String {
    in_words(&stripped(message))
}

/// Rewrites what serde says of types of the program: what is wrong, and what is allowed.
pub fn in_words(message: &str) -> String {
    let (said, place) = message.rfind(" at line ").and_then(|at| message.split_at_checked(at)).unwrap_or((message, ""));
    let (wrong, expected) = said.split_once(", expected ").unwrap_or((said, ""));
    let allowed = || format!("; available: {}", expected.strip_prefix("one of ").unwrap_or(expected).replace('`', ""));
    let allowed = if expected.is_empty() { String::new() } else { allowed() };
    let quoted = |name: &str| name.replace(", there are no fields", "").replace('`', "'");
    if let Some(name) = wrong.strip_prefix("unknown field") {
        return format!("unknown key{}{allowed}{place}", quoted(name));
    }
    if let Some(name) = wrong.strip_prefix("unknown variant") {
        return format!("unknown value{}{allowed}{place}", quoted(name));
    }
    if let Some(name) = wrong.strip_prefix("missing field ") {
        return format!("the key {} is missing{place}", quoted(name));
    }
    match wrong.strip_prefix("invalid type: ") {
        Some(found) if !expected.is_empty() => format!("expected {}, not {}{place}", kind(expected), kind(found)),
        // The type fits and the value does not, so that the type says nothing.
        None if wrong.starts_with("invalid value: ") && !expected.is_empty() => {
            format!("expected {}{place}", kind(expected))
        }
        _ => message.to_owned(),
    }
}

/// A type of Rust or of serde as a form of YAML and JSON.
fn kind(of: &str) -> &str {
    match of {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" | "integer" => "a whole number",
        "f32" | "f64" | "floating point" => "a number",
        "boolean" | "a boolean" => "true or false",
        "sequence" | "a sequence" => "a list",
        "string" | "a string" | "str" => "text",
        "unit" | "unit value" => "null",
        "map" | "a map" => "a map",
        of if of.starts_with("struct ") => "a map",
        of => of,
    }
}

fn stripped(message: &str) -> String {
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
                "expected a whole number that is not negative, not text at line 1 column 3",
            ),
            ("invalid type: sequence, expected a map", "expected a map, not a list"),
            ("invalid value: integer `-1`, expected u32", "expected a whole number that is not negative"),
            ("unknown field `a`, expected one of `b`, `c`", "unknown key; available: b, c"),
            ("unknown variant `a`, expected `b` or `c`", "unknown value; available: b or c"),
            ("unknown field `a`, there are no fields at line 1 column 2", "unknown key at line 1 column 2"),
            ("missing field `items` at line 1 column 2", "the key 'items' is missing at line 1 column 2"),
            ("duplicate key secret", "duplicate key"),
            ("expected `=` or '.' after \"secret\"", "expected `=` or '.' after …"),
            ("EOF while parsing a value", "EOF while parsing a value"),
        ] {
            assert_eq!(without_content(message), expected, "{message}");
        }
        assert_eq!(in_words("unknown field `a`, expected one of b, c"), "unknown key 'a'; available: b, c");
    }
}
