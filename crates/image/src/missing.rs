//! A reference without a transport whose path does not exist: is it a mistyped file, or the name of an image?

use std::fs;
use std::io;
use std::path::Path;

use super::reference::untagged;
use super::source::SourceError;
use model::{cause, nearest, printable};

/// Endings of the files that hold images.
const ENDINGS: [&str; 14] = [
    ".tar",
    ".tar.gz",
    ".tgz",
    ".tar.xz",
    ".txz",
    ".tar.bz2",
    ".tbz2",
    ".tar.zst",
    ".tzst",
    ".oci",
    ".sif",
    ".sqsh",
    ".sqfs",
    ".squashfs",
];

/// Returns true if the text can only mean a file or a folder, so that no engine and no registry is asked for it.
pub(super) fn is_path(text: &str) -> bool {
    if text.starts_with(['/', '.', '~']) {
        return true;
    }
    let name = untagged(text);
    let ending = name.to_ascii_lowercase();
    if ENDINGS.iter().any(|known| ending.ends_with(known)) {
        return true;
    }
    // `org/name` is a name, and so is `org/name:tag` even in a folder where `org` exists.
    name == text && name.split_once('/').is_some_and(|(first, _)| Path::new(first).is_dir())
}

/// The error about a path that cannot be opened.
pub(super) fn missing(text: &str, error: &io::Error) -> SourceError {
    let shown = printable(text);
    if error.kind() != io::ErrorKind::NotFound {
        return SourceError::invalid(format!("reading {shown}: {}", cause(error)));
    }
    SourceError::invalid(format!("no such file or folder: {shown}")).with_hint(advice(text))
}

/// The error about the file of a transport that cannot be opened.
pub(super) fn missing_file(path: &Path, error: &io::Error) -> SourceError {
    let shown = path.display().to_string();
    let shown = printable(&shown);
    if error.kind() != io::ErrorKind::NotFound {
        return SourceError::invalid(format!("opening {shown}: {}", cause(error)));
    }
    let hint = similar(path).map(|near| format!("did you mean {}?", printable(&near)));
    SourceError::invalid(format!("no such file: {shown}")).with_hint(hint)
}

fn advice(text: &str) -> String {
    let name = untagged(text);
    if name != text && Path::new(name).is_file() {
        let selector = text.strip_prefix(name).unwrap_or_default();
        return format!("to choose an image of an archive, write docker-archive:{name}{selector}");
    }
    if name != text && Path::new(name).join("index.json").is_file() {
        return format!("to choose an image of a layout, write oci:{text}");
    }
    if let Some(near) = similar(Path::new(name)) {
        return format!("did you mean {}?", printable(&near));
    }
    if text.starts_with(['/', '.', '~']) {
        return "check the path, or write docker://NAME for an image in a registry".to_owned();
    }
    format!("if it is the name of an image, write docker-daemon:{0} or docker://{0}", printable(text))
}

/// A file in the same folder with a similar name.
fn similar(path: &Path) -> Option<String> {
    let folder = path.parent()?;
    let wanted = path.file_name()?.to_str()?;
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let names: Vec<String> =
        fs::read_dir(here).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    let near = nearest(wanted, names.iter().map(String::as_str))?;
    Some(folder.join(near).to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_paths_are_distinguished() {
        for (text, path) in [
            ("nosuch.tar", true),
            ("nosuch.tar.gz", true),
            ("NoSuch.SIF", true),
            ("images/nope.sqsh", true),
            ("image.tar:v1", true),
            ("./x", true),
            ("../x", true),
            ("~/x", true),
            ("/x", true),
            // The tests run in the root of the repository.
            ("src/nope", true),
            ("src/nope:1", false),
            ("library/debian", false),
            ("org/name", false),
            ("debian", false),
            ("tar", false),
            ("my/image:v1.tar", false),
            ("localhost:5000/torch", false),
            ("registry.example/torch@sha256:00", false),
        ] {
            assert_eq!(is_path(text), path, "{text}");
        }
    }

    #[test]
    fn a_missing_file_is_reported_with_a_similar_one() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("torch.tar"), "").unwrap();
        let place = folder.path().display().to_string();
        let told = |text: &str| {
            missing(&format!("{place}/{text}"), &io::Error::from(io::ErrorKind::NotFound))
                .to_string()
                .replace(&place, "DIR")
        };
        assert_eq!(told("troch.tar"), "no such file or folder: DIR/troch.tar\n  help: did you mean DIR/torch.tar?");
        assert_eq!(
            told("torch.tar:v1"),
            "no such file or folder: DIR/torch.tar:v1\n  help: to choose an image of an archive, write \
             docker-archive:DIR/torch.tar:v1"
        );
        fs::create_dir(folder.path().join("layout")).unwrap();
        fs::write(folder.path().join("layout/index.json"), "{}").unwrap();
        let chosen = "help: to choose an image of a layout, write oci:DIR/layout:v1";
        assert!(told("layout:v1").ends_with(chosen), "{}", told("layout:v1"));
        assert!(told("other").ends_with("help: check the path, or write docker://NAME for an image in a registry"));
        let name = missing("nosuch.sif", &io::Error::from(io::ErrorKind::NotFound)).to_string();
        assert!(name.ends_with("write docker-daemon:nosuch.sif or docker://nosuch.sif"), "{name}");
    }
}
