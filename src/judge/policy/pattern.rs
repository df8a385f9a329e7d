//! Names of rules: one by its id, several by `area/*` or `area/rdma-*`, all by `*`.

/// A name or a pattern.
#[derive(Clone, Debug)]
pub(super) struct RulePattern(String);

impl RulePattern {
    pub(super) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub(super) fn matches(&self, id: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(before) => id.starts_with(before),
            None => self.0 == id,
        }
    }
}
