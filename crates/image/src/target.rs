//! The target of a transport: a name or a path, and the selected image where there are several.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

use oci_spec::distribution::Reference as RegistryName;

use model::{Digest, printable};

/// The target of a transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    text: String,
    selector: Option<Selector>,
}

/// Selects one image of several in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// By name: `org.opencontainers.image.ref.name` of an index, `RepoTags` of a docker archive.
    Name(String),
    /// By position, from 0.
    Index(usize),
    /// By the digest of its manifest.
    Digest(Digest),
}

impl Target {
    /// An image name in a registry, completed with its defaults: `docker.io/library/debian:latest` for `debian`.
    pub(super) fn registry_name(text: &str) -> Result<Self, String> {
        let name: RegistryName = text.parse().map_err(|why| format!("{why}"))?;
        Ok(Self::whole(&name.to_string()))
    }

    /// A name or a path without a selector, taken as it is.
    #[expect(clippy::unnecessary_wraps, reason = "parses a target, as its siblings do")]
    pub(super) fn plain(text: &str) -> Result<Self, String> {
        Ok(Self::whole(text))
    }

    /// A name or a path that needs no parsing.
    pub(super) fn whole(text: &str) -> Self {
        Self { text: text.to_owned(), selector: None }
    }

    /// `PATH[:REF|:@INDEX|@DIGEST]`. A path that contains a colon is ambiguous and is cut at the first one, as skopeo
    /// does.
    pub(super) fn path_and_selector(text: &str) -> Result<Self, String> {
        let (path, selector) = split(text)?;
        Ok(Self { text: path.to_owned(), selector })
    }

    /// The target without its selector.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The target as a path.
    pub fn path(&self) -> &Path {
        Path::new(&self.text)
    }

    /// The selected image, if the reference names one.
    pub const fn selector(&self) -> Option<&Selector> {
        self.selector.as_ref()
    }
}

fn split(text: &str) -> Result<(&str, Option<Selector>), String> {
    if let Some((path, digest)) = text.split_once('@').filter(|(path, _)| !path.is_empty() && !path.contains(':')) {
        let digest = digest.parse().map_err(|error| format!("{error}"))?;
        return Ok((path, Some(Selector::Digest(digest))));
    }
    let Some((path, name)) = text.split_once(':') else {
        return Ok((text, None));
    };
    let selector = match name.strip_prefix('@') {
        Some(index) => {
            let wrong = |_| format!("'@{index}' is not the index of an image: write :@0 for the first");
            Selector::Index(index.parse().map_err(wrong)?)
        }
        None if name.is_empty() => return Err("nothing follows the colon".to_owned()),
        None => Selector::Name(name.to_owned()),
    };
    Ok((path, Some(selector)))
}

/// Returns true if two names mean the same image, however a writer spells it: `docker.io/library/a:1`,
/// `index.docker.io/library/a:1`, `localhost/a:1` (Podman) or `a:1`. A missing tag means `latest`.
pub(super) fn is_same_name(one: &str, other: &str) -> bool {
    let whole = |name: &str| {
        let name = name.strip_prefix("localhost/").unwrap_or(name);
        name.parse::<RegistryName>().ok().map(|name| name.whole())
    };
    one == other || whole(one).is_some_and(|one| Some(one) == whole(other))
}

/// What can be selected among `count` images with these names, for the error when a selector selects none.
pub(super) fn available(selector: Option<&Selector>, count: usize, names: &[Cow<'_, str>]) -> String {
    match selector {
        Some(Selector::Index(_)) if count == 1 => "1 image, :@0".to_owned(),
        Some(Selector::Index(_)) => format!("{count} images, :@0 to :@{}", count.saturating_sub(1)),
        _ if names.is_empty() => format!("{count} without a name"),
        _ => names.join(", "),
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, ":{}", printable(name)),
            Self::Index(index) => write!(f, ":@{index}"),
            Self::Digest(digest) => write!(f, "@{digest}"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.text))?;
        self.selector.as_ref().map_or(Ok(()), |selector| write!(f, "{selector}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_different_writers() {
        for (one, other, is_same) in [
            ("docker.io/a/b:1", "a/b:1", true),
            ("localhost/a/b:1", "a/b:1", true),
            ("index.docker.io/library/b:1", "b:1", true),
            ("docker.io/library/b:1", "index.docker.io/library/b:1", true),
            ("docker.io/b", "b:latest", true),
            ("b:latest", "b", true),
            ("Not Valid", "Not Valid", true),
            ("Not Valid", "Not Valid:latest", false),
            ("b:1", "b", false),
            ("c/b:1", "b:1", false),
            ("quay.io/library/b:1", "b:1", false),
            ("localhost:5000/b:1", "b:1", false),
        ] {
            assert_eq!(is_same_name(one, other), is_same, "{one} {other}");
            assert_eq!(is_same_name(other, one), is_same, "{other} {one}");
        }
    }

    #[test]
    fn a_position_past_the_end_is_answered_with_the_number_of_images() {
        let names = ["a:1".into(), "b:1".into()];
        for (selector, count, names, expected) in [
            (Some(Selector::Index(5)), 2, &names[..], "2 images, :@0 to :@1"),
            (Some(Selector::Index(1)), 1, &[], "1 image, :@0"),
            (Some(Selector::Name("c".to_owned())), 2, &names, "a:1, b:1"),
            (None, 3, &[], "3 without a name"),
        ] {
            assert_eq!(available(selector.as_ref(), count, names), expected);
        }
    }
}
