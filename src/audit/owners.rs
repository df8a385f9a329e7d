//! A map from names of images to the teams that own them.

use globset::{GlobBuilder, GlobMatcher};
use serde::Deserialize;

use model::document::Document;

use super::AuditError;

/// Teams by patterns of names. The first pattern that matches decides.
#[derive(Debug, Default)]
pub struct TeamMap {
    patterns: Vec<(GlobMatcher, String)>,
}

/// An entry of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TeamEntry {
    /// A pattern, or several.
    images: TeamPatterns,
    team: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TeamPatterns {
    One(String),
    Several(Vec<String>),
}

impl TeamMap {
    /// Reads a list of `{images: PATTERN, team: NAME}`. In a pattern `*` matches any characters but `/`, and `**` any.
    ///
    /// # Errors
    /// The text is not such a list, or a pattern is malformed.
    pub fn parse(document: Document<'_>) -> Result<Self, AuditError> {
        let entries: Vec<TeamEntry> = document.parse()?;
        let mut patterns = Vec::new();
        for entry in entries {
            let images = match entry.images {
                TeamPatterns::One(one) => vec![one],
                TeamPatterns::Several(several) => several,
            };
            for pattern in images {
                let glob = GlobBuilder::new(&pattern).literal_separator(true).build();
                let glob = glob.map_err(|error| {
                    AuditError::Usage(format!("{}: '{pattern}' is not a pattern: {}", document.name, error.kind()))
                })?;
                patterns.push((glob.compile_matcher(), entry.team.clone()));
            }
        }
        Ok(Self { patterns })
    }

    /// Returns true if no image has a team.
    pub(super) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The team of an image: that of the first name that a pattern matches, with or without its tag.
    pub fn team(&self, names: &[String]) -> Option<&str> {
        names.iter().find_map(|name| {
            let repository = repository(name);
            let found = self.patterns.iter().find(|(glob, _)| glob.is_match(name) || glob.is_match(repository));
            found.map(|(_, team)| &**team)
        })
    }
}

/// A name without its tag and digest.
pub fn repository(name: &str) -> &str {
    let name = name.split_once('@').map_or(name, |(before, _)| before);
    match name.rsplit_once(':') {
        Some((before, tag)) if !tag.contains('/') => before,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn teams_by_pattern() {
        let text =
            "- {images: 'reg.example/vision/**', team: vision}\n- {images: [reg.example/*, 'x:1'], team: base}\n";
        let map = TeamMap::parse(Document { name: "owners.yaml", text }).unwrap();
        let team = |name: &str| map.team(&[name.to_owned()]).map(ToOwned::to_owned);
        assert_eq!(team("reg.example/vision/a/b:1").as_deref(), Some("vision"));
        assert_eq!(team("reg.example/a@sha256:0").as_deref(), Some("base"));
        assert_eq!(team("x:1").as_deref(), Some("base"));
        assert_eq!(team("x:2"), None);
        let error = TeamMap::parse(Document { name: "o", text: "- {images: 'a[', team: t}" }).unwrap_err();
        assert!(error.to_string().contains("o: 'a[' is not a pattern"), "{error}");
        assert!(TeamMap::parse(Document { name: "o", text: "- {image: a, team: t}" }).is_err());
    }

    #[test]
    fn repositories_of_names() {
        for (name, expected) in
            [("a:1", "a"), ("h:5000/a", "h:5000/a"), ("h:5000/a:1", "h:5000/a"), ("a@sha256:0", "a")]
        {
            assert_eq!(repository(name), expected);
        }
    }
}
