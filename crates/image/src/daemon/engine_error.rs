//! Errors of an engine, in readable words. The client library's own texts name its layers; these keep the message of
//! the system or the engine.

use std::io::{self, ErrorKind};

use bollard::errors::Error;
use serde_json::Value;

use crate::source::{SourceError, SourceErrorKind};
use model::{cause, printable};

/// Maximum number of characters kept of an engine's message.
const MESSAGE: usize = 500;

/// A failed request.
#[derive(Debug)]
pub struct EngineError {
    /// `Invalid` where the engine sent an unexpected answer.
    pub kind: SourceErrorKind,
    /// The cause, without what was attempted.
    pub text: String,
}

impl EngineError {
    /// Creates an error of this kind.
    pub fn new(kind: SourceErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// Converts to the source's error, where `what` was attempted.
    pub(super) fn into_error(self, what: &str) -> SourceError {
        SourceError::new(self.kind, format!("{what}: {}", self.text))
    }
}

impl From<&io::Error> for EngineError {
    fn from(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound => Self::new(SourceErrorKind::Unreachable, "no such socket"),
            ErrorKind::ConnectionRefused => {
                Self::new(SourceErrorKind::Unreachable, "connection refused, nothing listens there")
            }
            // More than a limit allows.
            ErrorKind::FileTooLarge => Self::new(SourceErrorKind::Invalid, message(&error.to_string())),
            ErrorKind::PermissionDenied => Self::new(SourceErrorKind::Denied, "permission denied"),
            _ => Self::new(SourceErrorKind::Unreachable, message(&cause(error))),
        }
    }
}

impl From<&Error> for EngineError {
    fn from(error: &Error) -> Self {
        match error {
            Error::DockerResponseServerError { status_code, message: said } => {
                let kind = match status_code {
                    401 | 403 => SourceErrorKind::Denied,
                    404 => SourceErrorKind::NotFound,
                    _ => SourceErrorKind::Invalid,
                };
                let said = message(said);
                Self::new(kind, if said.is_empty() { format!("HTTP status {status_code}") } else { said })
            }
            Error::JsonDataError { message: why, .. } => {
                Self::new(SourceErrorKind::Invalid, format!("the answer does not follow Docker's API: {why}"))
            }
            Error::JsonSerdeError { err } => {
                Self::new(SourceErrorKind::Invalid, format!("the answer does not follow Docker's API: {err}"))
            }
            Error::IOError { err } => err.into(),
            Error::RequestTimeoutError => Self::new(SourceErrorKind::Unreachable, "no answer in time"),
            other => {
                // The innermost cause is the informative one; the others only name layers.
                let mut cause: &(dyn std::error::Error + 'static) = other;
                loop {
                    if let Some(error) = cause.downcast_ref::<io::Error>() {
                        return error.into();
                    }
                    match cause.source() {
                        Some(source) => cause = source,
                        None => return Self::new(SourceErrorKind::Unreachable, message(&cause.to_string())),
                    }
                }
            }
        }
    }
}

/// The error that an engine wrote at the end of `bytes` instead of the rest of the data.
pub(super) fn complaint(bytes: &[u8]) -> Option<String> {
    [&b"{\"errorDetail\""[..], b"{\"error\"", b"{\"message\"", b"{\"cause\""].iter().find_map(|start| {
        let text = bytes.get(memchr::memmem::find(bytes, start)?..)?;
        let object: Value = serde_json::from_slice(text).ok()?;
        object.get("message").or(object.get("error"))?.as_str().map(message)
    })
}

/// An engine's message on one line, without control characters.
pub(super) fn message(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    printable(&line.chars().take(MESSAGE).collect::<String>()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_inside_a_stream() {
        let mut bytes = b"usr/lib\0\0{\"errorDetail\":1".to_vec();
        assert_eq!(complaint(&bytes), None);
        bytes = b"usr/lib\0\0".to_vec();
        bytes.extend(b"{\"errorDetail\":{\"message\":\"no space\"},\"error\":\"no\\n \\u001bspace\"}\r\n");
        assert_eq!(complaint(&bytes).unwrap(), "no \u{fffd}space");
        assert_eq!(complaint(b"{\"cause\":\"x\",\"message\":\"gone\",\"response\":500}\n").unwrap(), "gone");
    }

    #[test]
    fn statuses() {
        for (status_code, said, kind, text) in [
            (404, "No such image: x", SourceErrorKind::NotFound, "No such image: x"),
            (403, "", SourceErrorKind::Denied, "HTTP status 403"),
            (500, "a\nb", SourceErrorKind::Invalid, "a b"),
        ] {
            let error = Error::DockerResponseServerError { status_code, message: said.to_owned() };
            let error = EngineError::from(&error);
            assert_eq!((error.kind, &*error.text), (kind, text));
        }
    }
}
