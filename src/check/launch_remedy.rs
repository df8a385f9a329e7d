//! The change of launch files that their findings ask for, and what it settles.
//!
//! Each finding is tried by itself: the file is edited as text, read again and judged again. The edit stays where the finding is
//! gone and nothing else fails for the first time.

use std::collections::{BTreeMap, BTreeSet};

use facts::launch::{self, LaunchFile, Launched, Starter};
use image::Image;
use image::dockerfile::{CONTEXT, unified};
use judge::rules::{Finding, Outcome, Rule, RuleEdit, RuleReplacement};
use model::{ImageSummary, Site, conceal};
use serde_json::Map;

use super::remedy::{EffectKind, Remedy, RemedyEffect, by_hand};
use super::{Assessment, Check};

/// Most rounds of edits for one finding: a container that gets a device may then need the network of the host.
const MOST_ROUNDS: usize = 3;

/// Why an edit is not shown.
const REMAINS: &str = "it remains with the change";

/// A finding: the files, containers and host that it is about, and the rule.
type Subject<'r> = (usize, Vec<usize>, String, &'r str);

/// How a launch fares.
#[derive(Clone, Default)]
struct LaunchState<'r> {
    failing: BTreeMap<Subject<'r>, LaunchFinding<'r>>,
    /// What passes or does not apply: a rule that is unknown settles nothing.
    answered: BTreeSet<Subject<'r>>,
}

#[derive(Clone)]
struct LaunchFinding<'r> {
    rule: &'r Rule,
    finding: Finding,
    /// The edit of the rule, with the values of facts.
    edit: Option<RuleEdit>,
}

impl<'r> Check<'r> {
    /// Puts together the change of the launch files that settles their findings: those of an image in the launch, or of the
    /// launch alone.
    pub fn launch_remedy(&self, image: Option<&Image>) -> Remedy<'r> {
        let before = self.launch_state(image, self.launch);
        let mut launched = self.launch.clone();
        let mut state = before.clone();
        let mut reasons = BTreeMap::new();
        let mut subjects: Vec<_> = before.failing.iter().collect();
        // A variable may be what shows that the container runs PyTorch.
        subjects.sort_by_key(|(_, found)| (found.edit.is_none(), std::cmp::Reverse(found.rule.severity)));
        for (subject, found) in subjects {
            match self.settle(image, (&launched, &state), subject) {
                Ok(changed) => (launched, state) = changed,
                Err(why) => _ = reasons.entry(&*found.rule.id).or_insert(why),
            }
        }
        let rules: BTreeMap<&str, &Rule> = before.failing.values().map(|found| (&*found.rule.id, found.rule)).collect();
        let effect = |(id, rule): (&str, &'r Rule)| {
            let mut subjects = before.failing.keys().filter(|(.., other)| *other == id);
            // What no longer applies because another edit took a variable away is not settled.
            let kind = match reasons.get(id) {
                Some(why) => EffectKind::Remains(why.clone()),
                None if subjects.all(|subject| state.answered.contains(subject)) => EffectKind::Settled,
                None => EffectKind::Remains(by_hand(rule)),
            };
            RemedyEffect { rule, kind }
        };
        let mut effects: Vec<_> = rules.into_iter().map(effect).collect();
        effects.sort_by_key(|effect| std::cmp::Reverse(effect.rule.severity));
        let diffs =
            self.launch.files.iter().zip(&launched.files).filter_map(|(before, after)| difference(before, after));
        Remedy { diff: diffs.collect(), effects }
    }

    /// A launch that fares so, without one of its findings, and how it fares then.
    fn settle(
        &self,
        image: Option<&Image>,
        (launched, before): (&Launched, &LaunchState<'r>),
        subject: &Subject<'r>,
    ) -> Result<(Launched, LaunchState<'r>), String> {
        let Some(found) = before.failing.get(subject) else { return Ok((launched.clone(), before.clone())) };
        let mut draft = edited(launched, subject, found)?;
        for _ in 0..MOST_ROUNDS {
            let after = self.launch_state(image, &draft);
            let is_due = |other: &Subject<'r>| other == subject || !before.failing.contains_key(other);
            let due: Vec<_> = after.failing.iter().filter(|(other, _)| is_due(other)).collect();
            if due.is_empty() {
                if self.launch.files.iter().zip(&draft.files).any(|(before, after)| difference(before, after).is_none())
                {
                    return Err("a patch would show a secret beside the line".to_owned());
                }
                return if after.answered.contains(subject) { Ok((draft, after)) } else { Err(REMAINS.to_owned()) };
            }
            let mut more = draft.clone();
            for (other, found) in due {
                let caused = || format!("the change would bring about {}", found.rule.id);
                let why = if other == subject { REMAINS.to_owned() } else { caused() };
                more = edited(&more, other, found).ok().filter(|more| *more != draft).ok_or(why)?;
            }
            draft = more;
        }
        Err("the change would bring about other findings".to_owned())
    }

    /// How a launch fares in place of that of the check.
    fn launch_state(&self, image: Option<&Image>, launched: &Launched) -> LaunchState<'r> {
        let check = Check { launch: launched, fail_for: self.fail_for.clone(), ..*self };
        let mut state = LaunchState::default();
        let rules = self.rulebook.rules();
        let mut add = |file: usize, containers: &[usize], assessments: Vec<Assessment<'_>>| {
            for assessment in assessments {
                let host = assessment.host.as_ref().map(ToString::to_string).unwrap_or_default();
                for judgement in assessment.judgements.iter().flatten() {
                    let Some(rule) = rules.get(&judgement.rule.id) else { continue };
                    let subject = (file, containers.to_vec(), host.clone(), &*rule.id);
                    if let Some(finding) = judgement.outcome.failure() {
                        let edit = rule.edit.as_ref().map(|edit| edit.filled(&assessment.facts));
                        state.failing.insert(subject, LaunchFinding { rule, finding: finding.clone(), edit });
                    } else if matches!(judgement.outcome, Outcome::Pass | Outcome::NotApplicable) {
                        state.answered.insert(subject);
                    }
                }
            }
        };
        if let Some(image) = image {
            let places = launched.places(&image.summary.reference);
            let (file, containers) = places.into_iter().rfind(|(_, found)| !found.is_empty()).unwrap_or_default();
            let settings = launched.settings(&image.summary.reference).into_iter();
            let mut config = image.own_config.clone().unwrap_or_default();
            config.environment.extend(settings.filter_map(|set| Some((set.name, set.value?))));
            config.start = image.config.clone().unwrap_or_default().start;
            add(file, &containers, check.judged_with(image, &config));
            return state;
        }
        let summary = ImageSummary::default();
        for (index, containers) in launched.places("") {
            let Some(file) = launched.files.get(index) else { continue };
            if containers.is_empty() {
                add(index, &[], check.judged_containers(&summary, file, &[]));
            }
            for container in containers {
                let own: Vec<_> = file.containers.get(container).cloned().into_iter().collect();
                add(index, &[container], check.judged_containers(&summary, file, &own));
            }
        }
        state
    }
}

