//! Policy files as texts. They are read before the images, because they may say how to read them; their rules are
//! compiled while the images are read.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use model::Limits;
use model::document::{Document, DocumentError, FileError, Spanned, read_text};

use super::PolicyLayer;

/// Names of a policy file.
const NAMES: [&str; 2] = ["ncclcheck.yaml", "ncclcheck.yml"];
/// Prefix of a policy in a registry.
const REGISTRY: &str = "oci://";
/// Maximum policies that build on each other.
const DEPTH: usize = 8;

/// A policy that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyText {
    /// The path as given, or the reference of a policy in a registry.
    pub path: PathBuf,
    /// The path, for messages.
    name: String,
    text: String,
    reach: Reach,
    /// True once the policies that it builds on were read.
    has_bases: bool,
}

/// The files that a policy may name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Reach {
    /// All files: the user named the policy.
    Everything,
    /// Those in this folder and below: the policy was found there.
    Folder(PathBuf),
    /// None: the policy comes from a registry.
    Nothing,
}

/// Reason why a policy could not be read.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// A policy is invalid.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A policy cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
}

impl PolicyText {
    /// Reads a file that the user named.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        Self::read_within(path, Reach::Everything)
    }

    /// Reads the policy of a registry, `oci://HOST/NAME@DIGEST`, which `fetch` returns.
    pub fn fetch(reference: &str, fetch: impl Fn(&str) -> Result<String, String>) -> Result<Option<Self>, FileError> {
        let Some(name) = reference.strip_prefix(REGISTRY) else { return Ok(None) };
        let path = PathBuf::from(reference);
        match fetch(name) {
            Ok(text) => {
                Ok(Some(Self { path, name: reference.to_owned(), text, reach: Reach::Nothing, has_bases: false }))
            }
            Err(why) => Err(FileError { path, why }),
        }
    }

    /// Finds and reads the policy file of a folder: its own or, inside a repository, the nearest one above it up to the
    /// repository's top. Outside a repository, the parent folders may belong to other users. The path is relative to
    /// the folder. The author of a pull request can write such a file, so neither it nor a file that it names may be
    /// outside of the repository.
    pub fn find(folder: &Path) -> Result<Option<Self>, FileError> {
        let top = folder.ancestors().find(|above| above.join(".git").exists()).unwrap_or(folder);
        let mut way_up = PathBuf::new();
        for above in folder.ancestors() {
            if let Some(name) = NAMES.iter().find(|name| above.join(name).symlink_metadata().is_ok()) {
                let path = way_up.join(name);
                let is_regular = above.join(name).symlink_metadata().is_ok_and(|metadata| metadata.is_file());
                if !is_regular {
                    let why = "not a regular file\n  help: name the file itself with --config, or use --no-config";
                    return Err(FileError { path, why: why.to_owned() });
                }
                return Self::read_within(&path, Reach::Folder(top.to_owned())).map(Some);
            }
            if above == top {
                return Ok(None);
            }
            way_up.push("..");
        }
        Ok(None)
    }

    /// A policy that is not a file, under the name of what it is derived from.
    pub(super) fn derived(name: &str, text: String) -> Self {
        Self { path: name.into(), name: name.to_owned(), text, reach: Reach::Nothing, has_bases: true }
    }

    fn read_within(path: &Path, reach: Reach) -> Result<Self, FileError> {
        let text = read_text(path, &Limits::default())?;
        Ok(Self { path: path.to_owned(), name: path.display().to_string(), text, reach, has_bases: false })
    }

    /// The text, with its name.
    pub fn document(&self) -> Document<'_> {
        Document { name: &self.name, text: &self.text }
    }

    /// The folders of rules that the policy names.
    pub fn folders(&self) -> Result<Vec<PathBuf>, DocumentError> {
        let layer = PolicyLayer::read(self.document())?;
        layer.file.rules.folders.iter().map(|folder| self.file(folder)).collect()
    }

    /// The policies that this one builds on, with those that they build on, then this one. `fetch` returns the policy of
    /// a registry by its name.
    pub fn with_bases(self, fetch: &dyn Fn(&str) -> Result<String, String>) -> Result<Vec<Self>, PolicyError> {
        let mut texts = Vec::new();
        self.gather(fetch, &mut Vec::new(), &mut texts)?;
        Ok(texts)
    }

    fn gather(
        self,
        fetch: &dyn Fn(&str) -> Result<String, String>,
        above: &mut Vec<PathBuf>,
        texts: &mut Vec<Self>,
    ) -> Result<(), PolicyError> {
        above.push(self.path.clone());
        for base in PolicyLayer::read(self.document())?.file.extends {
            let text = self.base(&base, fetch)?;
            if above.contains(&text.path) || above.len() >= DEPTH {
                let what = format!("{} builds on itself, or on more than {DEPTH} policies", base.value);
                return Err(self.document().mistake(&base, what).into());
            }
            text.gather(fetch, above, texts)?;
        }
        above.pop();
        texts.push(Self { has_bases: true, ..self });
        Ok(())
    }

    /// Returns true if the policies that this one builds on were read.
    pub fn has_bases(&self) -> bool {
        self.has_bases
    }

    /// A policy that this one builds on.
    fn base(
        &self,
        base: &Spanned<String>,
        fetch: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Self, PolicyError> {
        let mistake = |error: FileError| self.document().mistake(base, error.to_string());
        if let Some(text) = Self::fetch(&base.value, fetch).map_err(mistake)? {
            return Ok(text);
        }
        let path = self.file(base)?;
        Self::read_within(&path, self.reach.clone()).map_err(|error| mistake(error).into())
    }

    /// The path of a file or folder that this policy names, relative to the policy.
    pub fn file(&self, named: &Spanned<String>) -> Result<PathBuf, DocumentError> {
        let path = self.path.parent().unwrap_or(Path::new("")).join(&named.value);
        let (top, why) = match &self.reach {
            Reach::Everything => return Ok(path),
            Reach::Folder(top) => (top, "it is outside of this repository"),
            Reach::Nothing => {
                let why = format!("{}: a policy of a registry cannot name files", named.value);
                return Err(self.document().mistake(named, why));
            }
        };
        let is_inside = match (path.canonicalize(), top.canonicalize()) {
            (Ok(path), Ok(top)) => path.starts_with(top),
            // What does not exist is reported where it is read.
            _ => true,
        };
        if is_inside {
            return Ok(path);
        }
        let help = "name the policy with --config to allow it".to_owned();
        Err(self.document().mistake(named, format!("{}: {why}", named.value)).help(Some(help)))
    }
}
