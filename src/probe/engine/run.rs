//! One container, from its creation to its end.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::models::ContainerInspectResponse;
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, InspectContainerOptions,
    RemoveContainerOptionsBuilder, StartContainerOptions,
};
use futures_util::StreamExt as _;
use tokio::io::AsyncWriteExt as _;

use crate::image::daemon::{EngineError, EngineErrorKind, ask};

use super::super::ProbeError;
use super::super::arrangement::Arrangement;
use super::super::tail::Tail;
use super::super::wire::host_config;
use super::body::body;
use super::{Launcher, PATIENCE, explain};

/// Bytes of a line of the program's output, at most; its protocol allows half as many.
const LONGEST_LINE: usize = 1 << 17;
/// How long a removal by the engine itself may take, and how often it is looked at.
const REMOVAL: Duration = Duration::from_secs(30);
/// How long the engine is waited for that was asked for a container when we were interrupted.
const CREATION: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);

/// How a container ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finished {
    /// The last that it wrote to standard error.
    pub stderr: String,
    /// What the engine says that it gave, as it wrote it: its answer to ContainerInspect while the container ran.
    pub given: Option<serde_json::Value>,
    /// Why the output ended early, where it did.
    pub broken: Option<String>,
}

/// Ends a container from wherever it is called.
#[derive(Clone)]
pub struct Killer {
    pub(super) docker: Docker,
    pub(super) container: String,
    /// Whether the engine has said that it made it. The request may be under way, and is not taken back by our end.
    pub(super) created: Arc<AtomicBool>,
}

impl Killer {
    /// Removes the container, also one that the engine is just about to make.
    pub fn end(&self) -> Result<(), ProbeError> {
        for _ in 0..CREATION.as_millis() / PAUSE.as_millis() {
            let is_there = self.created.load(Ordering::SeqCst);
            self.remove()?;
            if is_there {
                break;
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Removes the container, running or not. One that is gone already is as wanted.
    pub fn remove(&self) -> Result<(), ProbeError> {
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        match ask(PATIENCE, self.docker.remove_container(&self.container, Some(options))) {
            Ok(()) => Ok(()),
            Err(trouble) if trouble.kind == EngineErrorKind::Missing => Ok(()),
            Err(trouble) if trouble.text.contains("already in progress") => {
                self.wait_until_gone();
                Ok(())
            }
            Err(trouble) => Err(ProbeError::Engine {
                what: format!("the container {} could not be removed: {}", self.container, trouble.text),
                help: Some(format!("remove it with docker rm --force {}", self.container)),
            }),
        }
    }

    /// Waits for a removal that the engine does by itself.
    fn wait_until_gone(&self) {
        for _ in 0..REMOVAL.as_millis() / PAUSE.as_millis() {
            let seen = ask(PATIENCE, self.docker.inspect_container(&self.container, None::<InspectContainerOptions>));
            if seen.is_err() {
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}

impl fmt::Debug for Killer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Killer({})", self.container)
    }
}

/// Removes its container when it goes out of scope, whatever happened until then.
struct Guard(Killer);

impl Drop for Guard {
    fn drop(&mut self) {
        // The engine removes it by itself as well; who is still asked about it is `clean`.
        let _ = self.0.remove();
    }
}

impl Launcher {
    /// Runs a container, gives the program to its standard input, and hands out what it writes line by line. `started` is
    /// given what ends it. The container is gone when this returns.
    pub fn run(
        &self,
        name: &str,
        arrangement: &Arrangement,
        program: &str,
        limit: Duration,
        started: &dyn Fn(Killer),
        line: &mut dyn FnMut(&[u8]),
    ) -> Result<Finished, ProbeError> {
        let docker = self.engine.client();
        let failed = |trouble: &EngineError| explain::start(arrangement, trouble, &self.offers);
        let options = CreateContainerOptionsBuilder::new().name(name).build();
        let created = docker.create_container(Some(options), body(arrangement));
        // Known by its name from before it is there.
        let killer = self.killer(name);
        started(killer.clone());
        let made = Arc::clone(&killer.created);
        let guard = Guard(killer);
        ask(PATIENCE, created).map_err(|trouble| failed(&trouble))?;
        made.store(true, Ordering::SeqCst);
        let talk = async { Ok::<_, Error>(converse(docker, name, program, limit, line).await) };
        let finished = ask(limit + PATIENCE, talk).map_err(|trouble| failed(&trouble))?;
        drop(guard);
        finished.map_err(|error| failed(&EngineError::from(&error)))
    }
}

/// Starts the container and reads it to its end.
async fn converse(
    docker: &Docker,
    name: &str,
    program: &str,
    limit: Duration,
    line: &mut dyn FnMut(&[u8]),
) -> Result<Finished, Error> {
    let options = AttachContainerOptionsBuilder::new().stream(true).stdin(true).stdout(true).stderr(true).build();
    let mut attached = docker.attach_container(name, Some(options)).await?;
    docker.start_container(name, None::<StartContainerOptions>).await?;
    let mut finished = Finished::default();
    // It may end before it has read its program; why will be on its standard error.
    let _ = attached.input.write_all(program.as_bytes()).await;
    let _ = attached.input.flush().await;
    let given = docker.inspect_container(name, None::<InspectContainerOptions>).await;
    // Of its answer the environment is left out: it may hold secrets.
    let given = given.ok().and_then(|given: ContainerInspectResponse| given.host_config);
    finished.given = given.and_then(|host| Some(host_config::answer(serde_json::to_value(host).ok()?)));
    let (mut lines, mut stderr) = (Lines::default(), Tail::default());
    let end = tokio::time::sleep(limit);
    tokio::pin!(end);
    loop {
        let piece = tokio::select! {
            piece = attached.output.next() => piece,
            () = &mut end => {
                finished.broken = Some(format!("it had not ended after {} seconds", limit.as_secs()));
                break;
            }
        };
        match piece {
            Some(Ok(LogOutput::StdErr { message })) => stderr.push(&message),
            Some(Ok(LogOutput::StdOut { message } | LogOutput::Console { message })) => lines.push(&message, line),
            Some(Ok(LogOutput::StdIn { .. })) => {}
            Some(Err(error)) => {
                finished.broken = Some(EngineError::from(&error).text);
                break;
            }
            None => break,
        }
    }
    // Standard input stays open until here: its end would be the program's.
    drop(attached.input);
    finished.stderr = stderr.text();
    Ok(finished)
}

/// Cuts a stream into lines. Of one that is too long the beginning is handed out, which is then told as not understood.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn push(&mut self, bytes: &[u8], line: &mut dyn FnMut(&[u8])) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LONGEST_LINE.saturating_sub(self.0.len());
            self.0.extend(part.iter().take(room));
            if part.ends_with(b"\n") {
                line(self.0.trim_ascii_end());
                self.0.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_however_they_are_cut_and_however_long() {
        let (mut lines, mut seen) = (Lines::default(), Vec::new());
        let long = vec![b'x'; 2 * LONGEST_LINE];
        for piece in [&b"one\ntw"[..], b"o\r\n", &long, b"\nthree\nrest"] {
            lines.push(piece, &mut |line| seen.push(line.to_vec()));
        }
        assert_eq!(seen.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, LONGEST_LINE, 5]);
    }
}
