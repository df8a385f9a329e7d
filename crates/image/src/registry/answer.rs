//! A registry's response.

use reqwest::StatusCode;
use reqwest::blocking::Response;
use reqwest::header::HeaderMap;

/// A response with any status.
#[derive(Debug)]
pub(super) struct RegistryResponse {
    pub(super) response: Response,
    /// The answering host: `HOST[:PORT]`.
    pub(super) host: String,
    /// True if a redirect led to another origin, such as the storage behind a registry. That origin does not get our
    /// credentials, and its answer says nothing about them.
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
