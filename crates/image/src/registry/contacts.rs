//! Registries that have answered in this run, and the tokens that they gave: several images of one registry need one
//! connection setup, and several of one repository one token.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use reqwest::Url;
use reqwest::header::HeaderMap;

use super::auth::Auth;
use super::http::HttpTransport;
use crate::source::SourceError;

/// Registries that have answered. All requests that share it must have the same options.
#[derive(Clone, Default)]
pub struct RegistryContacts(Arc<Mutex<BTreeMap<ContactKey, Arc<ContactPlace>>>>);

/// Host of a registry, and whether its certificate is verified.
type ContactKey = (String, bool);

/// What is known of one registry. Only one thread contacts it; the others wait.
#[derive(Default)]
struct ContactPlace {
    contact: Mutex<Option<Contact>>,
    /// By repository.
    auths: Mutex<BTreeMap<String, Arc<Auth>>>,
}

/// A registry that has answered.
#[derive(Clone)]
pub(super) struct Contact {
    pub(super) transport: Arc<HttpTransport>,
    /// `https://HOST/v2/`.
    pub(super) root: Url,
    /// The headers of its challenge, if it requires authentication.
    pub(super) challenged: Option<HeaderMap>,
}

impl fmt::Debug for RegistryContacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_list().entries(places.keys().map(|(host, _)| host)).finish()
    }
}

impl RegistryContacts {
    fn place(&self, host: &str, is_verified: bool) -> Arc<ContactPlace> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(places.entry((host.to_owned(), is_verified)).or_default())
    }

    /// The registry at `host`, which `meet` contacts unless it has answered before. A failure is not kept.
    pub(super) fn contact(
        &self,
        host: &str,
        is_verified: bool,
        meet: impl FnOnce() -> Result<Contact, SourceError>,
    ) -> Result<Contact, SourceError> {
        let place = self.place(host, is_verified);
        let mut contact = place.contact.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*contact {
            return Ok(known.clone());
        }
        Ok(contact.insert(meet()?).clone())
    }

    /// The authentication for a repository.
    pub(super) fn auth(
        &self,
        host: &str,
        is_verified: bool,
        repository: &str,
        new: impl FnOnce() -> Auth,
    ) -> Arc<Auth> {
        let place = self.place(host, is_verified);
        let mut auths = place.auths.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(auths.entry(repository.to_owned()).or_insert_with(|| Arc::new(new())))
    }
}
