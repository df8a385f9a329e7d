//! Values as the libraries read them.

pub(super) mod names;
mod numbers;
mod policies;
mod selection;

use crate::launch::Setting;
use crate::model::Version;

use super::super::settings::strtoll;
use super::vocabulary::{Reads, VariableUse, table};

/// A value that its reader does not take as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misreading {
    /// What the reader makes of it.
    pub(super) what: String,
    /// True when the job stops at it.
    pub(super) stops: bool,
}

impl Misreading {
    fn ignored(what: impl Into<String>) -> Self {
        Self { what: what.into(), stops: false }
    }

    fn stops(what: impl Into<String>) -> Self {
        Self { what: what.into(), stops: true }
    }

    /// The setting and what becomes of it, for a report.
    pub(super) fn describe(&self, setting: &Setting) -> String {
        format!("{}={} ({})", setting.name, setting.value.as_deref().unwrap_or_default(), self.what)
    }
}

/// What a reader of this release makes of a value; `None` when it takes the value as written.
pub(super) fn misreading(about: &VariableUse, value: &str, version: &Version) -> Option<Misreading> {
    let found = match about.reads {
        Reads::Text => None,
        Reads::Number => numbers::number(value, about.range),
        Reads::Flag => numbers::number(value, Some(about.range.unwrap_or((0, 1)))),
        Reads::One => numbers::one(value),
        Reads::Threads => numbers::threads(value, about.range),
        Reads::Switch => numbers::switch(value, version),
        Reads::Integer => numbers::integer(value, about.range),
        Reads::Word => word(about, value).map(|word| not_one_of(word, about)),
        Reads::Prefix => {
            about.of.iter().all(|word| !value.starts_with(word.as_str())).then(|| not_one_of(value, about))
        }
        Reads::Words => {
            let list = value.strip_prefix('^').unwrap_or(value);
            let unknown = list.split(',').filter(|part| !part.is_empty()).find_map(|part| word(about, part));
            unknown.map(|word| not_one_of(word, about))
        }
        Reads::Level => level(value, version),
        Reads::Algorithms => selection::algorithms(value, version),
        Reads::Protocols => selection::protocols(value, version),
        Reads::Interfaces => names::interfaces(value),
        Reads::Devices => names::devices(value, version),
        Reads::NetDevices => policies::net_devices(value),
        Reads::CtaPolicy => policies::cta(value),
    };
    // NCCL's other readers take an empty value for an unset one.
    let is_unset = value.is_empty() && !about.stops && !about.reads.sees_empty();
    found.filter(|_| !is_unset).map(|found| Misreading { stops: found.stops || about.stops, ..found })
}

fn not_one_of(word: &str, about: &VariableUse) -> Misreading {
    Misreading::ignored(format!("{word} is not one of {}", about.of.join(", ")))
}

fn word<'v>(about: &VariableUse, value: &'v str) -> Option<&'v str> {
    let is = |word: &String| if about.exact { word == value } else { word.eq_ignore_ascii_case(value) };
    (!about.of.iter().any(is)).then_some(value)
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
