//! Findings that somebody accepted, for a reason and for a time.

use globset::{Glob, GlobMatcher};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::document::{Document, Mistake, Spanned};
use crate::rules::{Judgement, Outcome, Problem, Waived};

use super::file::Entry;
use super::pattern::Pattern;

/// The day by which waivers expire.
#[derive(Clone, Copy, Debug)]
pub struct Today(Date);

impl Today {
    /// This day, in UTC: the same for everybody.
    pub fn now() -> Self {
        Self(Timestamp::now().to_zoned(TimeZone::UTC).date())
    }

    #[cfg(test)]
    pub(super) fn of(text: &str) -> Self {
        Self(text.parse().unwrap())
    }
}

/// The image that is judged, by its names.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'i> {
    /// As the user wrote it, and as it was found.
    pub names: [&'i str; 2],
    /// Digests of its manifest and of its configuration.
    pub digests: [Option<&'i str>; 2],
}

/// A waiver, and where it stands.
pub(super) struct Waiver<'p> {
    entry: &'p Entry,
    rule: Pattern,
    images: Vec<GlobMatcher>,
    /// `None` is never.
    expires: Option<Date>,
    place: String,
}

/// What is wrong in a waiver.
pub(super) fn check(entry: &Entry, document: Document<'_>) -> Result<(), Mistake> {
    if entry.reason.value.trim().is_empty() {
        return Err(document.mistake(&entry.reason, "a waiver has a reason, and this one is empty"));
    }
    if expiry(&entry.expires.value).is_err() {
        let what = format!("'{}' is no day such as 2027-01-31, and not 'never'", entry.expires.value);
        return Err(document.mistake(&entry.expires, what));
    }
    if entry.images.as_ref().is_some_and(Vec::is_empty) {
        return Err(document.mistake(&entry.rule, "this waiver's images are an empty list: leave it out, or name some"));
    }
    for pattern in entry.images.iter().flatten() {
        if pattern.value.is_empty() {
            return Err(document.mistake(pattern, "this pattern matches no image's name"));
        }
        Glob::new(&pattern.value)
            .map_err(|error| document.mistake(pattern, format!("this is no pattern of names: {}", error.kind())))?;
    }
    if let Some(digest) = &entry.digest {
        digest.value.parse::<crate::model::Digest>().map_err(|error| document.mistake(digest, error.to_string()))?;
    }
    match &entry.fingerprint {
        Some(text) if text.value.len() < 8 || !text.value.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')) => {
            let what = "a fingerprint is 8 to 64 hexadecimal digits, as the JSON report has them".to_owned();
            Err(document.mistake(text, what))
        }
        _ => Ok(()),
    }
}

fn expiry(text: &str) -> Result<Option<Date>, jiff::Error> {
    if text == "never" { Ok(None) } else { text.parse().map(Some) }
}

impl<'p> Waiver<'p> {
    /// One that was checked.
    pub(super) fn new(entry: &'p Entry, file: &str) -> Self {
        Self {
            entry,
            rule: Pattern::new(&entry.rule.value),
            images: entry.images.iter().flatten().filter_map(glob).collect(),
            expires: expiry(&entry.expires.value).ok().flatten(),
            place: format!("{file}:{}", entry.rule.referenced.line()),
        }
    }

    fn is_for(&self, image: &Subject<'_>) -> bool {
        let named = self.images.is_empty()
            || image.names.iter().any(|name| self.images.iter().any(|pattern| pattern.is_match(name)));
        let digest = self.entry.digest.as_ref().map(|digest| &*digest.value);
        named && digest.is_none_or(|digest| image.digests.contains(&Some(digest)))
    }

    fn covers(&self, judgement: &Judgement<'_>) -> bool {
        if !self.rule.matches(&judgement.rule.id) {
            return false;
        }
        match &judgement.outcome {
            Outcome::Fail(_) => self.entry.fingerprint.as_ref().is_none_or(|wanted| {
                judgement.fingerprint().is_some_and(|fingerprint| fingerprint.starts_with(&wanted.value))
            }),
            Outcome::Unknown(_) => self.entry.unknown,
            Outcome::Pass | Outcome::NotApplicable | Outcome::Waived(_) => false,
        }
    }

    fn is_expired(&self, today: Today) -> bool {
        self.expires.is_some_and(|last| last < today.0)
    }
}

fn glob(text: &Spanned<String>) -> Option<GlobMatcher> {
    Some(Glob::new(&text.value).ok()?.compile_matcher())
}

/// Applies waivers to what was judged of an image, and tells which of those that are for it changed nothing.
pub(super) fn accept<'r>(
    waivers: &[Waiver<'_>],
    judgements: Vec<Judgement<'r>>,
    image: &Subject<'_>,
    today: Today,
) -> (Vec<Judgement<'r>>, Vec<String>) {
    let waivers: Vec<_> = waivers.iter().filter(|waiver| waiver.is_for(image)).collect();
    let mut used = vec![false; waivers.len()];
    let mut judge = |judgement: Judgement<'r>| {
        let mut covering: Vec<_> =
            waivers.iter().zip(&mut used).filter(|(waiver, _)| waiver.covers(&judgement)).collect();
        // One that holds counts before one that has expired.
        covering.sort_by_key(|(waiver, _)| waiver.is_expired(today));
        let Some((waiver, used)) = covering.into_iter().next() else { return judgement };
        *used = true;
        Judgement { outcome: waiver.waive(judgement.outcome, today), ..judgement }
    };
    let judgements: Vec<_> = judgements.into_iter().map(&mut judge).collect();
    // One whose rule was not asked, as in a probe alone, says nothing.
    let is_asked = |waiver: &Waiver<'_>| judgements.iter().any(|judgement| waiver.rule.matches(&judgement.rule.id));
    let unused = waivers.iter().zip(used).filter(|(waiver, used)| !used && is_asked(waiver));
    let notices = unused.map(|(waiver, _)| {
        let expired = if waiver.is_expired(today) { ", and has expired" } else { "" };
        format!(
            "the waiver of {} in {} is not used for this image{expired}: the rule found nothing that it accepts",
            waiver.entry.rule.value, waiver.place
        )
    });
    let notices = notices.collect();
    (judgements, notices)
}

impl Waiver<'_> {
    fn waive(&self, outcome: Outcome, today: Today) -> Outcome {
        let problem = match outcome {
            Outcome::Fail(mut finding) if self.is_expired(today) => {
                finding.note = Some(format!(
                    "it was accepted until {} ({}): {}",
                    self.entry.expires.value, self.place, self.entry.reason.value
                ));
                return Outcome::Fail(finding);
            }
            Outcome::Unknown(gaps) if self.is_expired(today) => return Outcome::Unknown(gaps),
            Outcome::Fail(finding) => Problem::Failure(finding),
            Outcome::Unknown(gaps) => Problem::Unknown(gaps),
            other => return other,
        };
        Outcome::Waived(Waived {
            problem,
            reason: self.entry.reason.value.clone(),
            expires: self.expires.map(|date| date.to_string()),
            place: self.place.clone(),
        })
    }
}
