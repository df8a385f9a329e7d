//! Image references as the user types them: skopeo's transports, a bare name, a path, or `-`
//! (containers-transports(5)).

use std::fmt;
use std::str::FromStr;

use model::{ImageSummary, printable};

pub use super::medium::{Transport, TransportKind};
pub use super::target::{Selector, Target};
pub use super::transports::{TRANSPORTS, transport_of};

/// All transports of skopeo, so that a reference to one that is missing here is not taken for an image name.
const SKOPEO: [&str; 11] = [
    "atomic",
    "containers-storage",
    "dir",
    "docker",
    "docker-archive",
    "docker-daemon",
    "oci",
    "oci-archive",
    "ostree",
    "sif",
    "tarball",
];

/// The location of an image, as the user wrote it.
#[derive(Clone, Debug)]
pub enum Reference {
    /// `TRANSPORT:TARGET`.
    Transport(&'static Transport, Target),
    /// `-[:REF|:@INDEX|@DIGEST]`: an archive on standard input.
    Stdin(Option<Selector>),
    /// No transport: an existing path, or else a name to look up in the engine and then in the registry.
    Bare(String),
}

/// A text that is not an image reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{}' is not an image reference: {why}", printable(text))]
pub struct ReferenceError {
    text: String,
    why: String,
}

/// Removes the tag and the digest from a reference to a registry or an engine; returns any other reference unchanged.
pub fn untagged(reference: &str) -> &str {
    let name = match transport_of(reference) {
        Some((transport, _)) if !transport.kind.is_by_name() => return reference,
        Some((_, name)) => name,
        None => reference,
    };
    // The place of a store: `[overlay@/root]`.
    let name = name.strip_prefix('[').and_then(|place| place.split_once(']')).map_or(name, |(_, name)| name);
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    let last = name.rfind('/').map_or(0, |slash| slash + 1);
    match name.rfind(':') {
        Some(colon) if colon >= last => name.split_at(colon).0,
        _ => name,
    }
}

/// The name by which container engines run an image; `None` for one that no engine knows by a name.
pub fn engine_name(image: &ImageSummary) -> Option<String> {
    let Some((transport, name)) = transport_of(&image.source) else {
        // The source of an image that a probe ran is the engine itself.
        return (!image.source.is_empty()).then(|| image.reference.clone());
    };
    let name = name.strip_prefix('[').and_then(|place| place.split_once(']')).map_or(name, |(_, name)| name);
    (transport.kind.is_by_name() && !name.is_empty() && !name.contains(char::is_whitespace)).then(|| name.to_owned())
}

/// Every form of a reference, with one line of help each.
pub fn forms() -> Vec<(String, &'static str)> {
    let bare = [
        ("NAME".to_owned(), "an image in the engine (Docker, Podman), or else in the registry"),
        ("PATH".to_owned(), "a file or a folder in one of the forms below, detected by its content"),
    ];
    let named =
        TRANSPORTS.iter().map(|transport| (format!("{}{}", transport.prefix, transport.syntax), transport.description));
    let stdin = ("-[:REF]".to_owned(), "an archive on standard input");
    bare.into_iter().chain(named).chain([stdin]).collect()
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let error = |why: String| ReferenceError { text: text.to_owned(), why };
        if text == "-" || text.starts_with("-:") || text.starts_with("-@") {
            let target = Target::path_and_selector(text).map_err(error)?;
            return Ok(Self::Stdin(target.selector().cloned()));
        }
        if text.is_empty() {
            return Err(error("the text is empty".to_owned()));
        }
        let Some((name, _)) = text.split_once(':') else {
            return Ok(Self::Bare(text.to_owned()));
        };
        match TRANSPORTS.iter().find(|transport| transport.name() == name) {
            Some(transport) => target(transport, text).map(|target| Self::Transport(transport, target)).map_err(error),
            None if SKOPEO.contains(&name) => {
                Err(error(format!("the transport {name}: is not supported; {} are", supported())))
            }
            None => Ok(Self::Bare(text.to_owned())),
        }
    }
}

/// Parses the target of a reference that begins with a transport's name.
fn target(transport: &Transport, text: &str) -> Result<Target, String> {
    let Transport { prefix, syntax, kind, parse, .. } = transport;
    match text.strip_prefix(prefix) {
        None => Err(format!("write {prefix}{syntax}")),
        Some("") if prefix.ends_with(':') => Err(format!("{prefix} needs {} after the colon", kind.target())),
        Some(target) => parse(target),
    }
}

/// The supported prefixes, joined for a sentence.
fn supported() -> String {
    let prefixes: Vec<_> = TRANSPORTS.iter().map(|transport| transport.prefix).collect();
    prefixes.split_last().map_or_else(String::new, |(last, others)| format!("{} and {last}", others.join(", ")))
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transport(transport, target) => write!(f, "{}{target}", transport.prefix),
            Self::Stdin(None) => f.write_str("-"),
            Self::Stdin(Some(selector)) => write!(f, "-{selector}"),
            Self::Bare(text) => f.write_str(&printable(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports() {
        for text in [
            "docker://docker.io/library/debian:12",
            "docker-daemon:torch:2.9.0",
            "docker-archive:a.tar",
            "docker-archive:a.tar:torch:2.9.0",
            "docker-archive:a.tar:@1",
            "oci:layout:2.9.0",
            "oci:layout@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "oci-archive:a.tar",
            "dir:copy:of/a@1",
            "root:/mnt",
            "sif:a.sif",
            "sqsh:a.sqsh",
            "containers-storage:[overlay@/var/lib/containers/storage+/run:x=y]docker.io/library/debian:12",
            "-",
            "-:torch:2.9.0",
            "-:@1",
            "-@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "localhost:5000/torch",
        ] {
            assert_eq!(text.parse::<Reference>().unwrap().to_string(), text);
        }
        assert_eq!(
            "docker://debian".parse::<Reference>().unwrap().to_string(),
            "docker://docker.io/library/debian:latest"
        );
    }

    #[test]
    fn errors_suggest_what_to_write() {
        for (text, why) in [
            ("", "the text is empty"),
            ("docker:debian", "write docker://NAME"),
            ("docker://Not Valid", "invalid reference format"),
            ("oci:", "needs a folder after the colon"),
            ("docker-archive:a.tar:@x", "write :@0 for the first"),
            ("oci:dir@sha256:0", "is not a digest"),
            ("ostree:x@/tmp", "is not supported; docker://, docker-daemon:, "),
            ("sif:", "needs a file after the colon"),
            ("containers-storage:", "needs the name of an image after the colon"),
        ] {
            let error = text.parse::<Reference>().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn untagged_removes_tag_and_digest() {
        for (reference, name) in [
            ("torch:2.9.0", "torch"),
            ("torch", "torch"),
            ("docker://localhost:5000/ml/torch:2.9.0@sha256:00", "localhost:5000/ml/torch"),
            ("docker-daemon:train:abc", "train"),
            ("containers-storage:[overlay@/srv]train:abc", "train"),
            ("localhost:5000/torch", "localhost:5000/torch"),
            ("oci:layout:2.9.0", "oci:layout:2.9.0"),
            ("docker-archive:a.tar", "docker-archive:a.tar"),
            ("./image.tar", "./image.tar"),
            ("-", "-"),
        ] {
            assert_eq!(untagged(reference), name, "{reference}");
        }
    }
}