/// The launch with the edits that a finding asks for.
fn edited(launched: &Launched, subject: &Subject<'_>, found: &LaunchFinding<'_>) -> Result<Launched, String> {
    let rule = found.rule;
    let mut draft = launched.clone();
    if let Some(change) = rule.change.as_ref().filter(|change| change.unset || !change.set.is_empty()) {
        let settings = launched.all_settings();
        let is_set = |site: &&Site| settings.iter().any(|set| set.site == **site);
        let mut sites: Vec<_> = found.finding.at.iter().filter(is_set).filter_map(variable).collect();
        if sites.is_empty() {
            return Err("the launch files do not set it".to_owned());
        }
        // From below, so that the lines above keep their numbers.
        sites.sort_by_key(|(_, line, _)| std::cmp::Reverse(*line));
        for (name, line, variable) in sites {
            let value = change.set.get(variable).map(String::as_str);
            let edit = |file: &LaunchFile| launch::with_variable(file, line, variable, value);
            replace(draft.files.iter_mut().find(|file| file.name == name), edit)?;
        }
        return Ok(draft);
    }
    let Some(edit) = &found.edit else { return Err(by_hand(rule)) };
    let (index, containers, ..) = subject;
    for container in containers {
        replace(draft.files.get_mut(*index), |file| {
            let container = file.containers.get(*container)?;
            match container.given.starter {
                _ if edit.replace.is_some() => {
                    let RuleReplacement { find, by } = edit.replace.as_ref()?;
                    launch::with_replaced(file, container, find, by)
                }
                Starter::Docker => launch::with_options(file, container, &edit.docker),
                Starter::Scheduler => launch::with_options(file, container, &edit.scheduler),
                Starter::Compose => launch::with_keys(file, container, &edit.compose, &Map::new()),
                Starter::Kubernetes => launch::with_keys(file, container, &edit.container, &edit.pod),
                Starter::Service => None,
            }
            .filter(|text| *text != file.text)
        })?;
    }
    Ok(draft)
}

/// The variable that a launch file sets in a line.
fn variable(site: &Site) -> Option<(&str, usize, &str)> {
    match site {
        Site::Launch { file, line: Some(line), variable } => Some((file, *line, variable)),
        _ => None,
    }
}

/// Edits a file, and reads it again.
fn replace(file: Option<&mut LaunchFile>, edit: impl Fn(&LaunchFile) -> Option<String>) -> Result<(), String> {
    let file = file.ok_or("no launch file sets it")?;
    if file.name == "standard input" {
        return Err("standard input has no name for a patch".to_owned());
    }
    let text = edit(file).ok_or("its fix takes more than a few lines of the file: see the report without --fix")?;
    *file = launch::read(&file.name, &text).map_err(|error| error.to_string())?.with_shown();
    Ok(())
}

/// The change of a file, as `patch -p0` reads it, with as many lines around it as show no secret; `None` if the lines that
/// change or their neighbours have one.
fn difference(before: &LaunchFile, after: &LaunchFile) -> Option<String> {
    let secrets = launch::secret_lines(&before.text);
    let diffs = (1..=CONTEXT).rev().map(|context| unified(&before.name, &before.text, &after.text, context));
    diffs.into_iter().find(|diff| conceal(diff) == *diff && old_lines(diff).all(|line| !secrets.contains(&line)))
}

/// The numbers of the old lines that a unified diff shows.
fn old_lines(diff: &str) -> impl Iterator<Item = usize> {
    let hunks = diff.lines().filter_map(|line| line.strip_prefix("@@ -")?.split(' ').next());
    hunks.flat_map(|range| {
        let (start, count) = range.split_once(',').unwrap_or((range, "1"));
        let [start, count] = [start, count].map(|number| number.parse().unwrap_or(usize::MAX));
        start..start.saturating_add(count)
    })
}
