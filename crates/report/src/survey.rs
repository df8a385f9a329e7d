//! A row for each image of a run, and each distinct finding once: what the forms for many images need. A row takes a few
//! hundred bytes, whatever the image holds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::counts::OutcomeCounts;
use super::entry::{LONGEST, RuleTexts};
use super::plain_text::{clean, short};
use super::provenance::{SurveyProvenance, cached};
use super::{Report, measured};
use image::history;
use judge::rules::{Judgement, Outcome};
use judge::{SharedJudgement, Verdict, across_hosts};
use model::{Digest, Hasher, ImageSummary, LayerSummary, Owner, Site};

/// Maximum characters of a version in a row.
const VERSION: usize = 40;

/// The rows and the findings of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Survey {
    /// The images in the order of the run.
    pub(super) rows: Vec<SurveyRow>,
    /// The distinct findings and missing answers that prevent a pass, in the order in which they were met.
    pub(super) findings: Vec<SurveyFinding>,
    /// The layers and build steps that failures come from, by the layer's digest or the step.
    pub(super) layers: BTreeMap<String, SurveyLayer>,
    pub(super) provenance: SurveyProvenance,
    /// Index of each finding, by the digest of its texts.
    index: BTreeMap<Digest, usize>,
}

/// One image.
#[derive(Clone, Debug)]
pub(super) struct SurveyRow {
    /// The reference as the user wrote it.
    pub(super) reference: String,
    pub(super) platform: Option<String>,
    /// Digest of the manifest, or of the configuration.
    pub(super) digest: Option<String>,
    /// The team that owns it, if a map of teams names one.
    pub(super) team: Option<String>,
    pub(super) state: RowState,
}

/// What became of an image.
#[derive(Clone, Debug)]
pub(super) enum RowState {
    /// It could not be opened, for this reason.
    Unopened(String),
    /// It was judged.
    Judged(Box<JudgedRow>),
}

/// The result of a judged image.
#[derive(Clone, Debug)]
pub(super) struct JudgedRow {
    /// The worst verdict of all hosts.
    pub(super) verdict: Verdict,
    /// Versions, or words in their place.
    pub(super) torch: String,
    pub(super) cuda: String,
    pub(super) nccl: String,
    pub(super) counts: OutcomeCounts,
    /// The rules that judged, and the number of those that a policy switched off.
    pub(super) policy: String,
    pub(super) rules_off: usize,
    /// Number of layers, and of those that were not read because their scans were cached.
    pub(super) layers: usize,
    pub(super) cached: usize,
    /// Indexes in [`Survey::findings`], worst first.
    pub(super) findings: Vec<usize>,
}

/// A failure, or a missing answer that prevents a pass, with the same texts in all its images.
#[derive(Clone, Debug)]
pub(super) struct SurveyFinding {
    pub(super) rule: Arc<RuleTexts>,
    /// The party that has to settle it.
    pub(super) owner: Owner,
    /// True for a failure, false for a missing answer.
    pub(super) is_failure: bool,
    pub(super) message: String,
    /// How to fix it in these images; empty for a missing answer.
    pub(super) fix: String,
    /// The hosts on which it is found; empty if all share it.
    pub(super) hosts: Vec<String>,
    /// Indexes in [`Survey::rows`], ascending.
    pub(super) images: Vec<usize>,
}

/// A layer, or a build step without one, that brings failures.
#[derive(Clone, Debug, Default)]
pub(super) struct SurveyLayer {
    /// The build step that made the layer, if it is one.
    pub(super) step: Option<String>,
    /// Stored size in bytes, and the team or image that the layer belongs to, if an audit found them.
    pub(super) size: Option<u64>,
    pub(super) owner: Option<String>,
    /// Indexes of the images in which a rule fails because of the layer, by the rule's id.
    pub(super) rules: BTreeMap<String, BTreeSet<usize>>,
}

/// The images of a team, or those of none.
#[derive(Debug, Default)]
pub(super) struct SurveyTeam<'s> {
    /// Indexes in [`Survey::rows`], ascending.
    pub(super) images: Vec<usize>,
    pub(super) failed: usize,
    /// Number of its images by rule that they fail.
    pub(super) rules: BTreeMap<&'s str, usize>,
}

/// Number of images with each result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) passed: usize,
    /// Those of the passed images in which something was found, or has no answer.
    pub(super) open: usize,
    pub(super) failed: usize,
    pub(super) incomplete: usize,
    pub(super) unopened: usize,
}

