//! Sums over the images of a run: by verdict, rule, layer and team. They grow with the number of layers, not with what
//! is known of each image.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use model::Severity;

use super::document::{AuditCounts, AuditLayer, AuditRow, AuditRule, AuditTeam};
use super::judged::LABELS;
use super::{AuditItem, ItemResult};

/// The sum of a layer, with the value of each label of [`LABELS`] that all images so far have.
type LabelledLayer = (AuditLayer, Vec<Option<String>>);

/// The sums so far.
#[derive(Debug, Default)]
pub(super) struct AuditSums {
    pub(super) counts: AuditCounts,
    /// With the layers that bring them.
    rules: BTreeMap<String, (AuditRule, BTreeSet<String>)>,
    /// By digest and rule.
    layers: BTreeMap<(String, String), LabelledLayer>,
    /// By team; the key is `None` for images of no team.
    teams: BTreeMap<Option<String>, AuditTeam>,
    /// True with a map of teams.
    has_teams: bool,
    /// The image that ends with a layer, and its team.
    tops: BTreeMap<String, String>,
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
            let new = || {
                let rule = rule.to_owned();
                (AuditRule { rule, severity, images: 0, layers: 0, example: name.clone() }, BTreeSet::new())
            };
            let (sum, _) = self.rules.entry(rule.to_owned()).or_insert_with(new);
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
            if let Some((sum, layers)) = self.rules.get_mut(rule) {
                layers.insert(layer.to_owned());
                sum.layers = layers.len();
            }
            let known = result.layers.get(layer);
            let labels = || LABELS.iter().map(|label| result.labels.get(*label).cloned());
            let new = || {
                let sum = AuditLayer {
                    layer: layer.to_owned(),
                    size: known.map_or(0, |known| known.size),
                    rule: rule.to_owned(),
                    severity,
                    images: 0,
                    owner: None,
                    owner_from: None,
                    step: known.and_then(|known| known.step.clone()),
                    example: name.clone(),
                };
                (sum, labels().collect())
            };
            let (sum, kept) = self.layers.entry((layer.to_owned(), rule.to_owned())).or_insert_with(new);
            sum.images += 1;
            for (kept, found) in kept.iter_mut().zip(labels()) {
                if *kept != found {
                    *kept = None;
                }
            }
        }
    }

    /// Findings by layer, the most images first.
    pub(super) fn layers(&self) -> Vec<AuditLayer> {
        let owned = |(sum, labels): &LabelledLayer| {
            let by_image = self.tops.get(&sum.layer).map(|owner| (owner.clone(), "image"));
            let by_label = || LABELS.iter().zip(labels).find_map(|(label, value)| Some((value.clone()?, *label)));
            let (owner, from) = by_image.or_else(by_label).unzip();
            AuditLayer { owner, owner_from: from.map(str::to_owned), ..sum.clone() }
        };
        let mut layers: Vec<_> = self.layers.values().map(owned).collect();
        layers.sort_by_key(|layer| (Reverse(layer.images), Reverse(layer.severity)));
        layers
    }

    /// Findings by rule, the most severe first.
    pub(super) fn rules(&self) -> Vec<AuditRule> {
        let mut rules: Vec<_> = self.rules.values().map(|(sum, _)| sum.clone()).collect();
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
