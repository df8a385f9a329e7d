//! `check --fix`: the change of a Dockerfile or of launch files on standard output, and its effects on standard error.

use crate::check::remedy::{EffectKind, Remedy, RemedyEffect};
use crate::check::{Assessment, Check};
use crate::shipped;
use image::Image;
use image::dockerfile::Dockerfile;
use judge::Verdict;
use judge::rules::Rule;
use model::{Environment, SECRET};

use super::args::CheckCommand;
use super::images::{load, rulebook};
use super::output::stdout;
use super::plan::ImagesPlan;
use super::{CliError, ExitStatus, say};

/// Prints the change that the findings of one image, or of a launch alone, ask for. The exit status is that of the check.
pub(super) fn fix(command: CheckCommand, environment: &Environment) -> Result<ExitStatus, CliError> {
    let mut plan = ImagesPlan::check(command, environment)?;
    plan.confine(None, environment)?;
    let plan = &plan;
    let rules =
        if plan.takes_images { plan.rulebook.open(shipped())?.only(Rule::is_of_launch) } else { rulebook(plan)? };
    let check = Check::new(&rules).hosts(&plan.hosts).launch(&plan.launch).fail_on(plan.fail_on);
    let verdict = match &plan.dockerfile {
        Some(dockerfile) => {
            let (image, before) = judged(plan, &check)?;
            propose(&check, &image, dockerfile, &before)?;
            worst(&before)
        }
        None if plan.launch.files.is_empty() => {
            return Err(CliError::Usage(
                "--fix changes a Dockerfile or launch files: name one with --dockerfile or --launch".to_owned(),
            ));
        }
        None if plan.takes_images => {
            show(&check.launch_remedy(None), "the launch files")?;
            worst(&check.run_launch().into_iter().flat_map(|(_, assessments)| assessments).collect::<Vec<_>>())
        }
        None => {
            let (image, before) = judged(plan, &check)?;
            show(&check.launch_remedy(Some(&image)), "the launch files")?;
            worst(&before)
        }
    };
    Ok(plan.exit.status(verdict))
}

/// Loads and judges the one image of a plan.
fn judged<'r>(plan: &ImagesPlan, check: &Check<'r>) -> Result<(Image, Vec<Assessment<'r>>), CliError> {
    let [request] = &*plan.requests else {
        return Err(CliError::Usage("--fix is for one image: name one".to_owned()));
    };
    let (_, loaded) = load(std::slice::from_ref(request), plan.verbosity)
        .next()
        .ok_or_else(|| CliError::Usage("there is no image".to_owned()))?;
    let mut images = loaded?;
    let image = images.pop().filter(|_| images.is_empty());
    let image =
        image.ok_or_else(|| CliError::Usage("--fix is for one platform: choose it with --platform".to_owned()))?;
    let before = check.run(&image);
    Ok((image, before))
}

fn worst(assessments: &[Assessment<'_>]) -> Verdict {
    Verdict::worst(assessments.iter().filter_map(Assessment::verdict)).unwrap_or(Verdict::Pass)
}

/// Prints the change of a Dockerfile and its effects.
fn propose(
    check: &Check<'_>,
    image: &Image,
    dockerfile: &Dockerfile,
    before: &[Assessment<'_>],
) -> Result<(), CliError> {
    let remedy = check.remedy(image, dockerfile, before).map_err(|why| {
        CliError::Usage(format!(
            "{} is not the Dockerfile of {}: {why}\n  help: check the image that this Dockerfile builds",
            dockerfile.path(),
            image.summary.reference
        ))
    })?;
    show(&remedy, dockerfile.path())
}

/// Prints a change and its effects.
fn show(remedy: &Remedy<'_>, what: &str) -> Result<(), CliError> {
    stdout(|out| out.write_all(remedy.diff.as_bytes()))?;
    summary(remedy, what).lines().for_each(say);
    if remedy.diff.contains(SECRET) {
        say(&format!("note: a line with a secret is shown as {SECRET}, so the change does not apply as it is printed"));
    }
    Ok(())
}

/// The effects of a change, by kind.
fn summary(remedy: &Remedy<'_>, what: &str) -> String {
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
        paragraphs.push(format!("nothing in {what} can be changed mechanically"));
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
