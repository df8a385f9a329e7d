//! Security options, in the syntax of `docker run --security-opt`.

use std::fmt;
use std::path::Path;

use model::Limits;
use model::document::read_text;

/// The option that Docker's command line turns into empty lists of paths.
const SYSTEM_PATHS: &str = "systempaths=unconfined";
/// The one option that needs no value.
const NO_NEW_PRIVILEGES: &str = "no-new-privileges";

/// A security option of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityOption {
    /// As it was written.
    text: String,
    /// As the engine takes it: with the content of a profile in the place of its file.
    sent: String,
}

impl SecurityOption {
    /// `no-new-privileges`.
    pub(in super::super) fn no_new_privileges() -> Self {
        Self { text: NO_NEW_PRIVILEGES.to_owned(), sent: NO_NEW_PRIVILEGES.to_owned() }
    }

    /// Parses an option, and reads the profile of `seccomp=FILE`, which the engine takes as JSON
    /// (docker/cli, `parseSecurityOpts` in `cli/command/container/opts.go`).
    ///
    /// # Errors
    /// The option has no value, or the profile cannot be read or is not JSON.
    pub fn read(text: &str) -> Result<Self, String> {
        let written = |sent: String| Self { text: text.to_owned(), sent };
        let (key, value) = text.split_once('=').or_else(|| text.split_once(':')).unwrap_or((text, ""));
        if key == NO_NEW_PRIVILEGES {
            return Ok(written(text.to_owned()));
        }
        if key.is_empty() || value.is_empty() {
            return Err("expected NAME=VALUE, such as seccomp=unconfined, or no-new-privileges".to_owned());
        }
        if key != "seccomp" || matches!(value, "unconfined" | "builtin") {
            return Ok(written(text.to_owned()));
        }
        let profile = read_text(Path::new(value), &Limits::default()).map_err(|error| error.to_string())?;
        let profile: serde_json::Value =
            serde_json::from_str(&profile).map_err(|error| format!("{value}: not a profile in JSON: {error}"))?;
        Ok(written(format!("seccomp={profile}")))
    }

    /// Name of what it sets; of two options with one name, one counts.
    pub fn name(&self) -> &str {
        self.text.split(['=', ':']).next().unwrap_or_default()
    }

    /// The option in a request to the engine; `None` if the request has other fields for it.
    pub(in super::super) fn sent(&self) -> Option<&str> {
        (!self.opens_system_paths()).then_some(&self.sent)
    }

    /// True if it opens the paths of /proc and /sys that engines hide or protect.
    pub(in super::super) fn opens_system_paths(&self) -> bool {
        self.text == SYSTEM_PATHS
    }
}

impl fmt::Display for SecurityOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_passed_on() {
        for text in
            ["seccomp=unconfined", "apparmor=unconfined", "label:disable", "no-new-privileges:false", NO_NEW_PRIVILEGES]
        {
            let option = SecurityOption::read(text).unwrap();
            assert_eq!((option.sent(), option.to_string()), (Some(text), text.to_owned()));
        }
        assert_eq!(SecurityOption::read(SYSTEM_PATHS).unwrap().sent(), None);
        for odd in ["", "seccomp", "seccomp=", "=x"] {
            assert!(SecurityOption::read(odd).unwrap_err().contains("NAME=VALUE"), "{odd}");
        }
    }

    #[test]
    fn the_profile_of_seccomp_is_sent() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("profile.json");
        std::fs::write(&file, "{\n  \"defaultAction\": \"SCMP_ACT_ALLOW\"\n}\n").unwrap();
        let text = format!("seccomp={}", file.display());
        let option = SecurityOption::read(&text).unwrap();
        assert_eq!(option.sent(), Some("seccomp={\"defaultAction\":\"SCMP_ACT_ALLOW\"}"));
        assert_eq!((option.to_string(), option.name()), (text.clone(), "seccomp"));
        std::fs::write(&file, "no").unwrap();
        assert!(SecurityOption::read(&text).unwrap_err().contains("profile.json: not a profile in JSON"));
        std::fs::remove_file(&file).unwrap();
        assert!(SecurityOption::read(&text).unwrap_err().contains("profile.json"));
    }
}
