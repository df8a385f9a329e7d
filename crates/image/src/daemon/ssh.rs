//! An engine on another machine, reached through ssh as the Docker CLI does it: `ssh HOST docker system dial-stdio`
//! relays its input and output to the engine's socket there (docker(1), "Environment variables").

use std::fmt;
use std::process::Command;

/// The machine and the socket that `ssh://[USER@]HOST[:PORT][/SOCKET]` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshTarget {
    user: Option<String>,
    host: String,
    port: Option<u16>,
    /// The engine's socket there, if it is not the default one.
    socket: Option<String>,
}

impl SshTarget {
    /// Parses the text behind `ssh://`, or returns the reason why it is invalid.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let (machine, path) = text.split_once('/').map_or((text, ""), |(machine, path)| (machine, path));
        let (user, place) = match machine.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, machine),
        };
        if user.is_some_and(|user| user.contains(':')) {
            return Err("ssh:// must not contain a password: use a key");
        }
        let bracketed = place.strip_prefix('[').and_then(|place| place.split_once(']'));
        let (host, port) = match bracketed {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
        };
        let port = port.map(|port| port.parse().map_err(|_number| "the port of ssh:// is not a number")).transpose()?;
        let odd = |c: char| c.is_whitespace() || c.is_control();
        let is_plain = |word: &str| !word.is_empty() && !word.starts_with('-') && !word.contains(odd);
        if !is_plain(host) || !user.is_none_or(is_plain) {
            return Err("ssh:// needs [USER@]HOST[:PORT]");
        }
        // The remote shell would split or expand other characters.
        let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
        if !path.chars().all(is_safe) {
            return Err("the path of the socket in ssh:// has unusual characters");
        }
        let socket = (!path.is_empty()).then(|| format!("/{path}"));
        Ok(Self { user: user.map(ToOwned::to_owned), host: host.to_owned(), port, socket })
    }

    /// The command that connects its input and output to the engine. It never asks for a password.
    pub(super) fn command(&self) -> Command {
        #[expect(clippy::disallowed_methods, reason = "the user names an engine behind ssh")]
        let mut command = Command::new("ssh");
        command.args(self.arguments());
        command
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments: Vec<String> =
            ["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30"].map(String::from).into();
        arguments.extend(self.user.iter().flat_map(|user| ["-l".to_owned(), user.clone()]));
        arguments.extend(self.port.iter().flat_map(|port| ["-p".to_owned(), port.to_string()]));
        arguments.extend(["--".to_owned(), self.host.clone(), "docker".to_owned()]);
        arguments.extend(self.socket.iter().map(|socket| format!("--host=unix://{socket}")));
        arguments.extend(["system".to_owned(), "dial-stdio".to_owned()]);
        arguments
    }
}

impl fmt::Display for SshTarget {
    /// The words that name the machine to ssh(1).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(port) = self.port {
            write!(f, "-p {port} ")?;
        }
        match &self.user {
            Some(user) => write!(f, "{user}@{}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_that_of_the_docker_cli() {
        for (text, words) in [
            ("box", "-- box docker system dial-stdio"),
            ("me@box:2222", "-l me -p 2222 -- box docker system dial-stdio"),
            ("box/run/user/7/docker.sock", "-- box docker --host=unix:///run/user/7/docker.sock system dial-stdio"),
            ("[fe80::1]:22/", "-p 22 -- fe80::1 docker system dial-stdio"),
        ] {
            let arguments = SshTarget::parse(text).unwrap().arguments().join(" ");
            assert_eq!(arguments, format!("-T -o BatchMode=yes -o ConnectTimeout=30 {words}"));
        }
        assert_eq!(SshTarget::parse("me@box:2222/x").unwrap().to_string(), "-p 2222 me@box");
    }

    #[test]
    fn targets_cannot_be_options_or_commands() {
        for text in ["", "-oProxyCommand=x", "-l@box", "me@", "a b", "box:x", "me:pw@box", "box/x;y", "box/$(x)"] {
            assert!(SshTarget::parse(text).is_err(), "{text}");
        }
    }
}
