//! GET over HTTP or HTTPS, with redirects.

use std::fmt::Display;

use reqwest::Url;
use reqwest::blocking::{Client, Response};
use reqwest::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue, LOCATION};
use reqwest::redirect::Policy;

use super::answer::RegistryResponse;
use super::authorization::Authorization;
use super::certs::HostCerts;
use super::host::is_local;
use super::proxy::Proxies;
use super::request_error::{RequestError, RequestErrorKind};
use super::response_error::{AttemptError, RequestedObject};
use super::retry::Patience;
use super::tls;
use crate::source::{AccessOptions, SourceError};

/// Maximum number of redirects. Registries need one or two.
const MOST_REDIRECTS: usize = 10;

/// The HTTP client for one registry.
#[derive(Debug)]
pub(super) struct HttpTransport {
    client: Client,
    /// True if this machine has no CA certificates.
    nobody_trusted: bool,
    proxies: Proxies,
}

impl HttpTransport {
    /// A client for the registry at `host`, with its certificates.
    pub(super) fn new(host: &str, options: &AccessOptions, patience: Patience) -> Result<Self, SourceError> {
        let (tls, nobody_trusted) = tls::settings(HostCerts::find(host, options)?, options.tls_verify)?;
        let builder = Client::builder()
            .tls_backend_preconfigured(tls)
            // One connection for each blob: over a shared HTTP/2 connection, a blob that is decompressed slowly would
            // stall the others, and all would fail together.
            .http1_only()
            .redirect(Policy::none())
            .connect_timeout(patience.connect)
            // The blocking client applies this to the wait for the headers, and to each read separately.
            .timeout(patience.idle)
            .user_agent(concat!("ncclcheck", "/", env!("CARGO_PKG_VERSION")));
        // Docker and Podman never use a proxy for this machine, so their users do not list it in NO_PROXY.
        let builder = if is_local(host) { builder.no_proxy() } else { builder };
        let client = builder
            .build()
            .map_err(|error| SourceError::invalid(format!("setting up HTTP: {}", RequestError::from(error).cause)))?;
        Ok(Self { client, nobody_trusted, proxies: Proxies::of(&options.environment) })
    }

    /// Requests `url` and follows redirects. They are followed here to protect the credentials: reqwest 0.13 drops them
    /// on a redirect from A to B, but sends them to B when B redirects to itself.
    pub(super) fn get(
        &self,
        url: &Url,
        headers: &HeaderMap,
        authorization: &Authorization,
    ) -> Result<RegistryResponse, RequestError> {
        let mut at = url.clone();
        let mut elsewhere = false;
        for _ in 0..=MOST_REDIRECTS {
            let request = self.client.get(at.clone()).headers(headers.clone());
            // Layers are compressed files, to be fetched exactly as stored.
            let request = request.header(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            let request = if elsewhere { request } else { authorization.apply(request) };
            let response = request.send().map_err(|error| self.failed(error, &at))?;
            let Some(next) = redirect(&at, &response)? else {
                return Ok(RegistryResponse { response, host: host(&at), elsewhere });
            };
            elsewhere |= next.origin() != url.origin();
            at = next;
        }
        Err(RequestError {
            kind: RequestErrorKind::Redirect,
            cause: format!("it redirects more than {MOST_REDIRECTS} times"),
            proxy: None,
        })
    }

    /// Sends a form. Does not follow redirects.
    pub(super) fn post(&self, url: &Url, form: &[(&str, &str)]) -> Result<RegistryResponse, RequestError> {
        let sent = self.client.post(url.clone()).form(form).send();
        let response = sent.map_err(|error| self.failed(error, url))?;
        Ok(RegistryResponse { response, host: host(url), elsewhere: false })
    }

    /// The variable that names the proxy for a URL.
    pub(super) fn proxy(&self, url: &Url) -> Option<&'static str> {
        self.proxies.variable(url)
    }

    /// The failure to send a request.
    fn failed(&self, error: reqwest::Error, url: &Url) -> RequestError {
        RequestError { proxy: self.proxy(url), ..error.into() }
    }

    /// Converts the failure of a request that got no answer.
    pub(super) fn no_answer(&self, what: impl Display, failure: &RequestError) -> AttemptError {
        let what = format!("{what}: {}", failure.cause);
        let hint = match failure.kind {
            RequestErrorKind::Issuer if self.nobody_trusted => Some(
                "this machine has no CA certificates: install the package ca-certificates, set \
                 SSL_CERT_FILE, or pass the registry's with --cert-dir",
            ),
            RequestErrorKind::Issuer => Some(
                "pass a folder with the registry's CA certificate (*.crt) with --cert-dir, or skip verification \
                 with --tls-verify=false",
            ),
            RequestErrorKind::Certificate => Some("skip certificate verification with --tls-verify=false"),
            RequestErrorKind::ClientCertificate => {
                Some("pass a folder with a client certificate (*.cert, *.key) with --cert-dir")
            }
            RequestErrorKind::NotTls => Some("allow plain HTTP with --tls-verify=false"),
            RequestErrorKind::Refused | RequestErrorKind::Timeout | RequestErrorKind::Name
                if failure.proxy.is_none() =>
            {
                Some("check the host and the port of the image's name, and that this machine reaches the registry")
            }
            RequestErrorKind::Refused
            | RequestErrorKind::Name
            | RequestErrorKind::Redirect
            | RequestErrorKind::Timeout
            | RequestErrorKind::Slow
            | RequestErrorKind::Other => None,
        };
        let hint = match (hint, failure.proxy) {
            (None, Some(proxy)) if failure.kind != RequestErrorKind::Redirect => {
                Some(format!("the proxy in {proxy} may be the cause; NO_PROXY lists hosts to reach without it"))
            }
            (hint, _) => hint.map(str::to_owned),
        };
        if failure.kind.is_transient() {
            AttemptError::Transient { error: SourceError::unreachable(what).with_hint(hint), after: None }
        } else {
            AttemptError::Final(SourceError::invalid(what).with_hint(hint))
        }
    }
}

/// The target of a redirect, if the response is one.
fn redirect(from: &Url, response: &Response) -> Result<Option<Url>, RequestError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let refused = |cause: String| RequestError { kind: RequestErrorKind::Redirect, cause, proxy: None };
    let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
    let next = location
        .and_then(|location| from.join(location).ok())
        .ok_or_else(|| refused("it redirects to an invalid URL".to_owned()))?;
    match (from.scheme(), next.scheme()) {
        (_, "https") | ("http", "http") => Ok(Some(next)),
        _ => Err(refused(format!("it redirects to {}, which is not HTTPS", shown(&next)))),
    }
}

/// The beginning of the message about a failed request for `object`.
pub(super) fn unanswered(object: RequestedObject<'_>, url: &Url) -> String {
    format!("{object}: no answer from {}", host(url))
}

/// A URL without parts that may be secret.
pub(super) fn shown(url: &Url) -> String {
    format!("{}://{}{}", url.scheme(), host(url), url.path())
}

/// `HOST[:PORT]` of a URL.
pub(super) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}
