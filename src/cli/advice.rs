//! Help for a file or a folder that stands in the place of an image and cannot be one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use facts::launch;
use image::reference::transport_of;
use model::document::read_text;
use model::{Limits, conceal};
use report::Format;

/// Endings of launch files.
pub(super) const LAUNCH_ENDINGS: &[&str] = &["yaml", "yml", "json", "sh", "sbatch", "slurm", "env"];

/// Files and folders that make a folder an image: a layout, a copy by skopeo, a root file system.
const IMAGE_MARKS: &[&str] = &["index.json", "version", "etc", "usr"];

/// Maximum number of files of a kind that are named.
const MOST_NAMES: usize = 3;

/// Maximum number of files of a folder that are read to find those that start something.
const MOST_READ: usize = 50;

/// What a file of a project is to ncclcheck.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Dockerfile,
    Launch,
    Log,
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
            "log" | "out" | "err" => Some(Self::Log),
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
            Self::Log => Some(format!("ncclcheck log {path}")),
            Self::Archive => Some(format!("ncclcheck check {path}")),
            Self::Program => None,
        }
    }
}

/// The error for a text that names a URL, a Dockerfile, a launch file, a log, a program, the folder of a project, a standard input
/// on which a person would have to type the image, or another word of a command line; `None` for all others.
pub(super) fn refusal(image: &str, is_terminal: bool) -> Option<String> {
    let shown = if image.trim().is_empty() { format!("'{image}'").into() } else { conceal(image) };
    let refused = |what: &str, help: &str| Some(format!("{shown} {what}\n  help: {help}"));
    if is_stdin(image) && is_terminal {
        return refused(
            "is standard input, which is a terminal here",
            "pipe an archive into it: docker save NAME | ncclcheck check -",
        );
    }
    let is_url =
        image.split_once("://").is_some_and(|(scheme, _)| scheme != "file" && !scheme.contains(['/', '.', '=']));
    if is_url && transport_of(image).is_none() && !Path::new(image).exists() {
        return refused(
            "is a URL and not the name of an image",
            "write the name that docker pull takes, such as pytorch/pytorch:latest, or download an archive and name its file",
        );
    }
    if let Some((what, help)) = misplaced(image) {
        return refused(what, &help);
    }
    let path = Path::new(image);
    if path.is_dir() {
        return folder(path);
    }
    let kind = Kind::of(path).filter(|_| path.is_file())?;
    let command = kind.command(path).unwrap_or_default();
    match kind {
        Kind::Dockerfile => {
            refused("is a Dockerfile and not an image", &format!("check the image that it builds: {command}"))
        }
        Kind::Launch if starts_something(path) => {
            refused("is a launch file and not an image", &format!("judge it and the image that it names: {command}"))
        }
        Kind::Log => refused("is a log and not an image", &format!("find what failed first: {command}")),
        Kind::Program => {
            refused("is a program and not an image", "check the image that runs it: ncclcheck check IMAGE")
        }
        Kind::Launch | Kind::Archive => None,
    }
}

/// The command for a file that stands in the place of a launch file and is an image, a Dockerfile or a log; `None` for all others.
pub(super) fn instead_of_launch(file: &Path) -> Option<String> {
    let kind = Kind::of(file).filter(|kind| [Kind::Archive, Kind::Dockerfile, Kind::Log].contains(kind))?;
    kind.command(file)
}

/// Dashes that word processors put in the place of hyphens.
const DASHES: [char; 3] = ['\u{2013}', '\u{2014}', '\u{2212}'];

/// Quotes of word processors.
const QUOTES: [char; 4] = ['\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}'];

/// Programs that start containers.
const STARTERS: [&str; 7] = ["apptainer", "docker", "kubectl", "nerdctl", "podman", "srun", "sudo"];

/// The endings of the files of reports, which may stand where the image belongs, with their formats.
const REPORTS: [(&str, &str); 6] =
    [("csv", "csv"), ("html", "html"), ("json", "json"), ("xml", "junit"), ("md", "markdown"), ("sarif", "sarif")];

