//! Files that people write for the program, read within limits.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::model::{Limits, OverLimit};

use super::Failure;

/// A rule's file.
#[derive(Clone)]
pub(super) struct RuleFile {
    /// What the rule must be called: its folder's name and its own.
    pub(super) id: String,
    pub(super) path: PathBuf,
}

/// All rules of a folder, or one file.
pub(super) fn rule_files(place: &Path) -> Result<Vec<RuleFile>, Failure> {
    let failed = |path: &Path, why: &dyn std::fmt::Display| Failure::Usage(format!("{}: {why}", path.display()));
    let (mut found, mut folders) =
        if place.is_file() { (vec![place.to_owned()], Vec::new()) } else { (Vec::new(), vec![place.to_owned()]) };
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| failed(&folder, &error))? {
            let entry = entry.map_err(|error| failed(&folder, &error))?;
            // A link to a folder is not followed: it may lead back.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let path = entry.path();
            if is_folder {
                folders.push(path);
            } else if path.is_file()
                && path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
            {
                found.push(path);
            }
        }
    }
    if found.is_empty() {
        return Err(failed(place, &"there is no rule in it: no file AREA/NAME.yaml"));
    }
    found.sort();
    let file = |path: PathBuf| {
        let whole = path.canonicalize().map_err(|error| failed(&path, &error))?;
        let name = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let area = name(whole.parent().and_then(Path::file_name));
        Ok(RuleFile { id: format!("{area}/{}", name(whole.file_stem())), path })
    };
    found.into_iter().map(file).collect()
}

/// The text of a file, within the limit for such.
pub(super) fn read(path: &Path) -> Result<String, Failure> {
    let text = text(path, &Limits::default());
    text.map_err(|why| Failure::Usage(format!("{}: {why}", path.display())))
}

/// The same within these limits, or why there is none: it may be the wrong file, and large.
pub(super) fn text(path: &Path, limits: &Limits) -> Result<String, String> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    #[expect(clippy::disallowed_methods, reason = "bounded by the limit")]
    file.take(limits.text_file + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > limits.text_file {
        return Err(OverLimit::new("it has more bytes of text", "text_file", limits.text_file).to_string());
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = error.as_bytes().iter().take(good).filter(|byte| **byte == b'\n').count() + 1;
        format!("it is no UTF-8 text: byte {good}, on line {line}, begins no character")
    })
}
