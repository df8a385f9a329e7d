//! Records and facts as the tests of recorded hosts write them.

use std::fmt::Debug;

use crate::machine::Record;
use model::Fact;
use model::document::Document;

/// A record with these parts.
pub(super) fn record(text: &str) -> Record {
    let text = format!("schema: ncclcheck-host/1\n{text}");
    Record::parse(Document { name: "record", text: &text }).unwrap_or_else(|mistake| panic!("{mistake}"))
}

/// The value, `absent`, or `unknown: …`.
pub(super) fn said<T: Debug>(fact: Fact<T>) -> String {
    match fact {
        Fact::Seen { value, .. } => format!("{value:?}"),
        Fact::Absent => "absent".to_owned(),
        Fact::Unknown(gap) => format!("unknown: {}", gap.why),
    }
}
