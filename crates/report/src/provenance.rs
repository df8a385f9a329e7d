//! What verdicts rest on: the policy that judged, what it waived, and the layers that were not read in this run.

use std::collections::{BTreeMap, BTreeSet};

use super::Report;
use super::entry::EntryState;
use super::plain_text::short;
use judge::SharedJudgement;
use model::ImageSummary;
use model::counted;

/// Maximum characters of a line.
const LINE: usize = 1000;
/// Maximum waivers that have a line, and maximum notes.
const NAMED: usize = 12;

/// What the verdicts of a run rest on.
#[derive(Clone, Debug, Default)]
pub(super) struct SurveyProvenance {
    /// The lines on an audit, if the rows are its images.
    pub(super) audit: Vec<String>,
    /// Number of images by the description of the rules that judged them.
    pub(super) policies: BTreeMap<String, usize>,
    /// Maximum number of rules that a policy switched off.
    pub(super) rules_off: usize,
    /// Indexes of the images, by the rule that was waived in them and the reason.
    pub(super) waived: BTreeMap<(String, String), BTreeSet<usize>>,
    /// Indexes of the images, by a note on them.
    pub(super) notes: BTreeMap<String, BTreeSet<usize>>,
    /// Images and layers that were not read, and those of them that came from a shared cache.
    pub(super) unread: Unread,
}

/// Layers whose content was known from a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unread {
    pub(super) images: usize,
    /// All layers of those images.
    pub(super) of: usize,
    pub(super) layers: usize,
    pub(super) shared: usize,
}

impl SurveyProvenance {
    /// Adds the reports on the image of a row.
    pub(super) fn add(&mut self, row: usize, reports: &[Report<'_>], judged: &[SharedJudgement<'_>]) {
        let Some(first) = reports.first() else { return };
        if let Some(rules) = first.rules {
            *self.policies.entry(short(&rules.to_string(), LINE)).or_default() += 1;
            self.rules_off = self.rules_off.max(rules.off);
        }
        for judgement in judged.iter().map(|shared| shared.judgement) {
            if let EntryState::Waived { reason, .. } = EntryState::from(&judgement.outcome) {
                self.waived.entry((judgement.rule.id.clone(), reason)).or_default().insert(row);
            }
        }
        for note in first.image.notes.iter().chain(first.notices) {
            self.notes.entry(short(note, LINE)).or_default().insert(row);
        }
        let (cached, shared) = cached(first.image);
        if cached > 0 {
            self.unread.images += 1;
            self.unread.of += first.image.layers.len();
            self.unread.layers += cached;
            self.unread.shared += shared;
        }
    }

    /// A line for each policy, for each rule that was waived, for what was not read, and for each note.
    pub(super) fn lines(&self) -> Vec<String> {
        let several = self.policies.len() > 1;
        let policies = self.policies.iter().map(|(text, images)| {
            let images = if several { format!(", {}", counted(*images, "image", "images")) } else { String::new() };
            format!("judged by {text}{images}")
        });
        let audit = self.audit.iter().cloned();
        audit.chain(policies).chain(self.waived_lines()).chain(self.unread_line()).chain(self.note_lines()).collect()
    }

    fn waived_lines(&self) -> impl Iterator<Item = String> {
        let rules = self.waived.iter().take(NAMED).map(|((rule, reason), images)| {
            format!("waived: {rule} in {}: {reason}", counted(images.len(), "image", "images"))
        });
        rules.chain(beyond(self.waived.len(), "waived: ", "more waiver", "more waivers"))
    }

    fn note_lines(&self) -> impl Iterator<Item = String> {
        let notes = self.notes.iter().take(NAMED).map(|(note, images)| match images.len() {
            1 => format!("note: {note}"),
            several => format!("note on {several} images: {note}"),
        });
        notes.chain(beyond(self.notes.len(), "", "more note", "more notes"))
    }

    fn unread_line(&self) -> Option<String> {
        let Unread { images, of, layers, shared } = self.unread;
        let images = counted(images, "image", "images");
        (layers > 0).then(|| {
            format!("{layers} of {of} layers of {images} were not read in this run: {}", origin(layers, shared))
        })
    }
}

/// Says how many of `all` have no line.
fn beyond(all: usize, before: &str, one: &str, many: &str) -> Option<String> {
    let more = all.checked_sub(NAMED).filter(|more| *more > 0)?;
    Some(format!("{before}{}; the report on each image has them all", counted(more, one, many)))
}

/// Number of the layers of an image that were not read because their scans were cached, and of those from a shared
/// cache.
pub(super) fn cached(image: &ImageSummary) -> (usize, usize) {
    let count = |wanted: fn(&model::LayerSummary) -> bool| image.layers.iter().filter(|layer| wanted(layer)).count();
    (count(|layer| layer.cached), count(|layer| layer.cached && layer.shared))
}

/// Says how many layers of an image were not read in this run; `None` if all were.
pub(super) fn unread(image: &ImageSummary) -> Option<String> {
    let (layers, shared) = cached(image);
    let of = image.layers.len();
    (layers > 0).then(|| format!("{layers} of {of} layers were not read in this run: {}", origin(layers, shared)))
}

/// Where the scans came from.
fn origin(layers: usize, shared: usize) -> String {
    match (layers - shared, shared) {
        (_, 0) => "their scans come from the cache of this user".to_owned(),
        (0, _) => "their scans come from a shared cache".to_owned(),
        (own, shared) => format!("{own} scans come from the cache of this user, {shared} from a shared cache"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_what_was_waived_and_what_was_not_read() {
        let mut provenance = SurveyProvenance::default();
        assert!(provenance.lines().is_empty());
        provenance.waived.insert(("a/b".to_owned(), "TCP only".to_owned()), [0, 3].into());
        provenance.notes = (10..24).map(|number| (format!("note {number}"), [1].into())).collect();
        provenance.notes.insert("note 0".to_owned(), [0, 1].into());
        provenance.unread = Unread { images: 2, of: 9, layers: 5, shared: 2 };
        let lines = provenance.lines();
        assert_eq!(
            lines[..3],
            [
                "waived: a/b in 2 images: TCP only",
                "5 of 9 layers of 2 images were not read in this run: 3 scans come from the cache of this user, 2 from a \
                 shared cache",
                "note on 2 images: note 0",
            ]
        );
        assert_eq!(lines[3], "note: note 10");
        assert_eq!(lines[14..], ["3 more notes; the report on each image has them all"]);
    }
}
