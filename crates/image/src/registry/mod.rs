//! Images in a registry (OCI distribution-spec, "Pull"; also Docker's older version of the API).

mod answer;
mod auth;
mod authorization;
mod blob;
mod certs;
mod conceal;
mod config;
mod connect;
mod contacts;
mod credentials;
mod helper;
mod host;
mod http;
pub(super) mod listing;
pub(super) mod medium;
mod needs;
mod pace;
mod proxy;
mod pull;
mod realm;
mod request_error;
mod response_error;
mod retry;
mod stored_logins;
mod tls;

pub use self::contacts::RegistryContacts;
pub(super) use self::needs::needs;
pub(super) use self::pull::Registries;
pub use self::stored_logins::{StoredLogin, stored_logins};

#[cfg(test)]
mod tests;

use std::fmt;
use std::io::Read;
use std::sync::Arc;

use oci_spec::distribution::Reference as Name;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{StatusCode, Url};
use serde::Deserialize;

use self::answer::RegistryResponse;
use self::auth::Auth;
use self::authorization::Authorization;
use self::blob::Blob;
use self::connect::contact;
use self::contacts::Contact;
use self::credentials::Login;
use self::host::is_local;
use self::http::{HttpTransport, unanswered};
use self::pace::Paced;
use self::realm::TokenHosts;
use self::request_error::RequestError;
use self::response_error::{AttemptError, RequestedObject, refusal};
use self::retry::{Backoff, Patience};
use super::go_json::parse_document;
use super::source::{AccessOptions, Source, SourceError, StoredDocument, read_bounded};
use model::BlobRef;
use model::{Digest, Hasher};

/// The supported manifest types: OCI manifests and indexes, and Docker's of schema 2.
const MANIFESTS: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json";

/// Prefix of the media types of Docker's schema 1 manifests, plain and signed.
const SCHEMA_1: &str = "application/vnd.docker.distribution.manifest.v1+";

/// An image in a registry that has answered and granted access.
pub(super) struct Registry {
    /// The full name of the image.
    name: String,
    /// The name without tag and digest.
    repository: String,
    /// The place that serves the image and the line that configures it, if it is not the one in the image's name.
    served_by: Option<String>,
    /// The requested tag or digest.
    wanted: String,
    /// The digest in the user's reference.
    pinned: Option<Digest>,
    /// `https://HOST/v2/NAME/`.
    base: Url,
    transport: Arc<HttpTransport>,
    auth: Arc<Auth>,
    document_limit: u64,
    patience: Patience,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = self.base.as_str();
        f.debug_struct("Registry").field("name", &self.name).field("base", &base).finish_non_exhaustive()
    }
}

/// Contacts the registry of `name` and authenticates, unless that has been done.
fn open_patiently(
    name: &Name,
    options: &AccessOptions,
    contacts: &RegistryContacts,
    patience: Patience,
) -> Result<Registry, SourceError> {
    let host = name.registry();
    let pinned = name.digest().map(str::parse::<Digest>).transpose()?;
    let tag = name.tag().unwrap_or("latest");
    let login = Login::find(name, options)?;
    let Contact { transport, root, challenged } = contacts.contact(host, options.tls_verify, || {
        let transport = HttpTransport::new(host, options, patience)?;
        // Docker, too, accepts plain HTTP from a registry on the same machine.
        let plain_allowed = is_local(host) || !options.tls_verify;
        let (root, challenged) = contact(&transport, host, plain_allowed, patience)?;
        Ok(Contact { transport: Arc::new(transport), root, challenged })
    })?;
    let base = root
        .join(&format!("{}/", name.repository()))
        .map_err(|error| SourceError::invalid(format!("{host} does not form a URL: {error}")))?;
    let plain = root.scheme() == "http" || !options.tls_verify;
    let hosts = TokenHosts::new(host, &options.environment);
    let auth = || Auth::new(login, hosts, host, name.repository(), plain);
    let registry = Registry {
        name: name.to_string(),
        repository: format!("{}/{}", name.registry(), name.repository()),
        served_by: None,
        wanted: pinned.as_ref().map_or_else(|| tag.to_owned(), Digest::to_string),
        pinned,
        base,
        auth: contacts.auth(host, options.tls_verify, name.repository(), auth),
        transport,
        document_limit: options.limits.document,
        patience,
    };
    // A registry that requires a token often answers 404 instead of challenging a request without one: so authenticate
    // first if its API base requires it.
    if let Some(challenges) = challenged {
        let nobody = registry.auth.current();
        if matches!(*nobody, Authorization::Nobody) {
            patiently(patience, || registry.auth.renew(&registry.transport, &challenges, &nobody, &registry.name))
                .map_err(|error| registry.auth.conceal(error))?;
        }
    }
    Ok(registry)
}

