//! Maps of which some entries are known and others are not: a job's variables, of which a script computes one.

use std::collections::BTreeMap;

use model::{Fact, Gap, Value};

/// The entries of a map whose gaps concern some of them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MapEntries {
    /// The certain entries, and the sites where they were read.
    pub(super) certain: Fact,
    /// Entries whose values are unknown, by name.
    pub(super) gaps: BTreeMap<String, Gap>,
    /// Why entries may exist whose names are neither certain nor have a gap of their own, and how these names begin.
    pub(super) others: Option<(&'static str, Gap)>,
}

impl MapEntries {
    /// Why an entry is unknown; `None` for one that is certain, or that certainly does not exist.
    pub(super) fn gap(&self, name: &str) -> Option<&Gap> {
        let is_certain = matches!(self.certain.value(), Some(Value::Map(map)) if map.contains_key(name));
        let other = || self.others.as_ref().filter(|(start, _)| !is_certain && name.starts_with(start));
        self.gaps.get(name).or_else(|| other().map(|(_, gap)| gap))
    }

    /// A gap of any entry.
    pub(super) fn any_gap(&self) -> Option<&Gap> {
        self.gaps.values().next().or(self.others.as_ref().map(|(_, gap)| gap))
    }

    /// The map as a whole: unknown if entries may be missing whose names are unknown.
    pub(super) fn whole(&self) -> Fact {
        self.others.as_ref().map_or_else(|| self.certain.clone(), |(_, gap)| Fact::Unknown(gap.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_certain_or_has_a_gap() {
        let map = BTreeMap::from([("NCCL_A".to_owned(), Value::Text("1".to_owned()))]);
        let mut entries = MapEntries {
            certain: Fact::known(Value::Map(map)),
            gaps: BTreeMap::from([("RANK".to_owned(), Gap::new("computed"))]),
            others: None,
        };
        assert_eq!(entries.gap("RANK"), Some(&Gap::new("computed")));
        assert_eq!([entries.gap("NCCL_A"), entries.gap("NCCL_B")], [None, None]);
        assert_eq!(entries.whole(), entries.certain);
        entries.others = Some(("NCCL_", Gap::new("not read")));
        assert_eq!([entries.gap("NCCL_A"), entries.gap("CUDA_B")], [None, None]);
        assert_eq!(entries.gap("NCCL_B"), Some(&Gap::new("not read")));
        assert_eq!(entries.whole(), Fact::Unknown(Gap::new("not read")));
    }
}
