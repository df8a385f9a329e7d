//! Lists of sentences about settings.

use std::collections::BTreeSet;

use model::{Fact, Gap, Site};

/// Sentences about settings, each with its sites; becomes one list fact.
#[derive(Default)]
pub(crate) struct SettingList {
    texts: Vec<String>,
    known: BTreeSet<String>,
    at: Vec<Site>,
}

impl SettingList {
    /// Adds a sentence unless it is there, and its sites.
    pub(crate) fn push(&mut self, text: String, at: impl IntoIterator<Item = Site>) {
        if self.known.insert(text.clone()) {
            self.texts.push(text);
        }
        self.at.extend(at);
    }

    /// An empty list is absent, or unknown if something could not be read.
    pub(crate) fn fact(mut self, gap: Option<&Gap>) -> Fact<Vec<String>> {
        self.at.sort();
        self.at.dedup();
        match gap {
            _ if !self.texts.is_empty() => Fact::Seen { value: self.texts, at: self.at },
            Some(gap) => Fact::Unknown(gap.clone()),
            None => Fact::Absent,
        }
    }
}