/// What a word of a command line is that names neither a path nor an image, and what to write; `None` for all others.
fn misplaced(word: &str) -> Option<(&'static str, String)> {
    if Path::new(word).exists() || transport_of(word).is_some() || is_stdin(word) {
        return None;
    }
    let shown = conceal(word);
    let plain = shown.trim_matches(|c: char| c.is_whitespace() || QUOTES.contains(&c));
    let said = |what, help: &str| Some((what, help.to_owned()));
    match word.split_once('=') {
        _ if plain.is_empty() || word == "\\" => {
            let help =
                "a variable of the shell may be empty, or a space may follow the \\ at the end of a line that goes on";
            said("is not an image", help)
        }
        _ if word.starts_with(DASHES) => {
            said("begins with a dash and not with a hyphen", &format!("write --{}", shown.trim_start_matches(DASHES)))
        }
        _ if plain != shown => said("has quotes or spaces around a name", &format!("write {plain}")),
        _ if word.starts_with('@') => {
            said("is not an image", &format!("write --list {} for a list of images", shown.trim_start_matches('@')))
        }
        None if word.contains(',') => {
            let names: Vec<_> = shown.split(',').collect();
            said("is not one image", &format!("write spaces between images: {}", names.join(" ")))
        }
        _ if word.starts_with("file://") => {
            said("is a URL and not a path", &format!("write {}", shown.trim_start_matches("file://")))
        }
        _ if word.split_whitespace().next().is_some_and(|first| STARTERS.contains(&first)) => {
            let help = "name the image alone, or a file with the line: ncclcheck check --launch FILE";
            if word.contains(char::is_whitespace) { said("is a command and not an image", help) } else { None }
        }
        Some((name, _)) if name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_') => {
            said("is a variable and not an image", &format!("write --env {shown}"))
        }
        Some(_) => said("is not an image", "a host is one word: --host driver=550.54,gpu=h100x8"),
        None if word.starts_with('~') || word.contains(['*', '?', '$']) => said(
            "has characters that the shell did not replace",
            "it replaces ~, $NAME and * outside of single quotes, and * only where a file matches",
        ),
        None if word.contains('\\') => said("is a path of Windows", "write it with /; in WSL, C:\\ is /mnt/c"),
        None if word == "IMAGE" || word.starts_with('<') && word.ends_with('>') => {
            said("stands for an image", "write the name of yours, such as pytorch/pytorch:latest")
        }
        None if word == "latest" => said("is a tag and not an image", "write it behind a colon: NAME:latest"),
        None if ["true", "false", "yes", "no"].contains(&word) => {
            said("is a value and not an image", "write it with =, as in --tls-verify=false")
        }
        None if Format::ALL.iter().any(|format| format.name() == word) => said(
            "is a format and not an image",
            &format!("write --format {word}; docker://{word} and docker-daemon:{word} name images"),
        ),
        None => format_of_file(word).map(|format| {
            let help = format!("write --format {format}={shown} for a report in this file");
            ("is not an image, and there is no file of this name", help)
        }),
    }
}

/// The format of a report in a file of this name; `None` for the name of an image, also for one in a registry.
fn format_of_file(word: &str) -> Option<&'static str> {
    let (_, ending) = word.rsplit_once('.')?;
    let in_registry = word.split_once('/').is_some_and(|(host, _)| host.contains(['.', ':']) && !host.starts_with('.'));
    let known = REPORTS.iter().find(|(of_file, _)| *of_file == ending);
    known.filter(|_| !in_registry).map(|(_, format)| *format)
}

/// Returns true if the image is an archive on standard input.
pub(super) fn is_stdin(image: &str) -> bool {
    image == "-" || image.starts_with("-:")
}

