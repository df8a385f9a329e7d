//! Neutralises text from an image, so that it controls neither terminals nor CI services.

use model::printable;

/// Escapes a text to one line of plain text.
pub(super) fn clean(text: &str) -> String {
    printable(text).into_owned()
}

/// Like [`clean`], cut to `most` characters.
pub(super) fn short(text: &str, most: usize) -> String {
    let text = clean(text);
    match text.char_indices().nth(most) {
        None => text,
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}
