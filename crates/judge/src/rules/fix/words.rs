//! Words of a fix that depend on how the image was made and where a setting is written.

use facts::Facts;
use facts::key;
use facts::words::Installer;
use model::{Fact, Site};

use super::{FixSubject, ImageNames};

/// The most places that a fix names.
const SHOWN: usize = 4;

/// A word that a fix may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FixWord {
    /// The image's name in a command of an engine.
    Image,
    /// The image's reference in a command of ncclcheck.
    Reference,
    /// The argument that selects the image for a probe: its reference, or `--in-place`.
    Run,
    /// The command that installs a Python package, up to the package's name.
    Install,
    /// The command that installs a Python package again without what it requires.
    Reinstall,
    /// The command that removes a Python package.
    Uninstall,
    /// A sentence, without its full stop, about removing the settings that the finding is about.
    Remove,
    /// The places of the settings that the finding is about, such as `in line 4 of job.sh`.
    Where,
    /// The value that the image's configuration sets; `None` where the settings are elsewhere.
    Baked,
    /// What begins a setting in the place of the finding's settings.
    Env,
}

impl FixWord {
    /// Finds a word that is written in braces.
    pub(super) fn find(name: &str) -> Option<Self> {
        Some(match name {
            "install" => Self::Install,
            "reinstall" => Self::Reinstall,
            "uninstall" => Self::Uninstall,
            "remove" => Self::Remove,
            "where" => Self::Where,
            "baked" => Self::Baked,
            "env" => Self::Env,
            _ => return None,
        })
    }

    /// Replaces words in a text for pages that are about no image.
    pub(super) fn page(text: String) -> String {
        let no_image = FixSubject { names: &ImageNames::default(), at: &[] };
        let words = ["install", "reinstall", "uninstall", "remove", "where", "baked", "env"];
        words.into_iter().fold(text, |text, name| {
            let place = format!("{{{name}}}");
            let word = Self::find(name).filter(|_| text.contains(&place));
            match word.and_then(|word| word.fill(&Facts::default(), &no_image)) {
                Some(word) => text.replace(&place, &word),
                None => text,
            }
        })
    }

    /// The text; `None` where the step that uses the word does not fit the image.
    pub(super) fn fill(self, facts: &Facts, subject: &FixSubject<'_>) -> Option<String> {
        match self {
            // The rest of a user's own command.
            Self::Image => Some(subject.names.engine.clone().unwrap_or_else(|| "…".to_owned())),
            // ncclcheck accepts nothing in place of these.
            Self::Reference => subject.names.reference.clone(),
            Self::Run => subject.names.run.clone(),
            Self::Remove => Some(remove(subject.at)),
            Self::Where => Some(places(subject.at)),
            Self::Baked => is_baked(subject.at).then(|| "the image's value".to_owned()),
            Self::Env => Some(if is_baked(subject.at) { "ENV " } else { "" }.to_owned()),
            Self::Install => tool(facts).map(|tool| tool.command("install", "")),
            Self::Reinstall => tool(facts).map(|tool| {
                tool.command(
                    "install",
                    if tool.is_uv { " --reinstall --no-deps" } else { " --force-reinstall --no-deps" },
                )
            }),
            Self::Uninstall => tool(facts).map(|tool| tool.command("uninstall", if tool.is_uv { "" } else { " -y" })),
        }
    }
}

/// A program that installs wheels.
struct WheelTool {
    is_uv: bool,
    /// The interpreter to install for, if a command without it may choose another one.
    python: Option<String>,
}

impl WheelTool {
    fn command(&self, verb: &str, options: &str) -> String {
        match (self.is_uv, &self.python) {
            (true, Some(python)) => format!("uv pip {verb}{options} --python {python}"),
            (true, None) => format!("uv pip {verb}{options}"),
            (false, Some(python)) => format!("{python} -m pip {verb}{options}"),
            (false, None) => format!("pip {verb}{options}"),
        }
    }
}

