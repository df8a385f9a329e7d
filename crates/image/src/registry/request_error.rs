//! Failed requests without an answer, with their cause in one clause: the HTTP and TLS crates nest it several errors
//! deep. Their own texts show whole URLs, and the query of a signed URL is a credential.

use std::error::Error;
use std::io;

use rustls::{AlertDescription, CertificateError};

use super::pace::TooSlow;
use model::{printable, without_number};

/// The kind of failure, as far as it determines the advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestErrorKind {
    /// The host exists, but nothing listens on this port.
    Refused,
    /// The name has no address.
    Name,
    /// The server's certificate was issued by an untrusted authority.
    Issuer,
    /// The server's certificate is invalid for another reason: its dates, its names.
    Certificate,
    /// The server rejected the client certificate, or requires one.
    ClientCertificate,
    /// The server does not speak TLS.
    NotTls,
    /// A redirect that is not followed.
    Redirect,
    /// No data arrived in time.
    Timeout,
    /// Data arrives, but too slowly.
    Slow,
    /// Any other failure, such as a broken connection.
    Other,
}

impl RequestErrorKind {
    /// Returns true if a retry may succeed.
    pub(super) fn is_transient(self) -> bool {
        match self {
            Self::Issuer | Self::Certificate | Self::ClientCertificate | Self::NotTls | Self::Redirect | Self::Slow => {
                false
            }
            Self::Refused | Self::Name | Self::Timeout | Self::Other => true,
        }
    }
}

/// A request that got no answer.
#[derive(Debug)]
pub(super) struct RequestError {
    pub(super) kind: RequestErrorKind,
    /// One clause for messages.
    pub(super) cause: String,
    /// The variable that names the proxy to which the request was sent.
    pub(super) proxy: Option<&'static str>,
}

impl From<reqwest::Error> for RequestError {
    fn from(error: reqwest::Error) -> Self {
        Self::of(&error)
    }
}

impl From<&io::Error> for RequestError {
    fn from(error: &io::Error) -> Self {
        Self::of(error)
    }
}

impl RequestError {
    fn of(error: &(dyn Error + 'static)) -> Self {
        let mut failure = Self { kind: RequestErrorKind::Other, cause: String::new(), proxy: None };
        let mut next = Some(error);
        while let Some(error) = next {
            failure.look_at(error);
            // An I/O error hides the error that it wraps, and returns that error's source as its own.
            next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
                Some(inner) => Some(inner),
                None => error.source(),
            };
        }
        failure.cause = match failure.kind {
            RequestErrorKind::Timeout => "no answer in time".to_owned(),
            RequestErrorKind::Refused => "connection refused".to_owned(),
            _ if failure.cause.is_empty() => "the request failed".to_owned(),
            _ => printable(&failure.cause.replace('\n', " ")).into_owned(),
        };
        failure
    }

    /// Updates the kind and the cause from this link of the error chain.
    fn look_at(&mut self, error: &(dyn Error + 'static)) {
        if let Some(slow) = error.downcast_ref::<TooSlow>() {
            self.kind = RequestErrorKind::Slow;
            self.cause = slow.to_string();
            return;
        }
        if let Some(error) = error.downcast_ref::<reqwest::Error>() {
            // The error's text shows the URL.
            if error.is_timeout() {
                self.kind = RequestErrorKind::Timeout;
            } else if error.is_dns() {
                self.kind = RequestErrorKind::Name;
            }
            return;
        }
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            (self.kind, self.cause) = tls(error);
            return;
        }
        match error.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(io::ErrorKind::ConnectionRefused) => self.kind = RequestErrorKind::Refused,
            Some(io::ErrorKind::TimedOut) => self.kind = RequestErrorKind::Timeout,
            _ => {}
        }
        if !matches!(
            self.kind,
            RequestErrorKind::Issuer
                | RequestErrorKind::Certificate
                | RequestErrorKind::ClientCertificate
                | RequestErrorKind::NotTls
        ) {
            self.cause = without_number(&error.to_string());
        }
    }
}

fn tls(error: &rustls::Error) -> (RequestErrorKind, String) {
    match error {
        rustls::Error::InvalidCertificate(error) => match error {
            CertificateError::UnknownIssuer => (RequestErrorKind::Issuer, certificate(error)),
            _ => (RequestErrorKind::Certificate, certificate(error)),
        },
        rustls::Error::InvalidMessage(_) => {
            (RequestErrorKind::NotTls, "the server does not speak TLS on that port".to_owned())
        }
        rustls::Error::AlertReceived(alert) => match alert {
            AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied => (
                RequestErrorKind::ClientCertificate,
                format!("the server rejected the client certificate, or requires one ({alert:?})"),
            ),
            alert => (RequestErrorKind::Other, format!("the server ended the TLS handshake with the alert {alert:?}")),
        },
        error => (RequestErrorKind::Other, error.to_string()),
    }
}

fn certificate(error: &CertificateError) -> String {
    let days = |late: u64, early: u64| late.saturating_sub(early) / 86_400;
    match error {
        CertificateError::Expired => "its certificate has expired".to_owned(),
        CertificateError::ExpiredContext { time, not_after } => {
            format!("its certificate expired {} days ago", days(time.as_secs(), not_after.as_secs()))
        }
        CertificateError::NotValidYet => "its certificate is not valid yet".to_owned(),
        CertificateError::NotValidYetContext { time, not_before } => {
            format!("its certificate is not valid for another {} days", days(not_before.as_secs(), time.as_secs()))
        }
        CertificateError::UnknownIssuer => {
            "its certificate was issued by an authority that this machine does not trust".to_owned()
        }
        CertificateError::NotValidForName => "its certificate is for another name".to_owned(),
        CertificateError::NotValidForNameContext { presented, .. } if presented.is_empty() => {
            "its certificate is not valid for any name (it has no subjectAltName)".to_owned()
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            // webpki formats them as Rust code: DnsName("registry.example").
            let bare = |name: &String| name.split('"').nth(1).unwrap_or(name).to_owned();
            let names: Vec<String> = presented.iter().map(bare).collect();
            format!("its certificate is for other names: {}", names.join(", "))
        }
        CertificateError::Other(other) => format!("its certificate is not accepted: {}", other.0),
        error => format!("its certificate is not accepted: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_found_under_its_wrappers() {
        let inner = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let failure = RequestError::from(&io::Error::other(io::Error::new(io::ErrorKind::InvalidData, inner)));
        assert_eq!(failure.kind, RequestErrorKind::Issuer);
        assert_eq!(failure.cause, "its certificate was issued by an authority that this machine does not trust");
        let failure = RequestError::from(&io::Error::from(io::ErrorKind::ConnectionRefused));
        assert_eq!((failure.kind, failure.cause.as_str()), (RequestErrorKind::Refused, "connection refused"));
    }
}
