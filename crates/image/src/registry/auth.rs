//! Authentication: basic authentication and bearer tokens (distribution-spec leaves it to the servers; this implements
//! the Docker Registry v2 authentication specification, "Token Authentication" and its OAuth 2 part).

use std::sync::{Arc, Mutex, PoisonError};

use docker_credential::DockerCredential;
use reqwest::Url;
use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};
use serde::Deserialize;

use super::answer::RegistryResponse;
use super::authorization::Authorization;
use super::credentials::Login;
use super::http::{HttpTransport, shown, unanswered};
use super::pace::Paced;
use super::realm::TokenHosts;
use super::request_error::RequestError;
use super::response_error::{Access, AttemptError, RequestedObject, refusal};
use crate::source::{SourceError, read_bounded};

/// Maximum size of a token service's answer in bytes. Some tokens are a few KiB long.
const LARGEST_TOKEN: u64 = 1 << 20;

/// The authentication state for one repository, shared by all threads and images.
#[derive(Debug)]
pub(super) struct Auth {
    login: Login,
    access: Access,
    hosts: TokenHosts,
    /// `repository:NAME:pull`, the scope of the requested token.
    scope: String,
    /// True if secrets may be sent over plain HTTP: to a registry that offers nothing else.
    plain: bool,
    current: Mutex<Arc<Authorization>>,
}

impl Auth {
    pub(super) fn new(login: Login, hosts: TokenHosts, registry: &str, repository: &str, plain: bool) -> Self {
        let access = login.access(registry);
        let scope = format!("repository:{repository}:pull");
        Self { login, access, hosts, scope, plain, current: Mutex::new(Arc::new(Authorization::Nobody)) }
    }

    /// The authorization that requests currently use.
    pub(super) fn current(&self) -> Arc<Authorization> {
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The credentials in use, for errors.
    pub(super) fn access(&self) -> &Access {
        &self.access
    }

    /// Removes the secrets in use from an error: a server may echo what it was sent.
    pub(super) fn conceal(&self, error: SourceError) -> SourceError {
        let login = self.access.secrets.clone();
        let secrets = if let Authorization::Bearer(token) = &*self.current() { login.and(token) } else { login };
        error.map_texts(|text| secrets.removed_from(text))
    }

    /// Answers the challenges of a 401 response to `stale`: fetches the first token, or replaces an expired one.
    /// Returns false if there is nothing new to present. Errors name `image`. Only one thread fetches a token; the others
    /// wait for it.
    pub(super) fn renew(
        &self,
        transport: &HttpTransport,
        challenged: &HeaderMap,
        stale: &Arc<Authorization>,
        image: &str,
    ) -> Result<bool, AttemptError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&current, stale) {
            return Ok(true);
        }
        let mut basic = false;
        for header in challenged.get_all(WWW_AUTHENTICATE).iter().filter_map(|header| header.to_str().ok()) {
            for challenge in http_auth::parse_challenges(header).unwrap_or_default() {
                let parameter = |name: &str| {
                    let found = challenge.params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
                    found.map(|(_, value)| value.to_unescaped()).filter(|value| !value.is_empty())
                };
                if let (true, Some(realm)) = (challenge.scheme.eq_ignore_ascii_case("bearer"), parameter("realm")) {
                    let service = parameter("service").unwrap_or_default();
                    // After the server has refused our scope, use the one that it names. Not before: the scope in a
                    // challenge for the API's base may be an example only.
                    let wanted = match &**current {
                        Authorization::Bearer(_) => parameter("scope"),
                        _ => None,
                    };
                    let scope = wanted.as_deref().unwrap_or(&self.scope);
                    *current = Arc::new(Authorization::Bearer(self.token(transport, &realm, &service, scope, image)?));
                    return Ok(true);
                }
                basic |= challenge.scheme.eq_ignore_ascii_case("basic");
            }
        }
        match (&self.login.credential, &**current) {
            (Some(DockerCredential::UsernamePassword(user, password)), Authorization::Nobody) if basic => {
                *current = Arc::new(Authorization::Basic { user: user.clone(), password: password.clone() });
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn token(
        &self,
        transport: &HttpTransport,
        realm: &str,
        service: &str,
        scope: &str,
        image: &str,
    ) -> Result<String, AttemptError> {
        let object = RequestedObject::Token { name: image };
        let invalid = |what: String| SourceError::invalid(format!("{object}: {what}"));
        let url = Url::parse(realm).map_err(|error| invalid(format!("the token service is not a URL: {error}")))?;
        if !(url.scheme() == "https" || url.scheme() == "http" && self.plain) {
            return Err(invalid(format!("the token service {} is not HTTPS", shown(&url))).into());
        }
        if self.login.credential.is_some() {
            self.hosts.check(&url, &object.to_string())?;
        }
        let answer = self.ask(transport, url.clone(), service, scope);
        let answer = answer.map_err(|failure| transport.no_answer(unanswered(object, &url), &failure))?;
        if !answer.status().is_success() {
            return Err(refusal(answer, object, &self.access));
        }
        let bytes =
            read_bounded(Paced::new(answer.response), LARGEST_TOKEN, "reading a token").map_err(|error| match error
                .cause
            {
                Some(cause) => transport.no_answer(unanswered(object, &url), &RequestError::from(&cause)),
                None => AttemptError::Final(error),
            })?;
        let answer: Token = serde_json::from_slice(&bytes).unwrap_or_default();
        let token = answer.token.or(answer.access_token).filter(|token| {
            // Other bytes are not allowed in a header.
            !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic())
        });
        token.ok_or_else(|| invalid(format!("the answer from {} contains no token", shown(&url))).into())
    }

    fn ask(
        &self,
        transport: &HttpTransport,
        mut url: Url,
        service: &str,
        scope: &str,
    ) -> Result<RegistryResponse, RequestError> {
        if let Some(DockerCredential::IdentityToken(token)) = &self.login.credential {
            let form = [
                ("grant_type", "refresh_token"),
                ("client_id", "ncclcheck"),
                ("service", service),
                ("scope", scope),
                ("refresh_token", token),
            ];
            return transport.post(&url, &form);
        }
        let mut query = url.query_pairs_mut();
        if !service.is_empty() {
            query.append_pair("service", service);
        }
        query.append_pair("scope", scope);
        let authorization = match &self.login.credential {
            Some(DockerCredential::UsernamePassword(user, password)) => {
                query.append_pair("account", user);
                Authorization::Basic { user: user.clone(), password: password.clone() }
            }
            _ => Authorization::Nobody,
        };
        drop(query);
        transport.get(&url, &HeaderMap::new(), &authorization)
    }
}

/// A token service's answer: `token` in Docker's flow, `access_token` in OAuth 2.
#[derive(Default, Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}
