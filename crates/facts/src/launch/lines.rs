//! Files of `NAME=VALUE` lines: `docker run --env-file`, Compose's `.env`, and `/etc/environment` (pam_env(8)).

use super::Assignment;

/// Returns true if a text consists of `NAME=VALUE` lines and comments.
pub(super) fn is_list(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
    lines.peek().is_some() && lines.all(|line| pair(line).is_some_and(|(_, value)| !value.contains(['$', '`', ';'])))
}

/// Returns the assignments of a text. Other lines are skipped, as Docker, Compose and pam_env do.
pub fn lines(text: &str) -> Vec<Assignment> {
    let numbered = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with('#'));
    numbered
        .filter_map(|(index, line)| {
            let (name, value) = pair(line.trim())?;
            Some(Assignment { name: name.to_owned(), value: Some(unquoted(value).to_owned()), line: Some(index + 1) })
        })
        .collect()
}

fn pair(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
    is_name(name).then_some((name, value))
}

/// Removes one pair of quotation marks, as pam_env and Compose do.
fn unquoted(value: &str) -> &str {
    let inner = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}

/// Returns true if a text is a valid variable name (POSIX, "Environment Variables").
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
