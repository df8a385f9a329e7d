//! Waivers: findings accepted for a stated reason and a limited time.

use globset::GlobMatcher;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::rules::{Judgement, Outcome, Problem, Waived};
use model::document::{Document, DocumentError, Spanned};
use model::{Digest, DigestError};

use super::file::WaiverEntry;
use super::patterns::{image_patterns, is_rule};

/// The date that decides which waivers have expired.
#[derive(Clone, Copy, Debug)]
pub struct Today(Date);

impl Today {
    /// The current date in UTC, so that all users get the same result.
    pub fn now() -> Self {
        Self(Timestamp::now().to_zoned(TimeZone::UTC).date())
    }

    #[cfg(test)]
    pub(super) fn of(text: &str) -> Self {
        Self(text.parse().unwrap())
    }
}

/// Names and digests of the image that is judged.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'i> {
    /// The reference as the user wrote it, and the source where the image was found.
    pub names: [&'i str; 2],
    /// Digests of the manifest and of the configuration.
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
    /// Last day; `None` for never.
    expires: Option<Date>,
    /// File and line.
    place: String,
}

impl Waiver {
    /// Validates an entry of a policy.
    pub(super) fn read(entry: WaiverEntry, document: Document<'_>) -> Result<Self, DocumentError> {
        if entry.reason.value.trim().is_empty() {
            return Err(document.mistake(&entry.reason, "the reason of a waiver must not be empty"));
        }
        if entry.images.as_ref().is_some_and(Vec::is_empty) {
            let what = "the images of a waiver must not be an empty list: remove it, or name at least one image";
            return Err(document.mistake(&entry.rule, what));
        }
        let digest = |digest: &Spanned<String>| {
            digest.value.parse().map_err(|error: DigestError| document.mistake(digest, error.to_string()))
        };
        Ok(Self {
            images: image_patterns(entry.images.as_deref().unwrap_or_default(), document)?,
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
            Outcome::Pass | Outcome::NotApplicable | Outcome::Waived(_) | Outcome::Consequence(_) => false,
        }
    }

    fn is_of(&self, judgement: &Judgement<'_>) -> bool {
        is_rule(&self.rule.value, &judgement.rule.id)
    }

    fn waive(&self, outcome: Outcome, today: Today) -> Outcome {
        let problem = match outcome {
            Outcome::Fail(mut finding) if self.is_expired(today) => {
                let until = self.expires.map(|day| day.to_string()).unwrap_or_default();
                finding.note = Some(format!("its waiver expired after {until} ({}): {}", self.place, self.reason));
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

fn fingerprint(text: Spanned<String>, document: Document<'_>) -> Result<String, DocumentError> {
    if !(8..=64).contains(&text.value.len()) || !text.value.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')) {
        let what = "a fingerprint is 8 to 64 lower-case hexadecimal digits, as in the JSON report";
        return Err(document.mistake(&text, what));
    }
    Ok(text.value)
}

fn expiry(text: &Spanned<String>, document: Document<'_>) -> Result<Option<Date>, DocumentError> {
    if text.value == "never" {
        return Ok(None);
    }
    let what = || format!("invalid date '{}': use YYYY-MM-DD or 'never'", text.value);
    text.value.parse().map(Some).map_err(|_day| document.mistake(text, what()))
}

/// Applies waivers to the judgements of an image, and returns a notice for each waiver for this image that had no
/// effect.
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
        // A valid waiver takes precedence over an expired one.
        covering.sort_by_key(|(waiver, _)| waiver.is_expired(today));
        let Some((waiver, used)) = covering.into_iter().next() else { return judgement };
        *used = true;
        Judgement { outcome: waiver.waive(judgement.outcome, today), ..judgement }
    };
    let judgements: Vec<_> = judgements.into_iter().map(&mut judge).collect();
    // A waiver whose rule was not evaluated, as in a probe alone, gives no notice.
    let is_asked = |waiver: &Waiver| judgements.iter().any(|judgement| waiver.is_of(judgement));
    let unused = waivers.iter().zip(used).filter(|(waiver, used)| !used && is_asked(waiver));
    let notices = unused.map(|(waiver, _)| {
        let expired = if waiver.is_expired(today) { " and has expired" } else { "" };
        format!("unused waiver: {} ({}) matches no finding in this image{expired}", waiver.rule.value, waiver.place)
    });
    let notices = notices.collect();
    (judgements, notices)
}
