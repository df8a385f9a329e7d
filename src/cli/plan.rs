//! What was typed, resolved: nothing is left to guess below.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread;

use crate::facts::explain::Question;
use crate::model::{ImagePath, Limits, Severity};
use crate::pipeline::{PlatformChoice, Request};
use crate::report::{Format, Style};
use crate::source::{Environment, Options};

use super::Failure;
use super::args::{Check, Color, Common, FailOn, Inspect, Look};

/// Columns where nobody says how many there are, as in a CI log.
const WIDTH: usize = 80;

/// A run.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) action: Action,
    pub(super) requests: Vec<Request>,
    pub(super) outputs: Vec<(Format, Target)>,
    pub(super) style: Style,
    pub(super) fail_on: Severity,
    pub(super) talk: Talk,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Check,
    Inspect,
    Files,
    Explain(Question),
}

/// Where a report goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Stdout,
    File(PathBuf),
}

/// What is said on standard error while work goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Talk {
    Nothing,
    /// A line now and then.
    Lines,
    Bars,
}

impl Plan {
    pub(super) fn check(check: Check, environment: Environment) -> Result<Self, Failure> {
        let fail_on = match check.fail_on {
            FailOn::Warning => Severity::Warning,
            FailOn::Error => Severity::Error,
        };
        Self::new(Action::Check, check.common, fail_on, environment)
    }

    pub(super) fn inspect(inspect: Inspect, environment: Environment) -> Result<Self, Failure> {
        let path = |text: Option<String>| text.map(|text| ImagePath::from(text.as_str()));
        let action = if inspect.files {
            Action::Files
        } else if inspect.explain.is_empty() {
            Action::Inspect
        } else {
            let (program, caller) = (path(inspect.program), path(inspect.from));
            Action::Explain(Question { names: inspect.explain, program, caller })
        };
        Self::new(action, inspect.common, Severity::Error, environment)
    }

    fn new(action: Action, common: Common, fail_on: Severity, environment: Environment) -> Result<Self, Failure> {
        if let Some(folder) = common.tmp_dir.as_ref().filter(|folder| !folder.is_dir()) {
            return Err(Failure::Usage(format!("--tmp-dir {} is no folder", folder.display())));
        }
        let style = style(&common.look, &environment);
        let is_dumb = environment.get("TERM") == Some("dumb") || environment.get("CI").is_some();
        let talk = if common.quiet || common.no_progress {
            Talk::Nothing
        } else if io::stderr().is_terminal() && !is_dumb {
            Talk::Bars
        } else {
            Talk::Lines
        };
        let choice = match (common.platform, common.all_platforms) {
            (Some(platform), _) => PlatformChoice::One(platform),
            (None, true) => PlatformChoice::All,
            (None, false) => PlatformChoice::Host,
        };
        let jobs = common.jobs.unwrap_or_else(|| thread::available_parallelism().unwrap_or(NonZeroUsize::MIN));
        let mut limits = Limits { temporary: common.tmp_dir, ..Limits::default() };
        for text in &common.limit {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            limits.set(name, value).map_err(|error| Failure::Usage(format!("--limit {text}: {error}")))?;
        }
        let variables = common.env.iter().map(|text| variable(text)).collect::<Result<BTreeMap<_, _>, _>>()?;
        let options = Options {
            cert_dir: common.cert_dir,
            authfile: common.authfile,
            tls_verify: common.tls_verify,
            limits: limits.clone(),
            environment,
        };
        let request = |text: &String| -> Result<Request, Failure> {
            Ok(Request {
                reference: text.parse().map_err(|error| Failure::Usage(format!("{error}")))?,
                text: text.clone(),
                choice: choice.clone(),
                jobs,
                limits: limits.clone(),
                options: options.clone(),
                environment: variables.clone(),
            })
        };
        let requests = common.images.iter().map(request).collect::<Result<_, _>>()?;
        Ok(Self { action, requests, outputs: outputs(&common.format, common.output)?, style, fail_on, talk })
    }
}

