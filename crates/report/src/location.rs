//! Locations of findings for services that show them beside a file: each of them requires a path and a line.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::plain_text::short;
use image::dockerfile::Dockerfile;
use model::ImageSummary;
use model::Site;

/// Percent-encodes all but the unreserved characters of a URI (RFC 3986, section 2.3) and the slashes between segments.
/// A colon is encoded, since it would turn the first segment into a scheme.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Maximum characters of a path; longer ones are not paths of files.
const LONGEST: usize = 1024;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileLocation {
    /// Relative path with slashes.
    pub(super) path: String,
    /// Line, from 1.
    pub(super) line: usize,
    /// True for a file of the repository; otherwise the path stands for a place in the image.
    pub(super) in_repository: bool,
}

impl FileLocation {
    /// The location of a finding: a line that a user can change, else the whole Dockerfile, else a path that stands for
    /// the place in the image.
    pub(super) fn of(at: &[Site], image: &ImageSummary, dockerfile: Option<&Dockerfile>) -> Self {
        let whole = || dockerfile.map(|dockerfile| Self::real(dockerfile.path().to_owned(), 1));
        at.iter().find_map(|site| Self::line_of(site, image, dockerfile)).or_else(whole).unwrap_or_else(|| {
            let path = at.first().map_or_else(|| "image".to_owned(), pseudo_path);
            Self { path, line: 1, in_repository: false }
        })
    }

    fn line_of(site: &Site, image: &ImageSummary, dockerfile: Option<&Dockerfile>) -> Option<Self> {
        if let Site::Launch { file, line, .. } = site {
            return Some(Self::real(relative(file)?, (*line)?));
        }
        let dockerfile = dockerfile?;
        Some(Self::real(dockerfile.path().to_owned(), dockerfile.line(site, image)?))
    }

    const fn real(path: String, line: usize) -> Self {
        Self { path, line, in_repository: true }
    }

    /// The path as a relative URI reference (RFC 3986).
    pub(super) fn uri(&self) -> String {
        utf8_percent_encode(&self.path, ENCODED).to_string()
    }
}

/// Normalises a path of the repository as services expect it, without `./`. Returns `None` for an absolute path or one
/// that leaves the repository.
pub fn relative(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "." | "")).collect();
    let fits = !path.starts_with(['/', '-']) && !parts.is_empty() && !parts.contains(&"..");
    fits.then(|| parts.join("/"))
}

fn pseudo_path(site: &Site) -> String {
    let path = match site {
        Site::File { path, .. } => format!("image{path}"),
        Site::Config(key) => format!("image/config/{}", key.replace(' ', "/")),
        Site::Probe(step) => format!("image/probe/{step}"),
        Site::Launch { variable, .. } => format!("launch/{variable}"),
        Site::Log { entry, .. } => format!("log/{entry}"),
    };
    let path = short(&path, LONGEST);
    relative(&path).unwrap_or_else(|| "image".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_inside_the_repository_are_accepted() {
        for (path, expected) in [
            ("./docker//Dockerfile", Some("docker/Dockerfile")),
            ("Dockerfile", Some("Dockerfile")),
            ("/etc/passwd", None),
            ("a/../../b", None),
            ("--env", None),
            (".", None),
        ] {
            assert_eq!(relative(path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn uris_have_no_scheme_and_no_special_characters() {
        let site = Site::Config("Env A:B c?#%\u{202e}/../x".to_owned());
        assert_eq!(FileLocation::real("a:b/c d".to_owned(), 1).uri(), "a%3Ab/c%20d");
        assert_eq!(pseudo_path(&site), "image");
        let place = FileLocation {
            path: pseudo_path(&Site::Config("Env x?#%\u{202e}".to_owned())),
            line: 1,
            in_repository: false,
        };
        assert_eq!(place.uri(), "image/config/Env/x%3F%23%25%EF%BF%BD");
    }
}
