//! Numbers with their nouns.

/// Formats a count with its noun: `1 layer`, `2 layers`.
pub(crate) fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
