//! Runs one container, from creation to removal.

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
use super::super::lines::Lines;
use super::super::tail::Tail;
use super::super::wire::host_config;
use super::body::body;
use super::{Launcher, PATIENCE, explain};

/// Time limit of a removal that the engine does by itself.
const REMOVAL: Duration = Duration::from_secs(30);
/// Time limit of a creation that is in flight when the probe is interrupted.
const CREATION: Duration = Duration::from_secs(5);
/// Pause between two requests while waiting for the engine.
const PAUSE: Duration = Duration::from_millis(50);

/// Result of a container's run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finished {
    /// The end of its standard error.
    pub stderr: String,
    /// The engine's own account of the container: its raw answer to ContainerInspect while the container ran.
    pub given: Option<serde_json::Value>,
    /// Reason why the output ended early, if it did.
    pub broken: Option<String>,
}

/// Removes a container, from any thread.
#[derive(Clone)]
pub struct Killer {
    pub(super) docker: Docker,
    pub(super) container: String,
    /// True once the engine has confirmed the creation. Until then the request may be in flight, and ending ncclcheck
    /// does not cancel it.
    pub(super) created: Arc<AtomicBool>,
}

impl Killer {
    /// Removes the container, even if the engine is still creating it.
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

    /// Removes the container, running or not. A container that is already gone is not an error.
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
                what: format!("cannot remove the container {}: {}", self.container, trouble.text),
                help: Some(format!("remove it with docker rm --force {}", self.container)),
            }),
        }
    }

    /// Waits for a removal that the engine has already started.
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

/// Removes its container when dropped, on success and on error.
struct Guard(Killer);

impl Drop for Guard {
    fn drop(&mut self) {
        // The engine also removes the container by itself, and `clean` removes any that remain.
        let _ = self.0.remove();
    }
}

impl Launcher {
    /// Runs a container, writes the program to its standard input, and passes each line of its output to `line`.
    /// `started` receives the handle that removes the container. The container is gone when this returns.
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
        // The name identifies the container even before it exists.
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

/// Starts the container and reads its output to the end.
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
    // The container may end before it has read its program; the reason is then on its standard error.
    let _ = attached.input.write_all(program.as_bytes()).await;
    let _ = attached.input.flush().await;
    let given = docker.inspect_container(name, None::<InspectContainerOptions>).await;
    // Only `HostConfig` of the answer is kept: the environment may contain secrets.
    let given = given.ok().and_then(|given: ContainerInspectResponse| given.host_config);
    finished.given = given.and_then(|host| Some(host_config::answer(serde_json::to_value(host).ok()?)));
    let (mut lines, mut stderr) = (Lines::default(), Tail::default());
    let end = tokio::time::sleep(limit);
    tokio::pin!(end);
    loop {
        let piece = tokio::select! {
            piece = attached.output.next() => piece,
            () = &mut end => {
                finished.broken = Some(format!("the program did not end within {} seconds", limit.as_secs()));
                break;
            }
        };
        match piece {
            Some(Ok(LogOutput::StdErr { message })) => stderr.push(&message),
            Some(Ok(LogOutput::StdOut { message } | LogOutput::Console { message })) => {
                if let Err(why) = lines.push(&message, line) {
                    finished.broken = Some(why);
                    break;
                }
            }
            Some(Ok(LogOutput::StdIn { .. })) => {}
            Some(Err(error)) => {
                finished.broken = Some(EngineError::from(&error).text);
                break;
            }
            None => break,
        }
    }
    // Standard input stays open until here, because closing it ends the program.
    drop(attached.input);
    finished.stderr = stderr.text();
    Ok(finished)
}
