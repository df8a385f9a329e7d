//! The change of a Dockerfile that its image's findings ask for, and what it settles.
//!
//! A changed variable is simulated exactly: the facts are collected and judged again with the configuration that the
//! changed Dockerfile would give the image. What an added instruction installs is unknown before the image is built, so
//! no finding is ever called settled because of one.

use std::collections::BTreeMap;

use image::Image;
use image::dockerfile::{ChangeRefusal, Dockerfile, DockerfileChanges, DockerfileMismatch};
use judge::rules::{Finding, Rule, RuleChange};
use model::{ImageConfig, Owner, Severity, Site};

use super::{Assessment, Check};

/// Most folders of a list that are left out on trial: the image is judged again without each.
const MOST_FOLDERS: usize = 50;

/// Most variables that are removed for one finding. The whole Dockerfile is read for each.
const MOST_VARIABLES: usize = 200;

/// A proposed change, and its effect on each finding.
#[derive(Debug)]
#[non_exhaustive]
pub struct Remedy<'r> {
    /// A unified diff against the Dockerfile; empty if nothing in it can be changed mechanically.
    pub diff: String,
    /// The effect on each failing rule, and on each rule that fails only with the change, worst first.
    pub effects: Vec<RemedyEffect<'r>>,
}

/// The effect of a change on one rule.
#[derive(Debug)]
#[non_exhaustive]
pub struct RemedyEffect<'r> {
    /// The rule.
    pub rule: &'r Rule,
    /// The effect on its finding.
    pub kind: EffectKind,
}

/// The effect on a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EffectKind {
    /// Judged again with the change, the rule does not fail.
    Settled,
    /// The change adds an instruction for it; whether that settles it shows when the built image is judged.
    NeedsBuild,
    /// The finding remains, for this reason.
    Remains(String),
    /// Judged again with the change, the rule fails for the first time.
    Caused,
}

/// The change that is put together.
struct RemedyDraft<'a> {
    dockerfile: &'a Dockerfile,
    image: &'a Image,
    config: ImageConfig,
    changes: DockerfileChanges,
}

/// How a rule's change fares.
enum RemedyAttempt {
    /// The configuration is changed.
    Simulated,
    /// An instruction is added.
    Added,
    Refused(String),
}

impl<'r> Check<'r> {
    /// Puts together the change of a Dockerfile that settles an image's findings. `before` are the image's assessments by
    /// this check.
    pub fn remedy(
        &self,
        image: &Image,
        dockerfile: &Dockerfile,
        before: &[Assessment<'r>],
    ) -> Result<Remedy<'r>, DockerfileMismatch> {
        let config = image.config.clone().unwrap_or_default();
        let settings = self.launch.settings(&image.summary.reference);
        let launched: Vec<_> = settings.iter().map(|set| &set.name).collect();
        let mut own = config.environment.clone();
        // The launch's values hide what the image itself has.
        own.retain(|name, _| !launched.contains(&name));
        dockerfile.matches(&image.summary, &own, |name| launched.iter().any(|launched| *launched == name))?;
        let mut draft = RemedyDraft { dockerfile, image, config, changes: DockerfileChanges::default() };
        let failing = failing(before);
        let is_run = |rule: &Rule| rule.change.as_ref().is_some_and(|change| change.run);
        let (installed, simulated): (Vec<_>, Vec<_>) = failing.values().copied().partition(|(rule, _)| is_run(rule));
        let mut attempts: Vec<_> =
            simulated.into_iter().map(|(rule, finding)| (rule, self.attempt(&mut draft, rule, finding))).collect();
        let after = self.judged_with(image, &draft.config);
        let after = self::failing(&after);
        // A changed variable can settle what an added instruction is for.
        attempts.extend(installed.into_iter().map(|(rule, finding)| match after.get(&*rule.id) {
            Some(_) => (rule, self.attempt(&mut draft, rule, finding)),
            None => (rule, RemedyAttempt::Simulated),
        }));
        let effect = |(rule, attempt): (&'r Rule, RemedyAttempt)| {
            let kind = match attempt {
                _ if !after.contains_key(&*rule.id) => EffectKind::Settled,
                RemedyAttempt::Added => EffectKind::NeedsBuild,
                RemedyAttempt::Simulated => EffectKind::Remains("it remains with the change".to_owned()),
                RemedyAttempt::Refused(why) => EffectKind::Remains(why),
            };
            RemedyEffect { rule, kind }
        };
        let caused = after.iter().filter(|(id, _)| !failing.contains_key(*id));
        let caused = caused.map(|(_, (rule, _))| RemedyEffect { rule, kind: EffectKind::Caused });
        let mut effects: Vec<_> = attempts.into_iter().map(effect).chain(caused).collect();
        effects.sort_by_key(|effect| std::cmp::Reverse(effect.rule.severity));
        Ok(Remedy { diff: dockerfile.diff(&draft.changes), effects })
    }

    /// Adds the change of one finding to the draft.
    fn attempt(&self, draft: &mut RemedyDraft<'_>, rule: &Rule, finding: &Finding) -> RemedyAttempt {
        let Some(change) = &rule.change else { return RemedyAttempt::Refused(by_hand(rule)) };
        let attempt = if change.run {
            draft.run(finding).map(|()| RemedyAttempt::Added)
        } else if let Some(variable) = &change.folder_of {
            self.without_folder(draft, rule, variable).map(|()| RemedyAttempt::Simulated)
        } else {
            draft.variables(change, finding).map(|()| RemedyAttempt::Simulated)
        };
        attempt.unwrap_or_else(RemedyAttempt::Refused)
    }

