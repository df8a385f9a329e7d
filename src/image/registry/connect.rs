//! The first contact: with TLS or without, and whether to log in.

use reqwest::header::HeaderMap;
use reqwest::{StatusCode, Url};

use super::answer::RegistryResponse;
use super::authorization::Authorization;
use super::http::HttpTransport;
use super::request_error::{RequestError, RequestErrorKind};
use super::retry::{Backoff, Patience};
use crate::image::source::SourceError;

/// Asks for the base of the API: `https://HOST/v2/` or, where that is allowed and nothing else answers,
/// `http://HOST/v2/`. Also gives the headers of a registry that wants to know who we are.
pub(super) fn contact(
    transport: &HttpTransport,
    host: &str,
    plain_allowed: bool,
    patience: Patience,
) -> Result<(Url, Option<HeaderMap>), SourceError> {
    // Docker's own registry is not where its name says.
    let address = if host == "docker.io" { "registry-1.docker.io" } else { host };
    let url = |scheme: &str| {
        let text = format!("{scheme}://{address}/v2/");
        Url::parse(&text).map_err(|error| SourceError::invalid(format!("{text} is no URL: {error}")))
    };
    let secure = url("https")?;
    let mut failure = match first_answer(transport, &secure, patience) {
        Ok(answer) => return Ok((secure, challenges(&answer))),
        Err(failure) => failure,
    };
    // Whoever shows a wrong certificate does speak TLS, and a name without an address has none for HTTP either.
    if plain_allowed
        && !matches!(
            failure.kind,
            RequestErrorKind::Issuer
                | RequestErrorKind::Certificate
                | RequestErrorKind::ClientCertificate
                | RequestErrorKind::Name
        )
    {
        let plain = url("http")?;
        match first_answer(transport, &plain, patience) {
            // What servers say to whoever forgets TLS: then it is TLS that failed.
            Ok(answer) if answer.status() == StatusCode::BAD_REQUEST => {}
            Ok(answer) => return Ok((plain, challenges(&answer))),
            Err(second) if second.cause == failure.cause => {}
            Err(second) => failure.cause = format!("{}; without TLS: {}", failure.cause, second.cause),
        }
    }
    Err(transport.no_answer(format_args!("connecting to {address}"), &failure).into_error())
}

/// An answer with any status: somebody is there.
fn first_answer(transport: &HttpTransport, url: &Url, patience: Patience) -> Result<RegistryResponse, RequestError> {
    let mut backoff = Backoff::new(patience.shorter());
    loop {
        match transport.get(url, &HeaderMap::new(), &Authorization::Nobody) {
            // A port where nobody listens is an answer, too.
            Err(failure)
                if failure.kind.passes() && failure.kind != RequestErrorKind::Refused && backoff.wait(None) => {}
            result => return result,
        }
    }
}

fn challenges(answer: &RegistryResponse) -> Option<HeaderMap> {
    let wanted = answer.status() == StatusCode::UNAUTHORIZED && !answer.elsewhere;
    wanted.then(|| answer.headers().clone())
}
