//! Patterns for rule ids: one id, a prefix such as `area/*` or `area/rdma-*`, or `*` for all rules.

/// A rule id, or a prefix that ends in `*`.
#[derive(Clone, Debug)]
pub(crate) struct RulePattern(String);

impl RulePattern {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub(crate) fn matches(&self, id: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(before) => id.starts_with(before),
            None => self.0 == id,
        }
    }
}