/// Returns true if `--launch` finds a container or a variable in this file. `PATH` alone is of any script, also of a workflow's.
fn starts_something(file: &Path) -> bool {
    let name = file.to_string_lossy();
    let read = read_text(file, &Limits::default()).ok().and_then(|text| launch::read(&name, &text).ok());
    read.map(launch::LaunchFile::with_shown)
        .is_some_and(|file| !file.containers.is_empty() || file.settings.iter().any(|set| set.name != "PATH"))
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
        let of_kind: Vec<_> = files.iter().filter(|file| Kind::of(file) == Some(wanted)).collect();
        let is_bounded = of_kind.len() > MOST_READ;
        let read = of_kind.into_iter().take(MOST_READ);
        let named = read.filter(|file| wanted != Kind::Launch || starts_something(file));
        let commands = named.filter_map(|file| wanted.command(file.strip_prefix(".").unwrap_or(file)));
        let mut commands: Vec<_> = commands.collect();
        let more = commands.len().saturating_sub(MOST_NAMES);
        commands.truncate(MOST_NAMES);
        let more =
            (more > 0).then(|| format!("and {}{more} more of this kind", if is_bounded { "at least " } else { "" }));
        commands.into_iter().chain(more)
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
        let shown = |name: &str| refusal(&path(name), false).map(|text| text.replace(&path(""), ""));
        assert_eq!(shown("."), None);
        for name in ["Dockerfile.gpu", "train.py", "x.tar", "job.log"] {
            fs::write(path(name), "").unwrap();
        }
        fs::write(path("job.yaml"), "services: {train: {image: torch:1}}").unwrap();
        fs::write(path("action.yml"), "runs: {steps: [{env: {PATH: /x, INPUT_IMAGE: y}}]}").unwrap();
        fs::create_dir(path("sub")).unwrap();
        for (name, expected) in [
            ("Dockerfile.gpu", Some("Dockerfile.gpu is a Dockerfile and not an image")),
            ("job.yaml", Some("job.yaml is a launch file and not an image")),
            ("train.py", Some("train.py is a program and not an image")),
            ("job.log", Some("job.log is a log and not an image")),
            ("action.yml", None),
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
        for number in 0..60 {
            fs::write(path(&format!("y{number:02}.tar")), "").unwrap();
        }
        let listed = || shown(".").unwrap().replace("./", "");
        assert!(listed().contains("check y01.tar\n    and at least 47 more of this kind\n    docker build"));
        (5..60).for_each(|number| fs::remove_file(path(&format!("y{number:02}.tar"))).unwrap());
        assert!(listed().contains("check y01.tar\n    and 3 more of this kind\n    docker build"));
        fs::write(path("index.json"), "").unwrap();
        assert_eq!(shown("."), None);
        assert!(
            refusal("https://hub.example/r/torch", false).unwrap().contains("is a URL and not the name of an image")
        );
        for (word, expected) in [
            (" ", "' ' is not an image\n  help: a variable of the shell may be empty, or a space may follow the \\"),
            ("", "'' is not an image\n  help: a variable of the shell may be empty"),
            (
                "out.json",
                "out.json is not an image, and there is no file of this name\n  help: write --format json=out.json",
            ),
            (
                "out/report.html",
                "out/report.html is not an image, and there is no file of this name\n  help: write --format html",
            ),
            ("\u{2013}format", "\u{2013}format begins with a dash and not with a hyphen\n  help: write --format"),
            ("\u{201c}a.tar\u{201d}", "\u{201c}a.tar\u{201d} has quotes or spaces around a name\n  help: write a.tar"),
            ("torch:1\n", "torch:1\n has quotes or spaces around a name\n  help: write torch:1"),
            ("file:///a.tar", "file:///a.tar is a URL and not a path\n  help: write /a.tar"),
            ("docker run torch:1", "docker run torch:1 is a command and not an image\n  help: name the image alone"),
            ("NCCL_DEBUG=INFO", "NCCL_DEBUG=INFO is a variable and not an image\n  help: write --env NCCL_DEBUG=INFO"),
            ("gpu=h100x8", "gpu=h100x8 is not an image\n  help: a host is one word: --host driver=550.54,gpu=h100x8"),
            ("~/a.tar", "~/a.tar has characters that the shell did not replace\n  help: it replaces ~, $NAME and *"),
            ("C:\\a.tar", "C:\\a.tar is a path of Windows\n  help: write it with /"),
            ("<image>", "<image> stands for an image\n  help: write the name of yours"),
            ("json", "json is a format and not an image\n  help: write --format json"),
            ("false", "false is a value and not an image\n  help: write it with =, as in --tls-verify=false"),
            ("no", "no is a value and not an image\n  help: write it with =, as in --tls-verify=false"),
            ("latest", "latest is a tag and not an image\n  help: write it behind a colon"),
            ("a:1,b:2", "a:1,b:2 is not one image\n  help: write spaces between images: a:1 b:2"),
            ("@list.txt", "@list.txt is not an image\n  help: write --list list.txt"),
            (
                "s3://bucket/a.tar",
                "s3://bucket/a.tar is a URL and not the name of an image\n  help: write the name that docker pull",
            ),
        ] {
            let said = refusal(word, false).unwrap();
            assert!(said.starts_with(expected), "{said}");
        }
        for name in
            ["torch:1", "reg.example/a.json", "docker", "registry.example:5000/a/b@sha256:00", "docker://a", "oci:a=b"]
        {
            assert_eq!(refusal(name, false), None, "{name}");
        }
        assert!(refusal("-", true).unwrap().contains("a terminal"));
        assert_eq!(refusal("-", false), None);
    }
}
