//! Patterns for the names of images and for the ids of rules.

use globset::{Glob, GlobMatcher};

use model::document::{Document, DocumentError, Spanned};

/// Compiles patterns for names of images, in which `*` stands for any characters, slashes too.
pub(super) fn image_patterns(
    texts: &[Spanned<String>],
    document: Document<'_>,
) -> Result<Vec<GlobMatcher>, DocumentError> {
    texts.iter().map(|text| glob(text, document)).collect()
}

fn glob(text: &Spanned<String>, document: Document<'_>) -> Result<GlobMatcher, DocumentError> {
    if text.value.is_empty() {
        return Err(document.mistake(text, "an empty pattern matches no image"));
    }
    let glob =
        Glob::new(&text.value).map_err(|error| document.mistake(text, format!("invalid pattern: {}", error.kind())))?;
    Ok(glob.compile_matcher())
}

/// Returns true if the pattern matches the id of a rule: the id itself, or a prefix such as `area/*` or `area/rdma-*`; `*` for
/// all rules.
pub fn is_rule(pattern: &str, id: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(before) => id.starts_with(before),
        None => pattern == id,
    }
}
