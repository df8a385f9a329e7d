//! Credential helpers (`docker-credential-NAME get`), which may hang, flood, or leave a child that holds their output.

use std::io::{self, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use docker_credential::DockerCredential;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use model::{Environment, cause};

/// Time limit for an answer. Some helpers ask the user for a passphrase.
pub(super) const DEADLINE: Duration = Duration::from_mins(1);

/// Maximum size of an answer in bytes. A token has some kilobytes.
const LARGEST: u64 = 64 << 10;

/// The user of an answer whose secret is an identity token.
const TOKEN: &str = "<token>";

/// Asks the helper for the credentials of a server; `None` if it has none. The error never holds the helper's output,
/// which may be the secret.
pub(super) fn ask(
    name: &str,
    server: &str,
    environment: &Environment,
    deadline: Duration,
) -> Result<Option<DockerCredential>, String> {
    let program = format!("docker-credential-{name}");
    if name.is_empty() || name.contains('/') {
        return Err("the name of its credential helper is not the name of a program".to_owned());
    }
    let failed = |why: String| format!("the credential helper {program} {why}");
    #[expect(clippy::disallowed_methods, reason = "the user has configured the helper")]
    let mut command = Command::new(&program);
    // A group of its own, so that all that the helper starts ends with it.
    command.arg("get").process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    if let Some(path) = environment.get("PATH") {
        command.env("PATH", path);
    }
    let mut helper = Helper(command.spawn().map_err(|error| failed(format!("could not be run: {}", cause(&error))))?);
    let stdin = helper.0.stdin.take();
    let stdout = helper.0.stdout.take();
    let (sender, answer) = mpsc::channel();
    let server = server.to_owned();
    // These threads end with the helper's group, which closes the pipes.
    thread::spawn(move || {
        // A helper need not read its input.
        let _unread = stdin.map(|mut stdin| stdin.write_all(server.as_bytes()));
    });
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.map_or(Ok(0), |stdout| io::copy(&mut stdout.take(LARGEST + 1), &mut bytes));
        let _gave_up = sender.send(read.map(|_| bytes));
    });
    let bytes = match answer.recv_timeout(deadline) {
        Ok(Ok(bytes)) if bytes.len() as u64 <= LARGEST => bytes,
        Ok(Ok(_)) => return Err(failed(format!("answered more than {LARGEST} bytes"))),
        Ok(Err(error)) => return Err(failed(format!("could not be read: {}", cause(&error)))),
        Err(_timeout) => return Err(failed(format!("gave no answer within {} seconds", deadline.as_secs_f64()))),
    };
    let status = helper.end(deadline).map_err(|error| failed(format!("could not be run: {}", cause(&error))))?;
    match status {
        None => Err(failed("did not end".to_owned())),
        // Fixed by Docker's credential-helper protocol.
        Some(false) if String::from_utf8_lossy(&bytes).contains("credentials not found") => Ok(None),
        Some(false) => Err(failed("failed".to_owned())),
        Some(true) => {
            let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            let text = |field: &str| answer.get(field)?.as_str();
            let (name, secret) =
                text("Username").zip(text("Secret")).ok_or_else(|| failed("returned no credentials".to_owned()))?;
            Ok(Some(match name {
                TOKEN => DockerCredential::IdentityToken(secret.to_owned()),
                name => DockerCredential::UsernamePassword(name.to_owned(), secret.to_owned()),
            }))
        }
    }
}

/// A running helper, which ends with all that it has started.
struct Helper(Child);

impl Helper {
    /// Waits for the end, and returns whether it was successful; `None` if it does not end in time.
    fn end(&mut self, deadline: Duration) -> io::Result<Option<bool>> {
        const PAUSE: Duration = Duration::from_millis(5);
        let mut waited = Duration::ZERO;
        loop {
            match self.0.try_wait()? {
                Some(status) => return Ok(Some(status.success())),
                None if waited >= deadline => return Ok(None),
                None => thread::sleep(PAUSE),
            }
            waited += PAUSE;
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            // It may have ended already.
            let _ended = kill_process_group(group, Signal::KILL);
        }
        let _reaped = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::Instant;

    use super::*;

    /// The result of a helper with this script.
    fn asked(script: &str) -> Result<Option<DockerCredential>, String> {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("docker-credential-test");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/bin:/bin", folder.path().display());
        let environment = [("PATH".to_owned(), path)].into_iter().collect();
        let begun = Instant::now();
        let answer = ask("test", "r.io", &environment, Duration::from_millis(1500));
        assert!(begun.elapsed() < Duration::from_secs(8), "{script}");
        answer
    }

    #[test]
    fn answers_are_read() {
        let password = DockerCredential::UsernamePassword("u".to_owned(), "r.io".to_owned());
        let script = r#"read -r server; echo "{\"Username\":\"u\",\"Secret\":\"$server\"}""#;
        assert_eq!(asked(&format!("{script} 2>/dev/null")), Ok(Some(password)));
        let token = DockerCredential::IdentityToken("t".to_owned());
        // One that does not read its input.
        assert_eq!(asked(r#"exec 0<&-; echo '{"Username":"<token>","Secret":"t"}'"#), Ok(Some(token)));
        assert_eq!(asked("echo credentials not found in native keychain; exit 1"), Ok(None));
    }

    #[test]
    fn a_helper_without_an_answer_is_an_error_that_shows_no_secret() {
        for (script, why) in [
            ("echo s3cret; exit 1", "failed"),
            ("echo s3cret", "returned no credentials"),
            ("", "returned no credentials"),
            ("exec cat /dev/zero", "answered more than 65536 bytes"),
            ("exec sleep 60", "gave no answer within 1.5 seconds"),
            ("sleep 60 & echo '{}'", "gave no answer within 1.5 seconds"),
            ("exec 1>&-; exec sleep 60", "did not end"),
        ] {
            let expected = format!("the credential helper docker-credential-test {why}");
            assert_eq!(asked(script), Err(expected), "{script}");
        }
        let why = ask("a/b", "r.io", &Environment::default(), DEADLINE).unwrap_err();
        assert!(why.contains("not the name of a program"), "{why}");
    }
}
