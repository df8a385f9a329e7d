//! Error responses of registries, as readable errors (distribution-spec, "Error Codes").

use std::fmt;
use std::io::Read;
use std::time::Duration;

use reqwest::StatusCode;
use serde_json::Value;

use super::answer::RegistryResponse;
use super::conceal::Secrets;
use super::retry::retry_after;
use crate::source::{SourceError, SourceErrorKind};
use model::{Digest, printable};

/// Maximum number of bytes read of an error's body.
const LARGEST_BODY: u64 = 64 << 10;
/// Maximum number of characters quoted from it.
const LONGEST_QUOTE: usize = 300;

/// A failed attempt.
#[derive(Debug)]
pub(super) enum AttemptError {
    /// A retry may succeed: `error` is the final error if it does not, `after` the delay that the server requests.
    Transient { error: SourceError, after: Option<Duration> },
    /// A retry would fail as well.
    Final(SourceError),
}

impl AttemptError {
    /// The error to report if there is no further attempt.
    pub(super) fn into_error(self) -> SourceError {
        match self {
            Self::Transient { error, .. } | Self::Final(error) => error,
        }
    }
}

impl From<SourceError> for AttemptError {
    fn from(error: SourceError) -> Self {
        Self::Final(error)
    }
}

/// The object of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum RequestedObject<'a> {
    /// The image that the user named.
    Image { name: &'a str },
    /// A manifest that an index names.
    Manifest { name: &'a str, digest: &'a Digest },
    /// A layer or a configuration that a manifest names.
    Blob { name: &'a str, digest: &'a Digest },
    /// The tags of a repository.
    Tags { name: &'a str },
    /// The repositories of a registry.
    Catalog { host: &'a str },
    /// A pull token.
    Token { name: &'a str },
}

impl fmt::Display for RequestedObject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image { name } => write!(f, "fetching the manifest of {name}"),
            Self::Manifest { name, digest } => write!(f, "fetching manifest {digest} of {name}"),
            Self::Blob { name, digest } => write!(f, "fetching blob {digest} of {name}"),
            Self::Tags { name } => write!(f, "listing the tags of {name}"),
            Self::Catalog { host } => write!(f, "listing the repositories of {host}"),
            Self::Token { name } => write!(f, "logging in to pull {name}"),
        }
    }
}

/// Converts an error response. `access` supplies the credentials used, and the advice.
pub(super) fn refusal(answer: RegistryResponse, object: RequestedObject<'_>, access: &Access) -> AttemptError {
    let status = answer.status();
    let after = retry_after(answer.headers());
    let host = answer.host.clone();
    let elsewhere = answer.elsewhere;
    let quote = quote(answer, &access.secrets);
    let said = if quote.is_empty() { String::new() } else { format!(" ({quote})") };
    let what = format!("{object}: {host} answered {status}{said}");
    match status {
        StatusCode::TOO_MANY_REQUESTS => AttemptError::Transient {
            error: SourceError::new(SourceErrorKind::Busy, format!("{what}, {}", access.used))
                .with_hint(format!("wait, or {}: limits are lower without a login", access.hint)),
            after,
        },
        status if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT => {
            AttemptError::Transient { error: SourceError::unreachable(what), after }
        }
        // The URL that the registry signed has expired: a retry gets a new one.
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if elsewhere => {
            AttemptError::Transient { error: SourceError::unreachable(what), after }
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            let doubt = if access.anonymous { "check the name; if it is right, " } else { "" };
            let hint = Some(format!("{doubt}{}", access.hint));
            SourceError::denied(format!("{what}, {}", access.used)).with_hint(hint).into()
        }
        StatusCode::NOT_FOUND if matches!(object, RequestedObject::Image { .. }) => SourceError::not_found(what).into(),
        StatusCode::NOT_FOUND if matches!(object, RequestedObject::Tags { .. }) => {
            SourceError::missing(what).with_hint("check the name of the repository".to_owned()).into()
        }
        StatusCode::NOT_FOUND if matches!(object, RequestedObject::Catalog { .. }) => {
            let hint = "this registry does not list its repositories: name them".to_owned();
            SourceError::missing(what).with_hint(hint).into()
        }
        StatusCode::NOT_FOUND if matches!(object, RequestedObject::Token { .. }) => SourceError::invalid(what).into(),
        StatusCode::NOT_FOUND => SourceError::missing(format!("{what}: the image there is incomplete")).into(),
        _ => SourceError::invalid(what).into(),
    }
}

/// The credentials in use, for errors.
#[derive(Clone, Debug)]
pub(super) struct Access {
    /// `without credentials`, or their origin.
    pub(super) used: String,
    /// The command to run.
    pub(super) hint: String,
    /// True without credentials. Many registries report missing images as forbidden to anonymous clients.
    pub(super) anonymous: bool,
    /// What the server must not make us print.
    pub(super) secrets: Secrets,
}

/// The server's message on one line; empty if the body contains none.
fn quote(answer: RegistryResponse, secrets: &Secrets) -> String {
    let mut bytes = Vec::new();
    // A truncated body has no message, but the status still counts.
    _ = std::io::copy(&mut answer.response.take(LARGEST_BODY), &mut bytes);
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let errors = body.get("errors").and_then(Value::as_array).into_iter().flatten();
    let mut parts: Vec<String> = errors.map(|entry| joined(text(entry, "code"), text(entry, "message"))).collect();
    if parts.is_empty() {
        let texts = ["error_description", "details", "message"].map(|field| text(&body, field));
        parts.push(joined(text(&body, "error"), texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()));
    }
    parts.retain(|part| !part.is_empty());
    let text = secrets.removed_from(&parts.join("; ")).replace(['\n', '\t'], " ");
    let mut text = printable(&text).into_owned();
    if let Some((end, _)) = text.char_indices().nth(LONGEST_QUOTE) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// The text of a field; empty if there is none.
fn text<'v>(object: &'v Value, field: &str) -> &'v str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn joined(code: &str, message: &str) -> String {
    match (code.is_empty(), message.is_empty()) {
        (false, false) => format!("{code}: {message}"),
        _ => format!("{code}{message}"),
    }
}
