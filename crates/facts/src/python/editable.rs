//! Finders of editable packages that setuptools installs: modules that map names to paths.

use model::{Fact, Gap, ImagePath};

use super::super::pattern;
use super::files::ProcessFiles;
use super::modules::{self, Importable};
use super::version::PythonVersion;

// MAPPING: dict[str, str] = {'torch': '/src/torch'}; older releases of setuptools write no type.
pattern!(MAPPING, r"(?m)^MAPPING\b[^=\n]*= *\{([^}\n]*)\}");
pattern!(MAPPED, r#"['"]([^'"]+)['"]: *['"]([^'"]+)['"]"#);

/// What a finder imports by a name: it is asked after every entry of `sys.path`.
pub(super) fn find(
    files: &ProcessFiles<'_>,
    version: PythonVersion,
    finder: &ImagePath,
    name: &str,
) -> Result<Option<Importable>, Gap> {
    let text = match files.text(finder) {
        Fact::Seen { value, .. } => value,
        Fact::Absent => return Ok(None),
        Fact::Unknown(gap) => return Err(gap),
    };
    let Some(mapping) = MAPPING.captures(text).and_then(|captures| captures.get(1)) else {
        return Err(Gap::new(format!("{finder} has no mapping of names that is understood")));
    };
    let path = mapped(mapping.as_bytes(), name);
    // The finder appends the suffix of a module to the path.
    Ok(path.and_then(|path| {
        let name = String::from_utf8_lossy(path.file_name()).into_owned();
        modules::in_entry(files, version, &path.parent(), &name)
    }))
}

/// The path that a mapping has for a name.
fn mapped(mapping: &[u8], name: &str) -> Option<ImagePath> {
    let is_named =
        |captures: &regex::bytes::Captures<'_>| captures.get(1).is_some_and(|key| key.as_bytes() == name.as_bytes());
    let captures = MAPPED.captures_iter(mapping).find(is_named)?;
    Some(ImagePath::normalise(captures.get(2)?.as_bytes()))
}

/// Returns true if a finder maps a name, whether or not the image has what it names.
pub(super) fn names(files: &ProcessFiles<'_>, finder: &ImagePath, name: &str) -> bool {
    files.text(finder).value().is_some_and(|text| mapped(text, name).is_some())
}
