//! What the user types for an image: skopeo's transports, a bare name, a path, or `-`
//! (containers-transports(5)).

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use oci_spec::distribution::Reference as Name;

use crate::model::{Digest, printable};

/// Where an image is, as the user said it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// `docker://NAME`: a registry.
    Registry(Name),
    /// `docker-daemon:NAME`, or an image ID: an engine that speaks Docker's API.
    Daemon(String),
    /// `docker-archive:PATH[:REF|:@INDEX]`: what `docker save` writes.
    DockerArchive(PathBuf, Option<Selector>),
    /// `oci:DIR[:REF|@DIGEST]`: an image layout.
    Layout(PathBuf, Option<Selector>),
    /// `oci-archive:FILE[:REF|@DIGEST]`: an image layout in a tar archive.
    OciArchive(PathBuf, Option<Selector>),
    /// `root:DIR`: an unpacked root file system.
    Root(PathBuf),
    /// `-`: an archive on standard input.
    Stdin,
    /// No transport: a path if something is there, else a name for the engine and then the registry.
    Bare(String),
}

/// Which image of several in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// By name: `org.opencontainers.image.ref.name` of an index, `RepoTags` of a docker archive.
    Name(String),
    /// By place, from 0.
    Index(usize),
    /// By the digest of its manifest.
    Digest(Digest),
}

/// A text that is no image reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{}' is not an image reference: {why}", printable(text))]
pub struct ReferenceError {
    text: String,
    why: String,
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let error = |why: String| ReferenceError { text: text.to_owned(), why };
        if text == "-" {
            return Ok(Self::Stdin);
        }
        if text.is_empty() {
            return Err(error("it is empty".to_owned()));
        }
        let Some((transport, rest)) = text.split_once(':') else {
            return Ok(Self::Bare(text.to_owned()));
        };
        let needed = |what: &str| {
            if rest.is_empty() { Err(error(format!("{transport}: needs {what} behind the colon"))) } else { Ok(rest) }
        };
        match transport {
            "docker" => {
                let name = rest.strip_prefix("//").ok_or_else(|| error("write docker://NAME".to_owned()))?;
                name.parse().map(Self::Registry).map_err(|why| error(format!("{why}")))
            }
            "docker-daemon" => Ok(Self::Daemon(needed("the name of an image")?.to_owned())),
            "docker-archive" => {
                let (path, selector) = split(needed("a file")?).map_err(error)?;
                Ok(Self::DockerArchive(path, selector))
            }
            "oci" => {
                let (path, selector) = split(needed("a folder")?).map_err(error)?;
                Ok(Self::Layout(path, selector))
            }
            "oci-archive" => {
                let (path, selector) = split(needed("a file")?).map_err(error)?;
                Ok(Self::OciArchive(path, selector))
            }
            "root" => Ok(Self::Root(PathBuf::from(needed("a folder")?))),
            "dir" | "containers-storage" | "tarball" | "sif" | "ostree" | "atomic" => Err(error(format!(
                "the transport {transport}: is not supported; docker://, docker-daemon:, docker-archive:, oci:, oci-archive: and root: are"
            ))),
            _ => Ok(Self::Bare(text.to_owned())),
        }
    }
}

/// `PATH[:REF|:@INDEX|@DIGEST]`. A path with a colon in it cannot be told apart and is cut at the first one, as skopeo
/// does.
fn split(text: &str) -> Result<(PathBuf, Option<Selector>), String> {
    if let Some((path, digest)) = text.split_once('@').filter(|(path, _)| !path.is_empty() && !path.contains(':')) {
        let digest = digest.parse().map_err(|error| format!("{error}"))?;
        return Ok((path.into(), Some(Selector::Digest(digest))));
    }
    let Some((path, name)) = text.split_once(':') else {
        return Ok((text.into(), None));
    };
    let selector = match name.strip_prefix('@') {
        Some(index) => {
            let wrong = |_| format!("'@{index}' is not the place of an image in the archive: write :@0 for the first");
            Selector::Index(index.parse().map_err(wrong)?)
        }
        None if name.is_empty() => return Err("there is nothing behind the colon".to_owned()),
        None => Selector::Name(name.to_owned()),
    };
    Ok((path.into(), Some(selector)))
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

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = |f: &mut fmt::Formatter<'_>, transport, path: &PathBuf, selector: &Option<Selector>| {
            write!(f, "{transport}:{}", printable(&path.to_string_lossy()))?;
            selector.as_ref().map_or(Ok(()), |selector| write!(f, "{selector}"))
        };
        match self {
            Self::Registry(name) => write!(f, "docker://{name}"),
            Self::Daemon(name) => write!(f, "docker-daemon:{}", printable(name)),
            Self::DockerArchive(path, selector) => place(f, "docker-archive", path, selector),
            Self::Layout(path, selector) => place(f, "oci", path, selector),
            Self::OciArchive(path, selector) => place(f, "oci-archive", path, selector),
            Self::Root(path) => place(f, "root", path, &None),
            Self::Stdin => f.write_str("-"),
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
            "root:/mnt",
            "-",
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
    fn mistakes_say_what_to_write() {
        for (text, why) in [
            ("", "it is empty"),
            ("docker:debian", "write docker://NAME"),
            ("docker://Not Valid", "invalid reference format"),
            ("oci:", "needs a folder behind the colon"),
            ("docker-archive:a.tar:@x", "write :@0 for the first"),
            ("oci:dir@sha256:0", "is not a digest"),
            ("dir:/tmp/x", "is not supported"),
        ] {
            let error = text.parse::<Reference>().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
