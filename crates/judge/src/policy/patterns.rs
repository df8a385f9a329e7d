//! Patterns for the names of images and for the ids of rules.

use globset::{Glob, GlobMatcher};

use model::document::{Document, DocumentError, Spanned};

/// Patterns in which `*` stands for any characters, slashes too.
#[derive(Clone, Debug, Default)]
pub(super) struct ImagePatterns(Vec<GlobMatcher>);

impl ImagePatterns {
    /// Compiles the patterns of a policy.
    pub(super) fn read(texts: &[Spanned<String>], document: Document<'_>) -> Result<Self, DocumentError> {
        texts.iter().map(|text| glob(text, document)).collect::<Result<_, _>>().map(Self)
    }

    /// Returns true if there is no pattern.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if a pattern matches the whole name.
    pub(super) fn matches(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| pattern.is_match(name))
    }
}

fn glob(text: &Spanned<String>, document: Document<'_>) -> Result<GlobMatcher, DocumentError> {
    if text.value.is_empty() {
        return Err(document.mistake(text, "an empty pattern matches no image"));
    }
    let glob =
        Glob::new(&text.value).map_err(|error| document.mistake(text, format!("invalid pattern: {}", error.kind())))?;
    Ok(glob.compile_matcher())
}

/// A rule id, or a prefix such as `area/*` or `area/rdma-*`; `*` for all rules.
#[derive(Clone, Debug)]
pub struct RulePattern(String);

impl RulePattern {
    /// Compiles a pattern, in which `*` stands for any text.
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns true if a rule's id matches.
    pub fn matches(&self, id: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(before) => id.starts_with(before),
            None => self.0 == id,
        }
    }
}