impl Survey {
    /// Adds the reports on one image, one for each host. `texts` returns the shared texts of a rule.
    pub(super) fn add(&mut self, reports: &[Report<'_>], texts: &mut impl FnMut(&Judgement<'_>) -> Arc<RuleTexts>) {
        let Some(first) = reports.first() else { return };
        let Some(verdict) = Verdict::worst(reports.iter().filter_map(Report::verdict)) else { return };
        let judged: Vec<_> = reports.iter().filter_map(|report| report.judgements).collect();
        let names: Vec<_> = reports.iter().filter_map(|report| report.host).map(|host| clean(&host.name)).collect();
        let shared = across_hosts(&judged);
        let mut findings: Vec<_> = shared
            .iter()
            .filter(|shared| is_told(first, shared.judgement))
            .map(|shared| {
                let finding = SurveyFinding::of(shared, &names, texts(shared.judgement));
                self.finding(finding)
            })
            .collect();
        self.sort(&mut findings);
        let row = self.rows.len();
        let image = first.image;
        self.provenance.add(row, reports, &shared);
        for judged in &shared {
            self.blame(row, judged.judgement, image);
        }
        let digest = image.manifest.as_ref().or(image.config.as_ref());
        let [torch, cuda, nccl] = measured::versions(first).map(|version| short(&version, VERSION));
        self.rows.push(SurveyRow {
            reference: short(&image.reference, LONGEST),
            platform: image.platform.as_ref().map(|platform| short(&platform.to_string(), VERSION)),
            digest: digest.map(ToString::to_string),
            team: None,
            state: RowState::Judged(Box::new(JudgedRow {
                verdict,
                torch,
                cuda,
                nccl,
                policy: first.rules.map(|rules| short(&rules.to_string(), LONGEST)).unwrap_or_default(),
                rules_off: first.rules.map_or(0, |rules| rules.off),
                layers: image.layers.len(),
                cached: cached(image).0,
                counts: OutcomeCounts::of(shared.iter().map(|shared| shared.judgement)),
                findings,
            })),
        });
    }

    /// Adds an image that could not be opened. Both texts are plain.
    pub(super) fn miss(&mut self, reference: String, why: String) {
        let state = RowState::Unopened(why);
        self.rows.push(SurveyRow { reference, platform: None, digest: None, team: None, state });
    }

    /// Notes the layers and steps that a failure comes from.
    fn blame(&mut self, row: usize, judgement: &Judgement<'_>, image: &ImageSummary) {
        let Outcome::Fail(finding) = &judgement.outcome else { return };
        for site in &finding.at {
            let step = history::step(site, image).map(|step| short(&step, LONGEST));
            let (name, step) = match site {
                Site::File { layer, .. } => {
                    (image.layers.get(*layer).and_then(LayerSummary::name).map(ToString::to_string), step)
                }
                Site::Config(_) => (step, None),
                Site::Probe(_) | Site::Launch { .. } | Site::Log { .. } => (None, None),
            };
            if let Some(name) = name {
                let layer = self.layers.entry(name).or_default();
                layer.step = layer.step.take().or(step);
                layer.rules.entry(judgement.rule.id.clone()).or_default().insert(row);
            }
        }
    }

    /// Returns the index of a finding in the row that is added next.
    pub(super) fn finding(&mut self, finding: SurveyFinding) -> usize {
        let row = self.rows.len();
        let index = *self.index.entry(finding.digest()).or_insert(self.findings.len());
        match self.findings.get_mut(index) {
            Some(known) => known.images.push(row),
            None => self.findings.push(SurveyFinding { images: vec![row], ..finding }),
        }
        index
    }

    /// Sorts indexes of findings, the worst first.
    pub(super) fn sort(&self, findings: &mut [usize]) {
        findings.sort_by_key(|index| {
            let finding = self.findings.get(*index);
            std::cmp::Reverse(finding.map(|finding| (finding.is_failure, finding.rule.severity)))
        });
    }

