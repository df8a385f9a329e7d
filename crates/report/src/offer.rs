//! What a machine offers to training jobs.

use serde::Serialize;

/// Something that a machine may have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// The area, such as `engines`.
    pub area: &'static str,
    /// The thing, such as `Docker` or `/dev/infiniband`.
    pub name: String,
    /// Whether it is there and works.
    pub state: OfferState,
    /// What was seen.
    pub about: String,
    /// What to do, if it does not work.
    pub help: Option<String>,
}

impl Offer {
    fn new(area: &'static str, name: impl Into<String>, state: OfferState, about: impl Into<String>) -> Self {
        Self { area, name: name.into(), state, about: about.into(), help: None }
    }

    /// It is there and works.
    pub fn works(area: &'static str, name: impl Into<String>, about: impl Into<String>) -> Self {
        Self::new(area, name, OfferState::Works, about)
    }

    /// It is not there.
    pub fn absent(area: &'static str, name: impl Into<String>, about: impl Into<String>) -> Self {
        Self::new(area, name, OfferState::Absent, about)
    }

    /// It could not be determined.
    pub fn unknown(area: &'static str, name: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(area, name, OfferState::Unknown, why)
    }

    /// It is there and does not work; `help` says what to do.
    pub fn broken(
        area: &'static str,
        name: impl Into<String>,
        about: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { help: Some(help.into()), ..Self::new(area, name, OfferState::Broken, about) }
    }
}

/// Whether something is there and works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OfferState {
    /// It is there, and nothing wrong was seen.
    Works,
    /// It is there and does not work.
    Broken,
    /// It is not there, which may be right for this machine.
    Absent,
    /// It could not be determined.
    Unknown,
}

impl OfferState {
    /// The lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Broken => "broken",
            Self::Absent => "absent",
            Self::Unknown => "unknown",
        }
    }
}
