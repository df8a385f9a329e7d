//! The credentials of one request.

use std::fmt;

use reqwest::blocking::RequestBuilder;

/// The authorization of a request.
pub(super) enum Authorization {
    Nobody,
    Basic { user: String, password: String },
    Bearer(String),
}

impl Authorization {
    pub(super) fn apply(&self, request: RequestBuilder) -> RequestBuilder {
        match self {
            Self::Nobody => request,
            Self::Basic { user, password } => request.basic_auth(user, Some(password)),
            Self::Bearer(token) => request.bearer_auth(token),
        }
    }
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nobody => "Nobody",
            Self::Basic { .. } => "Basic",
            Self::Bearer(_) => "Bearer",
        })
    }
}
