//! Files of `NAME=VALUE` lines: `docker run --env-file`, Compose's `.env`, and `/etc/environment` (pam_env(8)).

use super::Assignment;

/// Whether a text holds such lines, comments, and nothing else.
pub(super) fn is_list(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
    lines.peek().is_some() && lines.all(|line| pair(line).is_some_and(|(_, value)| !value.contains(['$', '`', ';'])))
}

/// Its assignments. Lines that are none are passed over, as the readers of such files do.
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

/// Without one pair of quotes around it, which pam_env and Compose take away.
fn unquoted(value: &str) -> &str {
    let inner = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}

/// Whether a text can be the name of a variable (POSIX, "Environment Variables").
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