    /// Removes from a list the folder without which the rule no longer fails.
    fn without_folder(&self, draft: &mut RemedyDraft<'_>, rule: &Rule, variable: &str) -> Result<(), String> {
        let list = draft.config.environment.get(variable).cloned().unwrap_or_default();
        let folders: Vec<&str> = list.split(':').collect();
        if folders.len() > MOST_FOLDERS {
            return Err(format!("{variable} has {} folders, and at most {MOST_FOLDERS} are tried", folders.len()));
        }
        for (index, folder) in folders.iter().enumerate().filter(|(_, folder)| !folder.is_empty()) {
            let others = folders.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, folder)| *folder);
            let mut config = draft.config.clone();
            config.environment.insert(variable.to_owned(), others.collect::<Vec<_>>().join(":"));
            if failing(&self.judged_with(draft.image, &config)).contains_key(&*rule.id) {
                continue;
            }
            draft.dockerfile.remove_folder(variable, folder, &mut draft.changes).map_err(|why| why.to_string())?;
            draft.config = config;
            return Ok(());
        }
        Err(format!("no single folder of {variable} is the cause"))
    }
}

impl RemedyDraft<'_> {
    fn variables(&mut self, change: &RuleChange, finding: &Finding) -> Result<(), String> {
        for (name, value) in &change.set {
            self.set(name, value);
        }
        if !change.unset {
            return Ok(());
        }
        let names: Vec<_> = finding.at.iter().filter_map(variable).collect();
        if names.is_empty() {
            let place = finding.at.first().map_or_else(|| "elsewhere".to_owned(), |site| format!("in {site}"));
            return Err(format!("it is set {place}, not by the Dockerfile"));
        }
        if names.len() > MOST_VARIABLES {
            return Err(format!("it concerns {} variables, and at most {MOST_VARIABLES} are changed", names.len()));
        }
        names.into_iter().try_for_each(|name| self.unset(name))
    }

    fn set(&mut self, name: &str, value: &str) {
        self.dockerfile.set(name, value, &mut self.changes);
        self.config.environment.insert(name.to_owned(), value.to_owned());
    }

    /// Removes a variable. One that the base image sets can only be given an empty value.
    fn unset(&mut self, name: &str) -> Result<(), String> {
        if self.dockerfile.is_set_below(name, &self.image.summary) {
            self.set(name, "");
            return Ok(());
        }
        match self.dockerfile.unset(name, &mut self.changes) {
            Ok(()) => {
                self.config.environment.remove(name);
                Ok(())
            }
            Err(ChangeRefusal::Inherited(_)) => {
                self.set(name, "");
                Ok(())
            }
            Err(why) => Err(why.to_string()),
        }
    }

    /// Adds the first RUN instruction of a finding's fix, where the finding's files are made, or gives a build argument
    /// the default of its first ARG instruction.
    fn run(&mut self, finding: &Finding) -> Result<(), String> {
        let argument = finding.fix.lines().find_map(|line| line.trim_start().strip_prefix("ARG ")?.split_once('='));
        if let Some((name, value)) = argument {
            let set = self.dockerfile.set_argument(name, value, &mut self.changes);
            return set.map_err(|why| why.to_string());
        }
        let run = instruction(&finding.fix).ok_or("its fix has no instruction for this image")?;
        let is_file = |site: &&Site| matches!(site, Site::File { .. });
        let lines =
            finding.at.iter().filter(is_file).filter_map(|site| self.dockerfile.line(site, &self.image.summary));
        self.dockerfile.add(lines.max(), &run, &mut self.changes).map_err(|why| why.to_string())
    }
}

/// The failing rules of assessments, with the first finding of each.
fn failing<'a, 'r>(assessments: &'a [Assessment<'r>]) -> BTreeMap<&'r str, (&'r Rule, &'a Finding)> {
    let judgements = assessments.iter().rev().filter_map(|assessment| assessment.judgements.as_deref()).flatten();
    let failing = judgements.filter_map(|judgement| {
        let finding = judgement.outcome.failure()?;
        Some((&*judgement.rule.id, (judgement.rule, finding)))
    });
    failing.collect()
}

/// Why a finding without a mechanical change remains.
pub(super) fn by_hand(rule: &Rule) -> String {
    match (rule.owner, rule.severity) {
        (Owner::Host, _) => "it concerns the host".to_owned(),
        (_, Severity::Info) => "it is only noted".to_owned(),
        _ => "its fix needs a decision: see the report without --fix".to_owned(),
    }
}

/// The variable of the image configuration that a site names.
fn variable(site: &Site) -> Option<&str> {
    match site {
        Site::Config(key) => key.strip_prefix("Env "),
        Site::File { .. } | Site::Launch { .. } | Site::Log { .. } | Site::Probe(_) => None,
    }
}

/// The first RUN instruction in a fix, with its continued lines, without the indentation.
fn instruction(fix: &str) -> Option<String> {
    let mut lines =
        fix.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).skip_while(|line| !line.starts_with("RUN "));
    let mut run = lines.next()?.to_owned();
    while run.ends_with('\\') {
        run.push('\n');
        run.push_str(lines.next()?);
    }
    Some(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_run_instruction_of_a_fix_is_taken_whole() {
        for (fix, expected) in [
            ("Install:\n  RUN a b", Some("RUN a b")),
            ("Install:\n  docker run x\n  RUN a \\\n   && b\nOr:\n  RUN c", Some("RUN a \\\n && b")),
            ("Install:\n  RUN a \\", None),
            ("Where RUN is used:\n  ENV A=1", None),
        ] {
            assert_eq!(instruction(fix).as_deref(), expected, "{fix}");
        }
    }
}
