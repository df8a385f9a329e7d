//! Sums over the images of a run: by verdict, rule, layer and team. They grow with the number of layers, not with what
//! is known of each image.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use model::Severity;

use super::document::{AuditCounts, AuditLayer, AuditRow, AuditRule, AuditTeam};
use super::{AuditItem, ItemResult};

/// Labels that name an owner, in the order in which they are believed.
const OWNERS: [&str; 4] = [
    "org.opencontainers.image.base.name",
    "org.opencontainers.image.vendor",
    "org.opencontainers.image.authors",
    "maintainer",
];

/// The sums so far.
#[derive(Debug, Default)]
pub(super) struct AuditSums {
    pub(super) counts: AuditCounts,
    rules: BTreeMap<String, RuleSum>,
    layers: BTreeMap<(String, String), LayerSum>,
    /// By team; the key is `None` for images of no team.
    teams: BTreeMap<Option<String>, AuditTeam>,
    /// True with a map of teams.
    has_teams: bool,
    /// The image that ends with a layer, and its team.
    tops: BTreeMap<String, String>,
}

#[derive(Debug)]
struct RuleSum {
    severity: Severity,
    images: usize,
    layers: BTreeSet<String>,
    example: String,
}

#[derive(Debug)]
struct LayerSum {
    size: u64,
    severity: Severity,
    images: usize,
    step: Option<String>,
    example: String,
    /// The value of each label of [`OWNERS`] that all images so far have.
    labels: Vec<Option<String>>,
}

impl AuditSums {
    /// No sums yet.
    pub(super) fn new(has_teams: bool) -> Self {
        Self { has_teams, ..Self::default() }
    }

    /// Adds an image.
    pub(super) fn add(&mut self, item: &AuditItem, row: &AuditRow, result: Option<&ItemResult>) {
        self.counts.add(&row.verdict);
        let name = row.names.first().cloned().unwrap_or_default();
        let rules: BTreeMap<&str, Severity> =
            row.findings.iter().map(|finding| (&*finding.rule, finding.severity)).collect();
        if let Some((digest, _)) = item.layers.last() {
            let owner = row.team.clone().unwrap_or_else(|| name.clone());
            self.tops.entry(digest.to_string()).or_insert(owner);
        }
        if self.has_teams {
            let team = &row.team;
            let new = || AuditTeam { team: team.clone(), counts: AuditCounts::default(), rules: BTreeMap::new() };
            let sum = self.teams.entry(team.clone()).or_insert_with(new);
            sum.counts.add(&row.verdict);
            for rule in rules.keys() {
                *sum.rules.entry((*rule).to_owned()).or_default() += 1;
            }
        }
        for (rule, severity) in rules {
            let new = || RuleSum { severity, images: 0, layers: BTreeSet::new(), example: name.clone() };
            let sum = self.rules.entry(rule.to_owned()).or_insert_with(new);
            sum.images += 1;
            sum.severity = sum.severity.max(severity);
        }
        let Some(result) = result else { return };
        let blamed: BTreeSet<(&str, &str, Severity)> = row
            .findings
            .iter()
            .filter_map(|finding| Some((finding.layer.as_deref()?, &*finding.rule, finding.severity)))
            .collect();
        for (layer, rule, severity) in blamed {
            if let Some(sum) = self.rules.get_mut(rule) {
                sum.layers.insert(layer.to_owned());
            }
            let known = result.layers.get(layer);
            let labels = || OWNERS.iter().map(|label| result.labels.get(*label).cloned());
            let new = || LayerSum {
                size: known.map_or(0, |known| known.size),
                severity,
                images: 0,
                step: known.and_then(|known| known.step.clone()),
                example: name.clone(),
                labels: labels().collect(),
            };
            let sum = self.layers.entry((layer.to_owned(), rule.to_owned())).or_insert_with(new);
            sum.images += 1;
            for (kept, found) in sum.labels.iter_mut().zip(labels()) {
                if *kept != found {
                    *kept = None;
                }
            }
        }
    }

    /// Findings by layer, the most images first.
    pub(super) fn layers(&self) -> Vec<AuditLayer> {
        let mut layers: Vec<_> = self.layers.iter().map(|((layer, rule), sum)| self.layer(layer, rule, sum)).collect();
        layers.sort_by_key(|layer| (Reverse(layer.images), Reverse(layer.severity)));
        layers
    }

    fn layer(&self, layer: &str, rule: &str, sum: &LayerSum) -> AuditLayer {
        let by_image = self.tops.get(layer).map(|owner| (owner.clone(), "image"));
        let by_label = || OWNERS.iter().zip(&sum.labels).find_map(|(label, value)| Some((value.clone()?, *label)));
        let owner = by_image.or_else(by_label);
        AuditLayer {
            layer: layer.to_owned(),
            size: sum.size,
            rule: rule.to_owned(),
            severity: sum.severity,
            images: sum.images,
            owner_from: owner.as_ref().map(|(_, from)| (*from).to_owned()),
            owner: owner.map(|(owner, _)| owner),
            step: sum.step.clone(),
            example: sum.example.clone(),
        }
    }

    /// Findings by rule, the most severe first.
    pub(super) fn rules(&self) -> Vec<AuditRule> {
        let rule = |(rule, sum): (&String, &RuleSum)| AuditRule {
            rule: rule.clone(),
            severity: sum.severity,
            images: sum.images,
            layers: sum.layers.len(),
            example: sum.example.clone(),
        };
        let mut rules: Vec<_> = self.rules.iter().map(rule).collect();
        rules.sort_by_key(|rule| (Reverse(rule.severity), Reverse(rule.images)));
        rules
    }

    /// Images by team, the most failing first.
    pub(super) fn teams(&self) -> Vec<AuditTeam> {
        let mut teams: Vec<_> = self.teams.values().cloned().collect();
        teams.sort_by_key(|team| Reverse(team.counts.fail));
        teams
    }
}