/// The program that installs wheels for the image's Python; `None` where torch does not come from a wheel.
fn tool(facts: &Facts) -> Option<WheelTool> {
    let installer = facts.get(key::TORCH_INSTALLER).value().copied();
    let is_uv = match installer {
        Some(Installer::Conda | Installer::Apt) => return None,
        Some(Installer::Uv) => true,
        Some(Installer::Pip) | None => false,
    };
    let python = match facts.get(key::PYTHON_PATH) {
        Fact::Seen { value, .. } => Some(value.to_string()),
        Fact::Absent | Fact::Unknown(_) => None,
    };
    // uv asks for an environment, or for the interpreter by its path; pip of a system's folder needs neither.
    let is_default =
        |path: &String| !is_uv && ["/usr/bin/", "/usr/local/bin/"].iter().any(|folder| path.starts_with(folder));
    Some(WheelTool { is_uv, python: python.filter(|path| !is_default(path)) })
}

/// Returns true where an instruction of a Dockerfile made a setting, or where nothing shows what did. Launch files and
/// `nccl.conf` have lines of the form `NAME=value`.
fn is_baked(at: &[Site]) -> bool {
    at.iter().all(|site| place(site).is_none()) || at.iter().any(|site| matches!(site, Site::Config(_)))
}

/// A sentence about the places of settings: `Remove NCCL_ALGO from job.sh, line 4`.
fn remove(at: &[Site]) -> String {
    let places = at.iter().filter_map(|site| {
        let place = place(site)?;
        Some(match (variable(site), site) {
            (Some(name), _) => format!("{name} from {place}"),
            (None, Site::File { within: Some(_), .. }) => place,
            (None, _) => format!("the setting from {place}"),
        })
    });
    listed(places.collect(), "; ", "; and")
        .map_or_else(|| "Remove the line that sets it".to_owned(), |places| format!("Remove {places}"))
}

/// The places of settings, as a part of a sentence: `in line 4 of job.sh`.
fn places(at: &[Site]) -> String {
    let places = at.iter().filter_map(place).map(|place| format!("in {place}"));
    listed(places.collect(), ", ", " and").unwrap_or_else(|| "where the setting is".to_owned())
}

/// The first of several places, and how many more there are.
fn listed(mut places: Vec<String>, between: &str, last: &str) -> Option<String> {
    places.dedup();
    let more = places.len().saturating_sub(SHOWN);
    places.truncate(SHOWN);
    let text = places.join(between);
    match (places.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(text),
        (false, more) => Some(format!("{text}{last} {more} more")),
    }
}

/// The place of a setting.
fn place(site: &Site) -> Option<String> {
    match site {
        Site::Config(key) if key.starts_with("Env ") => Some("the Dockerfile's ENV".to_owned()),
        Site::Config(_) => Some("the Dockerfile's ENTRYPOINT and CMD".to_owned()),
        Site::Launch { file, line: Some(line), .. } => Some(format!("line {line} of {file}")),
        Site::Launch { file, line: None, .. } => Some(file.clone()),
        Site::File { path, within: Some(within), .. } => {
            let line = within.rsplit_once(", ").map_or(within.as_str(), |(line, _)| line);
            Some(format!("{line} of {path}"))
        }
        Site::File { path, within: None, .. } => Some(path.to_string()),
        Site::Probe(_) | Site::Log { .. } => None,
    }
}