    /// The images by team; the key is `None` for those of no team.
    pub(super) fn teams(&self) -> BTreeMap<Option<&str>, SurveyTeam<'_>> {
        let mut teams: BTreeMap<_, SurveyTeam<'_>> = BTreeMap::new();
        for (index, row) in self.rows.iter().enumerate() {
            let team = teams.entry(row.team.as_deref()).or_default();
            team.images.push(index);
            team.failed += usize::from(row.verdict() == Some(Verdict::Fail));
            let findings = row.judged().map(|judged| &*judged.findings).unwrap_or_default();
            let findings = findings.iter().filter_map(|index| self.findings.get(*index));
            let rules: BTreeSet<_> =
                findings.filter(|finding| finding.is_failure).map(|finding| &*finding.rule.id).collect();
            for rule in rules {
                *team.rules.entry(rule).or_default() += 1;
            }
        }
        teams
    }

    /// Number of images with each result.
    pub(super) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for row in &self.rows {
            totals.open += usize::from(row.judged().is_some_and(|judged| judged.open().is_some()));
            match row.verdict() {
                None => totals.unopened += 1,
                Some(Verdict::Pass) => totals.passed += 1,
                Some(Verdict::Fail) => totals.failed += 1,
                Some(Verdict::Incomplete) => totals.incomplete += 1,
            }
        }
        totals
    }

    /// The rows with the worst last; those with the same result stay in the order of the run.
    pub(super) fn worst_last(&self) -> Vec<&SurveyRow> {
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by_key(|row| row.rank());
        rows
    }

    /// The findings, the worst first, and of one severity those with the most images first.
    pub(super) fn worst_findings(&self) -> Vec<&SurveyFinding> {
        let mut findings: Vec<_> = self.findings.iter().collect();
        findings.sort_by_key(|finding| {
            std::cmp::Reverse((finding.is_failure, finding.rule.severity, finding.images.len()))
        });
        findings
    }
}

impl JudgedRow {
    /// What a pass leaves open; `None` for another verdict, or if nothing is open.
    pub(super) fn open(&self) -> Option<String> {
        Some(self.counts.problems()).filter(|problems| self.verdict == Verdict::Pass && !problems.is_empty())
    }
}

impl SurveyRow {
    /// The verdict; `None` if the image could not be opened.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        self.judged().map(|judged| judged.verdict)
    }

    /// The result of the rules, if the image could be opened.
    pub(super) fn judged(&self) -> Option<&JudgedRow> {
        match &self.state {
            RowState::Judged(judged) => Some(judged),
            RowState::Unopened(_) => None,
        }
    }

    /// `pass`, `incomplete`, `fail` or `error`.
    pub(super) fn word(&self) -> &'static str {
        self.verdict().map_or("error", Verdict::name)
    }

    /// Order of results, from the best.
    pub(super) fn rank(&self) -> u8 {
        match self.verdict() {
            Some(Verdict::Pass) => 0,
            Some(Verdict::Incomplete) => 1,
            Some(Verdict::Fail) => 2,
            None => 3,
        }
    }
}

impl SurveyLayer {
    /// Indexes of the images in which it brings a failure, ascending.
    pub(super) fn images(&self) -> Vec<usize> {
        self.rules.values().flatten().copied().collect::<BTreeSet<_>>().into_iter().collect()
    }
}

impl SurveyFinding {
    /// The finding of a rule in no image yet.
    fn of(shared: &SharedJudgement<'_>, names: &[String], rule: Arc<RuleTexts>) -> Self {
        let outcome = &shared.judgement.outcome;
        let finding = outcome.finding();
        Self {
            rule,
            owner: shared.judgement.owner,
            is_failure: finding.is_some(),
            message: short(&outcome.message(), LONGEST),
            fix: finding.map(|finding| finding.fix.clone()).unwrap_or_default(),
            hosts: shared.hosts.iter().filter_map(|host| names.get(*host)).cloned().collect(),
            images: Vec::new(),
        }
    }

    /// The digest of its texts.
    fn digest(&self) -> Digest {
        let mut hasher = Hasher::sha256();
        for part in [&*self.rule.id, self.owner.name(), self.word(), &self.message, &self.fix]
            .into_iter()
            .chain(self.hosts.iter().map(|host| &**host))
        {
            hasher.update(part.as_bytes());
            hasher.update(b"\0");
        }
        hasher.finish()
    }

    /// The severity of a failure, or `unknown`.
    pub(super) fn word(&self) -> &'static str {
        if self.is_failure { self.rule.severity.name() } else { "unknown" }
    }
}

/// Returns true for a failure, and for a missing answer that prevents a pass. What follows from another finding, or is
/// accepted, is only counted.
fn is_told(report: &Report<'_>, judgement: &Judgement<'_>) -> bool {
    match judgement.outcome {
        Outcome::Fail(_) => true,
        Outcome::Unknown(_) => judgement.counts(report.fail_on, report.fail_for),
        _ => false,
    }
}
