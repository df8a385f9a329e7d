//! Secrets in texts of a server, which may send back what it was sent.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};
use docker_credential::DockerCredential;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Shortest secret that is replaced. A shorter one is also a part of ordinary words.
const SHORTEST: usize = 4;

/// The secrets of one registry, in the forms in which they are sent or echoed.
#[derive(Clone, Default)]
pub(super) struct Secrets(Vec<String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

impl Secrets {
    /// Those of a login.
    pub(super) fn of(credential: Option<&DockerCredential>) -> Self {
        Self(match credential {
            Some(DockerCredential::UsernamePassword(user, password)) => of_password(user, password),
            Some(DockerCredential::IdentityToken(token)) => vec![token.clone()],
            None => Vec::new(),
        })
    }

    /// Adds one.
    pub(super) fn and(mut self, secret: &str) -> Self {
        self.0.push(secret.to_owned());
        self
    }

    /// The text with `<secret>` in place of each secret.
    pub(super) fn removed_from(&self, text: &str) -> String {
        let long = self.0.iter().filter(|secret| secret.len() >= SHORTEST);
        long.fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "<secret>"))
    }
}

fn of_password(user: &str, password: &str) -> Vec<String> {
    let pair = format!("{user}:{password}");
    vec![
        STANDARD.encode(&pair),
        STANDARD_NO_PAD.encode(&pair),
        URL_SAFE.encode(&pair),
        STANDARD_NO_PAD.encode(password),
        utf8_percent_encode(password, NON_ALPHANUMERIC).to_string(),
        password.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_a_secret_is_replaced() {
        let password = |text: &str| DockerCredential::UsernamePassword("user".to_owned(), text.to_owned());
        let secrets = Secrets::of(Some(&password("p4ss word/"))).and("token");
        for form in ["p4ss word/", "dXNlcjpwNHNzIHdvcmQv", "p4ss%20word%2F", "cDRzcyB3b3JkLw", "token"] {
            assert_eq!(secrets.removed_from(&format!("you sent {form}!")), "you sent <secret>!", "{form}");
        }
        assert_eq!(Secrets::of(Some(&password("a"))).removed_from("a word"), "a word");
        assert_eq!(format!("{secrets:?}"), "Secrets(7)");
    }
}