/// The variable that a setting sets, where its place has only one.
fn variable(site: &Site) -> Option<&str> {
    match site {
        Site::Config(key) => key.strip_prefix("Env "),
        Site::Launch { variable, .. } => Some(variable),
        Site::File { within: Some(within), .. } => within.rsplit_once(", ").map(|(_, name)| name),
        Site::File { within: None, .. } | Site::Probe(_) | Site::Log { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_removed_where_they_are() {
        let launch = |line| Site::Launch { file: "job.sh".to_owned(), line, variable: "NCCL_ALGO".to_owned() };
        let file = Site::File { layer: 0, path: "etc/nccl.conf".into(), within: Some("line 2, NCCL_ALGO".to_owned()) };
        let config = Site::Config("Env NCCL_ALGO".to_owned());
        for (at, expected) in [
            (vec![], "Remove the line that sets it"),
            (vec![config.clone()], "Remove NCCL_ALGO from the Dockerfile's ENV"),
            (vec![launch(Some(4))], "Remove NCCL_ALGO from line 4 of job.sh"),
            (vec![launch(None), file], "Remove NCCL_ALGO from job.sh; NCCL_ALGO from line 2 of /etc/nccl.conf"),
            (
                vec![Site::Config("Entrypoint and Cmd".to_owned())],
                "Remove the setting from the Dockerfile's ENTRYPOINT and CMD",
            ),
            (vec![config, Site::Probe("nccl".to_owned())], "Remove NCCL_ALGO from the Dockerfile's ENV"),
            (
                (1..=6).map(|line| launch(Some(line))).collect(),
                "Remove NCCL_ALGO from line 1 of job.sh; NCCL_ALGO from line 2 of job.sh; NCCL_ALGO from line 3 of \
                 job.sh; NCCL_ALGO from line 4 of job.sh; and 2 more",
            ),
        ] {
            assert_eq!(remove(&at), expected);
        }
    }

    #[test]
    fn places_are_parts_of_sentences() {
        let launch = |line| Site::Launch { file: "job.sh".to_owned(), line, variable: "NCCL_ALGO".to_owned() };
        let file = Site::File { layer: 0, path: "etc/nccl.conf".into(), within: Some("line 2".to_owned()) };
        for (at, expected) in [
            (vec![], "where the setting is"),
            (vec![Site::Config("Env NCCL_ALGO".to_owned())], "in the Dockerfile's ENV"),
            (vec![launch(Some(4)), file], "in line 4 of job.sh, in line 2 of /etc/nccl.conf"),
            (
                (1..=5).map(|line| launch(Some(line))).collect(),
                "in line 1 of job.sh, in line 2 of job.sh, in line 3 of job.sh, in line 4 of job.sh and 1 more",
            ),
        ] {
            assert_eq!(places(&at), expected);
        }
    }

    #[test]
    fn a_setting_is_written_as_its_place_has_it() {
        let launch = Site::Launch { file: "job.sh".to_owned(), line: Some(4), variable: "NCCL_ALGO".to_owned() };
        let file = Site::File { layer: 0, path: "etc/nccl.conf".into(), within: Some("line 2, NCCL_ALGO".to_owned()) };
        let config = Site::Config("Env NCCL_ALGO".to_owned());
        let facts = Facts::default();
        let names = ImageNames::default();
        for (at, is_baked) in [
            (vec![], true),
            (vec![config.clone()], true),
            (vec![config, launch.clone()], true),
            (vec![Site::Probe("nccl".to_owned())], true),
            (vec![launch], false),
            (vec![file], false),
        ] {
            let subject = FixSubject { names: &names, at: &at };
            let filled = [FixWord::Baked, FixWord::Env].map(|word| word.fill(&facts, &subject));
            let expected = if is_baked { [Some("the image's value"), Some("ENV ")] } else { [None, Some("")] };
            assert_eq!(filled, expected.map(|text| text.map(ToOwned::to_owned)), "{at:?}");
        }
    }

    #[test]
    fn the_command_is_that_of_the_program_that_installed_torch() {
        let facts = |installer: Option<Installer>, python: Option<&str>| {
            let mut facts = Facts::default();
            facts.insert(key::TORCH_INSTALLER, Fact::from(installer));
            facts.insert(key::PYTHON_PATH, Fact::from(python.map(Into::into)));
            facts
        };
        let names = ImageNames::default();
        let subject = FixSubject { names: &names, at: &[] };
        let venv = Some("/opt/venv/bin/python");
        for (installer, python, install, reinstall, uninstall) in [
            (None, None, "pip install", "pip install --force-reinstall --no-deps", "pip uninstall -y"),
            (
                Some(Installer::Pip),
                Some("/usr/bin/python3"),
                "pip install",
                "pip install --force-reinstall --no-deps",
                "pip uninstall -y",
            ),
            (
                Some(Installer::Pip),
                venv,
                "/opt/venv/bin/python -m pip install",
                "/opt/venv/bin/python -m pip install --force-reinstall --no-deps",
                "/opt/venv/bin/python -m pip uninstall -y",
            ),
            (
                Some(Installer::Uv),
                venv,
                "uv pip install --python /opt/venv/bin/python",
                "uv pip install --reinstall --no-deps --python /opt/venv/bin/python",
                "uv pip uninstall --python /opt/venv/bin/python",
            ),
        ] {
            let facts = facts(installer, python);
            let filled =
                [FixWord::Install, FixWord::Reinstall, FixWord::Uninstall].map(|word| word.fill(&facts, &subject));
            assert_eq!(filled, [install, reinstall, uninstall].map(|text| Some(text.to_owned())));
        }
        for installer in [Installer::Conda, Installer::Apt] {
            assert_eq!(FixWord::Install.fill(&facts(Some(installer), venv), &subject), None);
        }
    }
}
