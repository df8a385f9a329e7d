//! What a server answered.

use reqwest::StatusCode;
use reqwest::blocking::Response;
use reqwest::header::HeaderMap;

/// An answer, with whatever status.
#[derive(Debug)]
pub(super) struct RegistryResponse {
    pub(super) response: Response,
    /// Who answered: `HOST[:PORT]`.
    pub(super) host: String,
    /// Whether a redirect led to somebody else than who was asked, such as to the storage behind a registry. They do
    /// not know our credentials, and what they answer says nothing about them.
    pub(super) elsewhere: bool,
}

impl RegistryResponse {
    pub(super) fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }
}
