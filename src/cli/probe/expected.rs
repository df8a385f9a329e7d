//! What the user expects to be told: `--expect`, `--baseline`.

use crate::document::{Document, read_text};
use crate::facts::{Facts, key};
use crate::model::{Fact, Limits};
use crate::probe::expect::{self, Expectations};
use crate::probe::recording::Recording;

use super::super::Failure;
use super::super::args::probe::Judging;
use super::listener::recorded;

/// What is expected.
pub(super) struct Expected {
    values: Option<Expectations>,
    baseline: Option<Recording>,
}

impl Expected {
    pub(super) fn read(judging: &Judging) -> Result<Self, Failure> {
        let values = judging.expect.as_ref().map(|file| {
            let text = read_text(file, &Limits::default())?;
            Expectations::read(Document { name: &file.display().to_string(), text: &text }).map_err(Failure::Usage)
        });
        let baseline = judging.baseline.as_deref().map(|file| recorded("--baseline", file));
        Ok(Self { values: values.transpose()?, baseline: baseline.transpose()? })
    }

    pub(super) fn compare(&self, recording: &Recording, facts: &mut Facts) {
        if let Some(good) = &self.baseline {
            facts.insert(key::RUN_BASELINE, Fact::seen(true, []));
            expect::compare(good, recording, facts);
        }
        if let Some(values) = &self.values {
            facts.insert(key::RUN_EXPECTED, Fact::seen(true, []));
            values.compare(facts);
        }
    }
}