impl Registry {
    /// Sends one request below the image's name, and one more if the token has expired. Returns successful responses
    /// only.
    fn ask(
        &self,
        path: &str,
        headers: &HeaderMap,
        object: RequestedObject<'_>,
    ) -> Result<RegistryResponse, AttemptError> {
        let url = self.base.join(path).map_err(|error| SourceError::invalid(format!("{object}: {error}")))?;
        let mut authorization = self.auth.current();
        let mut renewed = false;
        loop {
            let answer = self
                .transport
                .get(&url, headers, &authorization)
                .map_err(|failure| self.transport.no_answer(unanswered(object, &url), &failure))?;
            if answer.status().is_success() {
                return Ok(answer);
            }
            if answer.status() == StatusCode::UNAUTHORIZED && !answer.elsewhere && !renewed {
                renewed = true;
                if self.auth.renew(&self.transport, answer.headers(), &authorization, &self.name)? {
                    authorization = self.auth.current();
                    continue;
                }
            }
            return Err(refusal(answer, object, self.auth.access()));
        }
    }

    /// Fetches a whole manifest or index; also returns the response's headers.
    fn document(&self, path: &str, object: RequestedObject<'_>) -> Result<(Vec<u8>, HeaderMap), SourceError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(MANIFESTS));
        patiently(self.patience, || {
            let answer = self.ask(path, &headers, object)?;
            let headers = answer.headers().clone();
            match read_bounded(Paced::new(answer.response), self.document_limit, &object.to_string()) {
                Ok(bytes) => Ok((bytes, headers)),
                Err(SourceError { what, cause: Some(error), .. }) => {
                    Err(self.transport.no_answer(what, &RequestError::from(&error)))
                }
                Err(error) => Err(error.into()),
            }
        })
        .map_err(|error| self.auth.conceal(error))
    }
}

impl Source for Registry {
    fn top(&self) -> Result<StoredDocument, SourceError> {
        let object = RequestedObject::Image { name: &self.name };
        let (bytes, headers) = self.document(&format!("manifests/{}", self.wanted), object)?;
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let media_type = header(CONTENT_TYPE.as_str());
        let media_type = media_type.map(|text| text.split(';').next().unwrap_or_default().trim().to_owned());
        let digest = digest_as(self.pinned.as_ref(), &bytes);
        if let Some(pinned) = self.pinned.as_ref().filter(|pinned| **pinned != digest) {
            return Err(SourceError::invalid(format!(
                "the manifest of {} is corrupt: expected the digest {pinned}, found {digest}",
                self.name
            )));
        }
        // distribution-spec, "Pulling manifests": the header may be missing, but must not be wrong.
        let told = header("docker-content-digest").and_then(|text| text.parse::<Digest>().ok());
        if let Some(told) = told.filter(|told| digest_as(Some(told), &bytes) != *told) {
            return Err(SourceError::invalid(format!(
                "the manifest of {} is corrupt: its registry reports the digest {told}, found {digest}",
                self.name
            )));
        }
        refuse_schema_1(&self.name, media_type.as_deref(), &bytes)?;
        Ok(StoredDocument { name: format!("the manifest of {}", self.name), digest, media_type, bytes })
    }

    fn reference(&self) -> Option<String> {
        Some(format!("docker://{}", self.repository))
    }

    fn manifest(&self, digest: &Digest) -> Result<Vec<u8>, SourceError> {
        let object = RequestedObject::Manifest { name: &self.name, digest };
        Ok(self.document(&format!("manifests/{digest}"), object)?.0)
    }

    fn open(&self, blob: &BlobRef) -> Result<Box<dyn Read + Send + '_>, SourceError> {
        Ok(Box::new(Blob::open(self, blob)?))
    }

    fn served_by(&self) -> Option<&str> {
        self.served_by.as_deref()
    }
}

/// Retries until the attempt succeeds, fails permanently, or has failed too often.
fn patiently<T>(patience: Patience, mut attempt: impl FnMut() -> Result<T, AttemptError>) -> Result<T, SourceError> {
    let mut backoff = Backoff::new(patience);
    loop {
        match attempt() {
            Ok(done) => return Ok(done),
            Err(AttemptError::Transient { after, .. }) if backoff.wait(after) => {}
            Err(fault) => return Err(fault.into_error()),
        }
    }
}

/// The digest of `bytes` by the algorithm of another digest, or by SHA-256.
fn digest_as(other: Option<&Digest>, bytes: &[u8]) -> Digest {
    let mut hasher = other.map_or_else(Hasher::sha256, Digest::hasher);
    hasher.update(bytes);
    hasher.finish()
}

/// Schema 1 contains neither the sizes of the layers nor the digests of their contents, and is no longer written.
fn refuse_schema_1(name: &str, media_type: Option<&str>, bytes: &[u8]) -> Result<(), SourceError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Schema {
        schema_version: u64,
    }
    let by_type = media_type.is_some_and(|text| text.starts_with(SCHEMA_1));
    let by_version = || parse_document(bytes).is_ok_and(|schema: Schema| schema.schema_version == 1);
    if !by_type && !by_version() {
        return Ok(());
    }
    Err(SourceError::invalid(format!("{name} has a Docker manifest of schema 1, which is obsolete"))
        .with_hint(format!("push it again with a current Docker, or convert it: skopeo copy docker://{name} oci:DIR")))
}
