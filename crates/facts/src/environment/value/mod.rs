//! Values as the libraries read them.

mod addresses;
pub(super) mod names;
mod numbers;
mod policies;
pub(crate) mod selection;
mod words;

use model::Version;

use super::super::settings::strtoll;
use super::vocabulary::{Reads, VariableUse, table};

/// Values of which a reader that refuses any value refuses at least one: none, a word, a number with more behind it, a size that
/// is not a multiple of eight, an address range without a length, and a number that nothing holds.
pub(super) const DOUBTFUL: [&str; 6] = ["", "?", "-1x", "4M", "10.0.0.0", "99999999999999999999"];

/// A value that its reader does not take as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misreading {
    /// What the reader makes of it.
    pub(super) what: String,
    /// True when the job stops at it.
    pub(super) stops: bool,
    /// True when it stops only at some collectives.
    pub(super) is_partial: bool,
}

impl Misreading {
    fn ignored(what: impl Into<String>) -> Self {
        Self { what: what.into(), stops: false, is_partial: false }
    }

    fn stops(what: impl Into<String>) -> Self {
        Self { what: what.into(), stops: true, is_partial: false }
    }

    /// The setting and its effect, for a report.
    pub(super) fn describe(&self, name: &str, value: &str) -> String {
        format!("{name}={value} ({})", self.what)
    }
}

/// What a reader of this release makes of a value; `None` when it takes the value as written.
pub(super) fn misreading(about: &VariableUse, value: &str, version: &Version) -> Option<Misreading> {
    if value.is_empty() {
        if let Some(empty) = &about.empty {
            return Some(Misreading { what: empty.what.clone(), stops: empty.stops, is_partial: false });
        }
        // NCCL's other readers take an empty value for an unset one.
        if !about.stops && !about.reads.sees_empty() {
            return None;
        }
    }
    match about.reads {
        Reads::Text => None,
        Reads::Number => numbers::number(value, about.range),
        Reads::Flag => numbers::number(value, Some(about.range.unwrap_or((0, 1)))),
        Reads::One => numbers::one(value),
        Reads::Threads => numbers::threads(value, about.range),
        Reads::Buffer => numbers::buffer(value, about.unit, about.range),
        Reads::Unsigned => numbers::unsigned(value),
        Reads::Processors => numbers::processors(value),
        Reads::Thresholds => numbers::thresholds(value),
        Reads::Switch => numbers::switch(value, version),
        Reads::Digit => numbers::digit(value),
        Reads::Integer => numbers::integer(value, about.range),
        Reads::Timeout => numbers::timeout(value),
        Reads::Word => words::word(about, value),
        Reads::Choice => words::choice(about, value),
        Reads::Prefix => words::prefix(about, value),
        Reads::Words => words::list(about, value, version),
        Reads::Boolean => words::boolean(value),
        Reads::Level => level(value, version),
        Reads::Algorithms => selection::algorithms(value, version),
        Reads::Protocols => selection::protocols(value, version),
        Reads::Interfaces => names::interfaces(value),
        Reads::Devices => names::devices(value, version),
        Reads::Address => addresses::address(value),
        Reads::AddressRange => addresses::range(value, version),
        Reads::Path => path(value),
        Reads::NetDevices => policies::net_devices(value),
        Reads::CtaPolicy => policies::cta(value),
    }
}

/// A file name. Only a shell expands what it may contain.
fn path(value: &str) -> Option<Misreading> {
    let literal = if value.starts_with('~') { "~" } else { value.contains('$').then_some("$")? };
    Some(Misreading::ignored(format!("NCCL takes {literal} literally: it expands nothing in a path")))
}

/// A path level by name, or as a legacy integer (`ncclGetLevel` in `src/graph/paths.cc`).
fn level(value: &str, version: &Version) -> Option<Misreading> {
    let mut levels = table().levels.iter().filter(|level| level.is_known_to(version)).map(|level| level.name.as_str());
    if value.starts_with(|c: char| c.is_ascii_digit()) || levels.clone().any(|level| level == value) {
        return None;
    }
    let mut list = levels.next().unwrap_or_default().to_owned();
    levels.for_each(|level| list = format!("{list}, {level}"));
    Some(Misreading::ignored(format!("NCCL ignores it: levels are {list}, in upper case")))
}

/// Returns true when the value is one that has a cost.
pub(super) fn is_costly(when: &str, about: &VariableUse, value: &str) -> bool {
    let number = || if about.reads == Reads::Switch { numbers::truth(value) } else { strtoll(value).number };
    match when {
        "set" => !value.is_empty(),
        _ if value.is_empty() => false,
        "zero" => number() == Some(0),
        "one" => number() == Some(1),
        "nonzero" => number().is_some_and(|number| number != 0),
        "not-negative" => number().is_some_and(|number| number >= 0),
        words => words.split(' ').any(|word| word.eq_ignore_ascii_case(value)),
    }
}

#[cfg(test)]
mod tests;
