//! `check --fix`: the change of a Dockerfile on standard output, and its effects on standard error.

use crate::check::remedy::{EffectKind, Remedy, RemedyEffect};
use crate::check::{Assessment, Check};
use image::Image;
use image::dockerfile::Dockerfile;
use judge::Verdict;
use model::{Environment, SECRET};

use super::args::CheckCommand;
use super::images::{load, rulebook};
use super::output::stdout;
use super::plan::ImagesPlan;
use super::{CliError, ExitStatus, say};

/// Prints the change that the findings of one image ask for. The exit status is that of the check.
pub(super) fn fix(command: CheckCommand, environment: &Environment) -> Result<ExitStatus, CliError> {
    let mut plan = ImagesPlan::check(command, environment)?;
    plan.confine(None, environment)?;
    let plan = &plan;
    let (Some(dockerfile), [request]) = (&plan.dockerfile, &*plan.requests) else {
        return Err(CliError::Usage("--fix changes the Dockerfile of one image: name one".to_owned()));
    };
    let rulebook = rulebook(plan)?;
    let check = Check::new(&rulebook).hosts(&plan.hosts).launch(&plan.launch).fail_on(plan.fail_on);
    let (_, loaded) = load(std::slice::from_ref(request), plan.verbosity)
        .next()
        .ok_or_else(|| CliError::Usage("there is no image".to_owned()))?;
    let images = loaded?;
    let [image] = &*images else {
        return Err(CliError::Usage("--fix is for one platform: choose it with --platform".to_owned()));
    };
    let verdict = propose(&check, image, dockerfile)?;
    Ok(plan.exit.status(verdict))
}

/// Prints the change and its effects, and returns the verdict on the image as it is.
fn propose(check: &Check<'_>, image: &Image, dockerfile: &Dockerfile) -> Result<Verdict, CliError> {
    let before = check.run(image);
    let remedy = check.remedy(image, dockerfile, &before).map_err(|why| {
        CliError::Usage(format!(
            "{} is not the Dockerfile of {}: {why}\n  help: check the image that this Dockerfile builds",
            dockerfile.path(),
            image.summary.reference
        ))
    })?;
    stdout(|out| out.write_all(remedy.diff.as_bytes()))?;
    summary(&remedy, dockerfile).lines().for_each(say);
    if remedy.diff.contains(SECRET) {
        say(&format!("note: a line with a secret is shown as {SECRET}, so the change does not apply as it is printed"));
    }
    Ok(Verdict::worst(before.iter().filter_map(Assessment::verdict)).unwrap_or(Verdict::Pass))
}

/// The effects of a change, by kind.
fn summary(remedy: &Remedy<'_>, dockerfile: &Dockerfile) -> String {
    let of = |wanted: fn(&EffectKind) -> bool| -> Vec<String> {
        remedy.effects.iter().filter(|effect| wanted(&effect.kind)).map(line).collect()
    };
    let groups = [
        ("settled, judged again with this change:", of(|kind| *kind == EffectKind::Settled)),
        ("changed, and to be judged again after a build:", of(|kind| *kind == EffectKind::NeedsBuild)),
        ("new with this change:", of(|kind| *kind == EffectKind::Caused)),
        ("remaining:", of(|kind| matches!(kind, EffectKind::Remains(_)))),
    ];
    let groups = groups.into_iter().filter(|(_, lines)| !lines.is_empty());
    let mut paragraphs: Vec<_> = groups.map(|(heading, lines)| format!("{heading}\n{}", lines.join("\n"))).collect();
    if remedy.effects.is_empty() {
        paragraphs.push("no rule fails: there is nothing to fix".to_owned());
    } else if remedy.diff.is_empty() {
        paragraphs.push(format!("nothing in {} can be changed mechanically", dockerfile.path()));
    }
    paragraphs.join("\n")
}

fn line(effect: &RemedyEffect<'_>) -> String {
    let why = match &effect.kind {
        EffectKind::Remains(why) => format!(": {why}"),
        EffectKind::Settled | EffectKind::NeedsBuild | EffectKind::Caused => String::new(),
    };
    format!("  {}[{}] {}{why}", effect.rule.severity.name(), effect.rule.id, effect.rule.title)
}