/// One `--env`. Engines take the value of a bare name from their own environment, which is not the one of the hosts here.
fn variable(text: &str) -> Result<(String, String), Failure> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or_else(|| Failure::Usage(format!("--env {text}: write NAME=VALUE")))?;
    Ok((name.to_owned(), value.to_owned()))
}

/// `--format` and `--output`, paired.
fn outputs(formats: &[String], output: Option<PathBuf>) -> Result<Vec<(Format, Target)>, Failure> {
    let mut rest = output.map_or(Target::Stdout, Target::File);
    let mut outputs: Vec<(Format, Target)> = Vec::new();
    for text in formats {
        let (name, file) = text.split_once('=').map_or((text.as_str(), None), |(name, file)| (name, Some(file)));
        let format = match name {
            "human" => Format::Human,
            "json" => Format::Json,
            _ => return Err(Failure::Usage(format!("--format {text}: the forms are human and json"))),
        };
        let target = match file {
            Some("") => return Err(Failure::Usage(format!("--format {text}: there is no file behind '='"))),
            Some("-") => Target::Stdout,
            Some(file) => Target::File(file.into()),
            None => rest.clone(),
        };
        if outputs.iter().any(|(_, taken)| *taken == target) {
            return Err(Failure::Usage(format!(
                "--format {text}: another form goes to the same place; write FORM=FILE"
            )));
        }
        outputs.push((format, target));
    }
    if outputs.is_empty() {
        outputs.push((Format::Human, std::mem::replace(&mut rest, Target::Stdout)));
    } else if let Target::File(path) = &rest
        && !outputs.iter().any(|(_, target)| *target == rest)
    {
        return Err(Failure::Usage(format!("--output {}: every --format has a file of its own", path.display())));
    }
    Ok(outputs)
}

/// What the terminal and the user want to see.
pub(super) fn style(look: &Look, environment: &Environment) -> Style {
    let is_terminal = io::stdout().is_terminal();
    let color = match look.color {
        Color::Always => true,
        Color::Never => false,
        // no-color.org and bixense.com/clicolors.
        Color::Auto if environment.get("NO_COLOR").is_some() => false,
        Color::Auto if environment.get("CLICOLOR_FORCE").is_some_and(|value| value != "0") => true,
        Color::Auto => is_terminal && environment.get("TERM") != Some("dumb"),
    };
    let columns = || environment.get("COLUMNS").and_then(|columns| columns.parse().ok());
    let terminal = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    Style { color, width: terminal.or_else(columns).unwrap_or(WIDTH), verbose: look.verbose }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(formats: &[&str], output: Option<&str>) -> Result<Vec<(Format, Target)>, String> {
        let formats: Vec<_> = formats.iter().map(|format| (*format).to_owned()).collect();
        outputs(&formats, output.map(PathBuf::from)).map_err(|error| error.to_string())
    }

    #[test]
    fn forms_and_files() {
        let file = |name: &str| Target::File(name.into());
        assert_eq!(pair(&[], None).unwrap(), [(Format::Human, Target::Stdout)]);
        assert_eq!(pair(&[], Some("a")).unwrap(), [(Format::Human, file("a"))]);
        assert_eq!(pair(&["json"], Some("a")).unwrap(), [(Format::Json, file("a"))]);
        let both = [(Format::Human, Target::Stdout), (Format::Json, file("r.json"))];
        assert_eq!(pair(&["human", "json=r.json"], None).unwrap(), both);
        for (formats, output, why) in [
            (&["sarif"][..], None, "the forms are human and json"),
            (&["json="], None, "no file behind '='"),
            (&["json", "human"], None, "another form goes to the same place"),
            (&["json=a"], Some("b"), "every --format has a file of its own"),
        ] {
            let error = pair(formats, output).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
