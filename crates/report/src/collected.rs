//! Collects the results of all images, since many services expect one document for all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::counts::OutcomeCounts;
use super::entry::{EntryState, LONGEST, RuleEntry, RuleTexts};
use super::human::overview;
use super::measured::{self, MeasuredTable};
use super::plain_text::{clean, short};
use super::provenance;
use super::survey::Survey;
use super::{Format, Report};
use image::reference::untagged;
use judge::rules::{Judgement, Outcome, Rule};
use judge::{SharedJudgement, Verdict, across_hosts, distinct_names};

/// All images of a run. Every value from an image is one line of plain text.
#[derive(Clone, Debug, Default)]
pub struct Collection {
    /// The judged images.
    pub(super) images: Vec<Collected>,
    /// References of the images that could not be checked, each with the reason.
    pub(super) missing: Vec<(String, String)>,
    /// A row for each image.
    pub(super) survey: Survey,
    /// The page on the image, while the run has only one.
    pub(super) page: Option<ImagePage>,
    /// The texts of each rule, shared by all images.
    texts: RuleShelf,
    keeps: Keeps,
}

/// What is kept of each image: the least that the requested formats need.
#[derive(Clone, Copy, Debug)]
struct Keeps {
    rows: bool,
    entries: bool,
    /// Makes the page on the only image.
    page: Option<PageFn>,
    /// True to keep an entry also for each rule that passed or does not apply.
    passes: bool,
}

impl Default for Keeps {
    fn default() -> Self {
        Self { rows: true, entries: true, page: None, passes: true }
    }
}

/// A page on one image, except its frame.
#[derive(Clone, Debug)]
pub(super) struct ImagePage {
    pub(super) title: String,
    pub(super) body: String,
}

