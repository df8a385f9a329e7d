//! The first contact with a registry: finds out whether it uses TLS and requires a login.

use reqwest::header::HeaderMap;
use reqwest::{StatusCode, Url};

use super::answer::RegistryResponse;
use super::authorization::Authorization;
use super::http::HttpTransport;
use super::request_error::{RequestError, RequestErrorKind};
use super::retry::{Backoff, Patience};
use crate::source::SourceError;

/// Requests the base of the API: `https://HOST/v2/` or, if that fails and plain HTTP is allowed, `http://HOST/v2/`.
/// Also returns the headers of a registry that requires authentication.
pub(super) fn contact(
    transport: &HttpTransport,
    host: &str,
    plain_allowed: bool,
    patience: Patience,
) -> Result<(Url, Option<HeaderMap>), SourceError> {
    // Docker Hub's API is on another host than its name says.
    let address = if host == "docker.io" { "registry-1.docker.io" } else { host };
    let url = |scheme: &str| {
        let text = format!("{scheme}://{address}/v2/");
        Url::parse(&text).map_err(|error| SourceError::invalid(format!("{text} is not a URL: {error}")))
    };
    let secure = url("https")?;
    let mut failure = match first_answer(transport, &secure, patience) {
        Ok(answer) => return Ok((secure, challenges(&answer))),
        Err(failure) => failure,
    };
    let plain = url("http")?;
    // A server with a wrong certificate does speak TLS. A name without an address does not resolve for HTTP either, unless
    // a proxy resolves it.
    let may_be_plain = match failure.kind {
        RequestErrorKind::Issuer | RequestErrorKind::Certificate | RequestErrorKind::ClientCertificate => false,
        RequestErrorKind::Name => transport.proxy(&plain).is_some(),
        RequestErrorKind::Refused
        | RequestErrorKind::NotTls
        | RequestErrorKind::Redirect
        | RequestErrorKind::Timeout
        | RequestErrorKind::Slow
        | RequestErrorKind::Other => true,
    };
    if plain_allowed && may_be_plain {
        match first_answer(transport, &plain, patience) {
            // Servers answer 400 to plain HTTP on a TLS port: then the TLS error is the relevant one.
            Ok(answer) if answer.status() == StatusCode::BAD_REQUEST => {}
            Ok(answer) => return Ok((plain, challenges(&answer))),
            Err(second) if second.cause == failure.cause => {}
            Err(second) => {
                failure.cause = format!("{}; without TLS: {}", failure.cause, second.cause);
                failure.proxy = failure.proxy.or(second.proxy);
            }
        }
    }
    let what = if failure.kind.is_transient() { "no registry answers at" } else { "connecting to" };
    Err(transport.no_answer(format_args!("{what} {address}"), &failure).into_error())
}

/// Returns a response with any status: the server exists.
fn first_answer(transport: &HttpTransport, url: &Url, patience: Patience) -> Result<RegistryResponse, RequestError> {
    let mut backoff = Backoff::new(patience.shorter());
    loop {
        match transport.get(url, &HeaderMap::new(), &Authorization::Nobody) {
            // A refused connection is final: nothing listens on that port.
            Err(failure)
                if failure.kind.is_transient() && failure.kind != RequestErrorKind::Refused && backoff.wait(None) => {}
            result => return result,
        }
    }
}

fn challenges(answer: &RegistryResponse) -> Option<HeaderMap> {
    let wanted = answer.status() == StatusCode::UNAUTHORIZED && !answer.elsewhere;
    wanted.then(|| answer.headers().clone())
}
