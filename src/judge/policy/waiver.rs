//! Findings that somebody accepted, for a reason and for a time.

use globset::{Glob, GlobMatcher};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::document::{Document, DocumentError, Spanned};
use crate::judge::rules::{Judgement, Outcome, Problem, Waived};
use crate::model::{Digest, DigestError};

use super::file::WaiverEntry;
use super::pattern::RulePattern;

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

/// A waiver.
#[derive(Debug)]
pub(super) struct Waiver {
    pub(super) rule: Spanned<String>,
    reason: String,
    images: Vec<GlobMatcher>,
    digest: Option<Digest>,
    fingerprint: Option<String>,
    unknown: bool,
    /// `None` is never.
    expires: Option<Date>,
    /// File and line.
    place: String,
}

impl Waiver {
    /// Reads what is written in a policy.
    pub(super) fn read(entry: WaiverEntry, document: Document<'_>) -> Result<Self, DocumentError> {
        if entry.reason.value.trim().is_empty() {
            return Err(document.mistake(&entry.reason, "a waiver has a reason, and this one is empty"));
        }
        if entry.images.as_ref().is_some_and(Vec::is_empty) {
            let what = "this waiver's images are an empty list: leave it out, or name some";
            return Err(document.mistake(&entry.rule, what));
        }
        let digest = |digest: &Spanned<String>| {
            digest.value.parse().map_err(|error: DigestError| document.mistake(digest, error.to_string()))
        };
        Ok(Self {
            images: entry.images.iter().flatten().map(|text| glob(text, document)).collect::<Result<_, _>>()?,
            digest: entry.digest.as_ref().map(digest).transpose()?,
            fingerprint: entry.fingerprint.map(|text| fingerprint(text, document)).transpose()?,
            expires: expiry(&entry.expires, document)?,
            place: format!("{}:{}", document.name, entry.rule.referenced.line()),
            unknown: entry.unknown,
            reason: entry.reason.value,
            rule: entry.rule,
        })
    }

    fn is_for(&self, image: &Subject<'_>) -> bool {
        let named = self.images.is_empty()
            || image.names.iter().any(|name| self.images.iter().any(|pattern| pattern.is_match(name)));
        named && self.digest.as_ref().is_none_or(|digest| image.digests.contains(&Some(digest.as_str())))
    }

    fn covers(&self, judgement: &Judgement<'_>) -> bool {
        if !self.is_of(judgement) {
            return false;
        }
        match &judgement.outcome {
            Outcome::Fail(_) => self.fingerprint.as_ref().is_none_or(|wanted| {
                judgement.fingerprint().is_some_and(|fingerprint| fingerprint.starts_with(wanted))
            }),
            Outcome::Unknown(_) => self.unknown,
            Outcome::Pass | Outcome::NotApplicable | Outcome::Waived(_) => false,
        }
    }

    fn is_of(&self, judgement: &Judgement<'_>) -> bool {
        RulePattern::new(&self.rule.value).matches(&judgement.rule.id)
    }

    fn waive(&self, outcome: Outcome, today: Today) -> Outcome {
        let problem = match outcome {
            Outcome::Fail(mut finding) if self.is_expired(today) => {
                let until = self.expires.map(|day| day.to_string()).unwrap_or_default();
                finding.note = Some(format!("it was accepted until {until} ({}): {}", self.place, self.reason));
                return Outcome::Fail(finding);
            }
            Outcome::Unknown(gaps) if self.is_expired(today) => return Outcome::Unknown(gaps),
            Outcome::Fail(finding) => Problem::Failure(finding),
            Outcome::Unknown(gaps) => Problem::Unknown(gaps),
            other => return other,
        };
        Outcome::Waived(Waived {
            problem,
            reason: self.reason.clone(),
            expires: self.expires.map(|date| date.to_string()),
            place: self.place.clone(),
        })
    }

    fn is_expired(&self, today: Today) -> bool {
        self.expires.is_some_and(|last| last < today.0)
    }
}

fn glob(text: &Spanned<String>, document: Document<'_>) -> Result<GlobMatcher, DocumentError> {
    if text.value.is_empty() {
        return Err(document.mistake(text, "this pattern matches no image's name"));
    }
    let glob = Glob::new(&text.value)
        .map_err(|error| document.mistake(text, format!("this is no pattern of names: {}", error.kind())))?;
    Ok(glob.compile_matcher())
}

fn fingerprint(text: Spanned<String>, document: Document<'_>) -> Result<String, DocumentError> {
    if !(8..=64).contains(&text.value.len()) || !text.value.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')) {
        let what = "a fingerprint is 8 to 64 hexadecimal digits, as the JSON report has them";
        return Err(document.mistake(&text, what));
    }
    Ok(text.value)
}

fn expiry(text: &Spanned<String>, document: Document<'_>) -> Result<Option<Date>, DocumentError> {
    if text.value == "never" {
        return Ok(None);
    }
    let what = || format!("'{}' is no day such as 2027-01-31, and not 'never'", text.value);
    text.value.parse().map(Some).map_err(|_day| document.mistake(text, what()))
}

/// Applies waivers to what was judged of an image, and tells which of those that are for it changed nothing.
pub(super) fn accept<'r>(
    waivers: &[&Waiver],
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
    let is_asked = |waiver: &Waiver| judgements.iter().any(|judgement| waiver.is_of(judgement));
    let unused = waivers.iter().zip(used).filter(|(waiver, used)| !used && is_asked(waiver));
    let notices = unused.map(|(waiver, _)| {
        let expired = if waiver.is_expired(today) { ", and has expired" } else { "" };
        format!(
            "the waiver of {} in {} is not used for this image{expired}: the rule found nothing that it accepts",
            waiver.rule.value, waiver.place
        )
    });
    let notices = notices.collect();
    (judgements, notices)
}