/// Makes the page on an image, from its reports: one, or one for each host.
pub(super) type PageFn = fn(&[Report<'_>], &Collected) -> Option<ImagePage>;

/// The texts of rules, by id. Stored reports of different releases may have different texts for one id.
#[derive(Clone, Debug, Default)]
struct RuleShelf(BTreeMap<String, Arc<RuleTexts>>);

impl RuleShelf {
    fn of(&mut self, rule: &Rule) -> Arc<RuleTexts> {
        if let Some(known) = self.0.get(&rule.id).filter(|known| known.is_of(rule)) {
            return Arc::clone(known);
        }
        let texts = Arc::new(RuleTexts::from(rule));
        self.0.insert(rule.id.clone(), Arc::clone(&texts));
        texts
    }
}

/// One image, judged for all its hosts.
#[derive(Clone, Debug)]
pub(super) struct Collected {
    /// Name that is stable across builds: without tag and digest, unless another image of this run has the same name.
    pub(super) name: String,
    /// The reference as the user wrote it.
    pub(super) reference: String,
    /// The reference with platform and digest, for people.
    pub(super) title: String,
    /// The title with only the beginning of the digest.
    pub(super) heading: String,
    pub(super) platform: Option<String>,
    pub(super) digest: Option<String>,
    /// The worst verdict of all hosts.
    pub(super) verdict: Verdict,
    pub(super) counts: OutcomeCounts,
    /// The hosts; empty if none were described.
    pub(super) hosts: Vec<CollectedHost>,
    /// Rows of the overview: name and text.
    pub(super) facts: Vec<(&'static str, String)>,
    /// What a run measured.
    pub(super) tables: Vec<MeasuredTable>,
    /// Entries in the order of the rules; those of rules that passed or do not apply only if a format shows them.
    pub(super) entries: Vec<RuleEntry>,
    /// Notices about the policy and the baseline.
    pub(super) notices: Vec<String>,
    /// How many layers were not read in this run; `None` if all were.
    pub(super) unread: Option<String>,
}

/// A host that an image was judged for.
#[derive(Clone, Debug)]
pub(super) struct CollectedHost {
    pub(super) name: String,
    pub(super) verdict: Verdict,
    pub(super) counts: OutcomeCounts,
}

impl Collection {
    /// Returns an empty collection that keeps what these formats need of each image.
    pub fn new(formats: &[Format]) -> Self {
        let needs = |wanted: fn(Format) -> bool| formats.iter().copied().any(wanted);
        let keeps = Keeps {
            rows: needs(Format::needs_rows),
            entries: needs(Format::needs_entries),
            page: formats.iter().find_map(|format| format.page()),
            passes: needs(Format::needs_passes),
        };
        Self { keeps, ..Self::default() }
    }

    /// Adds the reports on one image: one report, or one for each host.
    pub fn add(&mut self, reports: &[Report<'_>]) {
        let texts = &mut self.texts;
        if let Some(page) = self.keeps.page {
            let is_first = self.survey.rows.is_empty();
            let only = is_first.then(|| Collected::of(reports, true, texts)).flatten();
            self.page = only.and_then(|image| page(reports, &image));
        }
        if self.keeps.rows {
            self.survey.add(reports, &mut |judgement: &Judgement<'_>| texts.of(judgement.rule));
        }
        if self.keeps.entries {
            self.images.extend(Collected::of(reports, self.keeps.passes, texts));
        }
    }

    /// Adds an image that could not be checked.
    pub fn miss(&mut self, reference: &str, why: &str) {
        let why = why.lines().map(str::trim).collect::<Vec<_>>().join("; ");
        let reference = short(reference, LONGEST);
        let why = short(&why, LONGEST);
        self.page = None;
        if self.keeps.rows {
            self.survey.miss(reference.clone(), why.clone());
        }
        if self.keeps.entries {
            self.missing.push((reference, why));
        }
    }

    /// Divides the collection into parts of at most `most` images, at least one part.
    pub fn parts(&self, most: usize) -> Vec<Self> {
        let empty = || Self { keeps: self.keeps, ..Self::default() };
        let mut parts = vec![empty()];
        let mut add = |add: &dyn Fn(&mut Self)| match parts.last_mut() {
            Some(part) if part.images.len() + part.missing.len() < most => add(part),
            _ => {
                let mut part = empty();
                add(&mut part);
                parts.push(part);
            }
        };
        self.images.iter().for_each(|image| add(&|part| part.images.push(image.clone())));
        self.missing.iter().for_each(|missing| add(&|part| part.missing.push(missing.clone())));
        parts
    }

    /// Names all images: whether a stable name is distinct is known once all are there.
    pub fn name(&mut self) {
        let names: Vec<_> = self.images.iter().map(Collected::names).collect();
        for (image, name) in self.images.iter_mut().zip(distinct_names(&names)) {
            image.name = name;
        }
    }
}

impl Collected {
    fn of(reports: &[Report<'_>], with_passes: bool, texts: &mut RuleShelf) -> Option<Self> {
        let first = reports.first()?;
        let image = first.image;
        let digest = image.manifest.as_ref().or(image.config.as_ref());
        let platform = image.platform.as_ref().map(|platform| short(&platform.to_string(), LONGEST));
        let reference = short(&image.reference, LONGEST);
        let title = |digest: Option<String>| {
            let more: Vec<&str> = platform.as_deref().into_iter().chain(digest.as_deref()).collect();
            if more.is_empty() { reference.clone() } else { format!("{reference} ({})", more.join(", ")) }
        };
        let heading = title(digest.map(|digest| format!("{}:{}", digest.algorithm(), digest.short())));
        let digest = digest.map(ToString::to_string);
        let title = title(digest.clone());
        let unread = provenance::unread(image);
        let hosts = reports.iter().filter_map(|report| {
            Some(CollectedHost {
                name: clean(&report.host?.name),
                verdict: report.verdict()?,
                counts: OutcomeCounts::of(report.judgements?),
            })
        });
        let names: Vec<_> = reports.iter().filter_map(|report| report.host).map(|host| clean(&host.name)).collect();
        first.judgements?;
        let judged: Vec<_> = reports.iter().filter_map(|report| report.judgements).collect();
        let shared = across_hosts(&judged);
        let is_kept = |shared: &&SharedJudgement<'_>| {
            with_passes || !matches!(shared.judgement.outcome, Outcome::Pass | Outcome::NotApplicable)
        };
        let entries = shared
            .iter()
            .filter(is_kept)
            .map(|shared| RuleEntry::of(first, shared, &names, texts.of(shared.judgement.rule)));
        let entries = entries.collect();
        let facts = first.probe.map_or_else(|| overview::rows(first.facts), |run| measured::rows(run, first.facts));
        let facts = facts.into_iter().map(|(name, text)| (name, short(&text, LONGEST))).collect();
        let tables = first.probe.map(|run| measured::tables(run, first.facts)).unwrap_or_default();
        Some(Self {
            name: String::new(),
            reference,
            title,
            heading,
            platform,
            digest,
            verdict: Verdict::worst(reports.iter().filter_map(Report::verdict))?,
            counts: OutcomeCounts::of(shared.iter().map(|shared| shared.judgement)),
            hosts: hosts.collect(),
            facts,
            tables,
            entries,
            notices: first.notices.iter().map(|notice| short(notice, LONGEST)).collect(),
            unread,
        })
    }

    /// The name that is stable across builds, and the full name.
    fn names(&self) -> (String, String) {
        let on_platform =
            |name: &str| self.platform.iter().fold(name.to_owned(), |name, platform| name + " " + platform);
        (on_platform(untagged(&self.reference)), on_platform(&self.reference))
    }

    /// Entries whose state matches, worst severity first.
    pub(super) fn of_state(&self, wanted: impl Fn(&EntryState) -> bool) -> Vec<&RuleEntry> {
        let mut entries: Vec<_> = self.entries.iter().filter(|entry| wanted(&entry.state)).collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.rule.severity));
        entries
    }
}

impl RuleEntry {
    /// Describes the entry in a few lines. They name the image, since services show findings without the report's head.
    pub(super) fn text(&self, image: &Collected) -> String {
        let mut lines = vec![self.message.clone()];
        lines.extend(self.note.clone());
        if let EntryState::Waived { reason, terms, .. } = &self.state {
            lines.push(format!("waived: {reason} ({terms})"));
        }
        if let EntryState::Consequence { cause } = &self.state {
            lines.push(format!("follows from {cause}"));
        }
        lines.push(format!("owner: {}", self.owner.name()));
        lines.push(format!("image: {}", image.title));
        if !self.hosts.is_empty() {
            lines.push(format!("on: {}", short(&self.hosts.join("; "), LONGEST)));
        }
        lines.extend(self.sites.iter().map(|site| format!("at: {site}")));
        lines.join("\n")
    }

    /// Identifies the finding across builds: 64 hexadecimal digits.
    pub(super) fn fingerprint(&self, image: &Collected) -> String {
        self.identity.fingerprint(&image.name, &self.hosts)
    }
}
