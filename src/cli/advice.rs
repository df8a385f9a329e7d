//! Help for a file or a folder that stands in the place of an image and cannot be one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use model::conceal;

/// Endings of launch files.
pub(super) const LAUNCH_ENDINGS: &[&str] = &["yaml", "yml", "json", "sh", "sbatch", "slurm", "env"];

/// Files and folders that make a folder an image: a layout, a copy by skopeo, a root file system.
const IMAGE_MARKS: &[&str] = &["index.json", "version", "etc", "usr"];

/// Maximum number of files of a kind that are named.
const MOST_NAMES: usize = 3;

/// What a file of a project is to ncclcheck.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Dockerfile,
    Launch,
    Archive,
    Program,
}

impl Kind {
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
        match ending {
            _ if ["Dockerfile", "Containerfile"].iter().any(|kind| name.starts_with(kind)) => Some(Self::Dockerfile),
            "Dockerfile" | "dockerfile" => Some(Self::Dockerfile),
            "py" => Some(Self::Program),
            "tar" | "sif" | "sqsh" => Some(Self::Archive),
            ending => LAUNCH_ENDINGS.contains(&ending).then_some(Self::Launch),
        }
    }

    /// What to run, with this file.
    fn command(self, file: &Path) -> Option<String> {
        let path = conceal(&file.to_string_lossy()).into_owned();
        match self {
            Self::Dockerfile => {
                let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
                let folder = conceal(&folder.to_string_lossy()).into_owned();
                Some(format!("docker build -t NAME -f {path} {folder} && ncclcheck check --dockerfile {path} NAME"))
            }
            Self::Launch => Some(format!("ncclcheck check --launch {path}")),
            Self::Archive => Some(format!("ncclcheck check {path}")),
            Self::Program => None,
        }
    }
}

/// The error for a text that names a Dockerfile, a launch file, a program, or the folder of a project; `None` for all others.
pub(super) fn refusal(image: &str) -> Option<String> {
    let path = Path::new(image);
    if path.is_dir() {
        return folder(path);
    }
    let kind = Kind::of(path).filter(|kind| *kind != Kind::Archive && path.is_file())?;
    let (what, help) = match (kind, kind.command(path)) {
        (Kind::Dockerfile, Some(command)) => ("a Dockerfile", format!("check the image that it builds: {command}")),
        (_, Some(command)) => ("a launch file", format!("judge it and the image that it names: {command}")),
        (_, None) => ("a program", "check the image that runs it: ncclcheck check IMAGE".to_owned()),
    };
    Some(format!("{} is {what} and not an image\n  help: {help}", conceal(image)))
}

/// The same for a folder that is not an image.
fn folder(path: &Path) -> Option<String> {
    if IMAGE_MARKS.iter().any(|mark| path.join(mark).exists()) {
        return None;
    }
    let mut files: Vec<PathBuf> = path.read_dir().ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.is_file());
    files.sort();
    let commands = [Kind::Archive, Kind::Dockerfile, Kind::Launch].into_iter().flat_map(|wanted| {
        let of_kind = files.iter().filter(move |file| Kind::of(file) == Some(wanted)).take(MOST_NAMES);
        of_kind.filter_map(move |file| wanted.command(file.strip_prefix(".").unwrap_or(file)))
    });
    let commands: Vec<_> = commands.map(|command| format!("\n    {command}")).collect();
    let what = format!("the folder {} is not an image", conceal(&path.to_string_lossy()));
    (!commands.is_empty()).then(|| format!("{what}\n  help: with what it contains:{}", commands.concat()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_and_folders_of_a_project() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let shown = |name: &str| refusal(&path(name)).map(|text| text.replace(&path(""), ""));
        assert_eq!(shown("."), None);
        for name in ["Dockerfile.gpu", "job.yaml", "train.py", "x.tar"] {
            fs::write(path(name), "").unwrap();
        }
        fs::create_dir(path("sub")).unwrap();
        for (name, expected) in [
            ("Dockerfile.gpu", Some("Dockerfile.gpu is a Dockerfile and not an image")),
            ("job.yaml", Some("job.yaml is a launch file and not an image")),
            ("train.py", Some("train.py is a program and not an image")),
            ("x.tar", None),
            ("absent.yaml", None),
            ("sub", None),
        ] {
            assert_eq!(shown(name).as_deref().and_then(|text| text.lines().next()), expected);
        }
        let text = shown(".").unwrap();
        let (_, commands) = text.split_once("contains:").unwrap();
        assert_eq!(
            commands.replace("./", "").replace(&*folder.path().to_string_lossy(), "FOLDER"),
            "\n    ncclcheck check x.tar\n    docker build -t NAME -f Dockerfile.gpu FOLDER && ncclcheck check --dockerfile \
             Dockerfile.gpu NAME\n    ncclcheck check --launch job.yaml"
        );
        fs::write(path("index.json"), "").unwrap();
        assert_eq!(shown("."), None);
    }
}
