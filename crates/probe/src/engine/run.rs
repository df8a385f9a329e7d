//! Runs one container, from creation to removal.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::models::{ContainerConfig, ContainerInspectResponse};
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, InspectContainerOptions,
    RemoveContainerOptionsBuilder, StartContainerOptions, WaitContainerOptionsBuilder,
};
use futures_util::{Stream, StreamExt as _};
use tokio::io::AsyncWriteExt as _;
use tokio::time::Instant;

use facts::is_shown;
use image::daemon::{EngineError, Streaming, ask};
use image::source::SourceErrorKind;

use super::super::ProbeError;
use super::super::arrangement::{Arrangement, EntrypointUse};
use super::super::wire::entrypoint::GivenProcess;
use super::super::wire::host_config;
use super::body::body;
use super::output::ContainerOutput;
use super::{Launcher, PATIENCE, explain};

/// Time limit of a removal that the engine does by itself.
const REMOVAL: Duration = Duration::from_secs(30);
/// Time limit of a creation that is in flight when the probe is interrupted.
const CREATION: Duration = Duration::from_secs(5);
/// Time limit of the start of the program in a started container, which its entrypoint may delay.
const START: Duration = Duration::from_mins(2);
/// Time limit of the engine's report on a container that has ended.
const EXIT: Duration = Duration::from_secs(5);
/// Pause between two requests while waiting for the engine.
const PAUSE: Duration = Duration::from_millis(50);

/// Result of a container's run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// The end of its standard error, or of all of its output if its program did not start.
    pub stderr: String,
    /// The engine's own account of the container: its answer to ContainerInspect while the container ran.
    pub given: Option<serde_json::Value>,
    /// The first process of the container by that account.
    pub process: Option<GivenProcess>,
    /// Exit status of the container, if its program did not start.
    pub exit: Option<i64>,
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
            Err(trouble) if trouble.kind == SourceErrorKind::NotFound => Ok(()),
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
        let [output, end] = [self.engine.streaming(), self.engine.streaming()];
        let (output, end) = output.and_then(|output| Ok((output, end?))).map_err(|trouble| failed(&trouble))?;
        let clients = Clients { docker, output, end };
        let talk = async { Ok::<_, Error>(converse(clients, name, program, limit, line).await) };
        let finished = ask(limit + PATIENCE, talk).map_err(|trouble| failed(&trouble))?;
        drop(guard);
        finished.or_else(|error| {
            let trouble = EngineError::from(&error);
            let refusal = refused_entrypoint(arrangement, &trouble.text).ok_or_else(|| failed(&trouble))?;
            Ok(Finished { broken: Some(refusal), ..Finished::default() })
        })
    }
}

/// What the engine says of an entrypoint that it cannot execute; `None` if it says something else.
fn refused_entrypoint(arrangement: &Arrangement, text: &str) -> Option<String> {
    let first = arrangement.image_entrypoint.first()?;
    let is_refused =
        arrangement.entrypoint == EntrypointUse::OfImage && text.contains("exec") && text.contains(&**first);
    is_refused.then(|| format!("the engine cannot execute it: {text}"))
}

/// The clients for a container that runs.
struct Clients<'e> {
    docker: &'e Docker,
    /// For its output.
    output: Streaming,
    /// For the report on its end, whose answer begins long before that.
    end: Streaming,
}

/// Starts the container and reads its output to the end.
async fn converse(
    clients: Clients<'_>,
    name: &str,
    program: &str,
    limit: Duration,
    line: &mut dyn FnMut(&[u8]),
) -> Result<Finished, Error> {
    let options = AttachContainerOptionsBuilder::new().stream(true).stdin(true).stdout(true).stderr(true).build();
    let Clients { docker, output: streaming, end } = clients;
    let mut attached = streaming.docker.attach_container(name, Some(options)).await?;
    let mut pieces = attached.output.inspect(|_piece| streaming.renew());
    // The engine forgets a container that has ended, so that it is asked before the start.
    let exit = tokio::spawn(exit_status(end.docker, name.to_owned()));
    docker.start_container(name, None::<StartContainerOptions>).await?;
    let mut finished = Finished::default();
    // The container may end before it has read its program; the reason is then in its output.
    let _ = attached.input.write_all(program.as_bytes()).await;
    let _ = attached.input.flush().await;
    note_account(docker, name, &mut finished).await;
    let mut output = ContainerOutput::new(line);
    finished.broken = follow(&mut pieces, &mut output, START, limit).await.err();
    if !output.has_begun() {
        finished.exit = tokio::time::timeout(EXIT, exit).await.ok().and_then(|status| status.ok()?);
    }
    // The engine may reset the connection of a program that has ended without reading all of its input.
    if finished.exit.is_some() {
        finished.broken = None;
    }
    // Standard input stays open until here, because closing it ends the program.
    drop(attached.input);
    finished.stderr = output.end();
    Ok(finished)
}

/// Asks the engine for its account of a running container.
async fn note_account(docker: &Docker, name: &str, finished: &mut Finished) {
    let given = docker.inspect_container(name, None::<InspectContainerOptions>).await;
    if let Ok(ContainerInspectResponse { config, host_config: Some(host), .. }) = given {
        let config = config.unwrap_or_default();
        let entrypoint = config.entrypoint.clone().unwrap_or_default();
        finished.given = serde_json::to_value(host).ok().map(|host| host_config::answer(host, &entrypoint));
        finished.process = Some(process(config));
    }
}

/// Reads the output of a container to its end. Returns the reason for an early end.
async fn follow(
    attached: &mut (impl Stream<Item = Result<LogOutput, Error>> + Unpin),
    output: &mut ContainerOutput<'_>,
    start: Duration,
    limit: Duration,
) -> Result<(), String> {
    let began = Instant::now();
    let start = start.min(limit);
    loop {
        let (what, patience) = if output.has_begun() { ("end", limit) } else { ("start", start) };
        let Ok(piece) = tokio::time::timeout_at(began + patience, attached.next()).await else {
            return Err(format!("the program did not {what} within {} seconds", patience.as_secs()));
        };
        match piece {
            Some(Ok(LogOutput::StdErr { message })) => output.stderr(&message),
            Some(Ok(LogOutput::StdOut { message } | LogOutput::Console { message })) => output.stdout(&message)?,
            Some(Ok(LogOutput::StdIn { .. })) => {}
            Some(Err(error)) => return Err(EngineError::from(&error).text),
            None => return Ok(()),
        }
    }
}

/// Waits for the end of a container, and returns its exit status if the engine reports it.
async fn exit_status(docker: Docker, name: String) -> Option<i64> {
    let options = WaitContainerOptionsBuilder::new().condition("next-exit").build();
    let mut waiting = docker.wait_container(&name, Some(options));
    match waiting.next().await? {
        Ok(response) => Some(response.status_code),
        Err(Error::DockerContainerWaitError { code, .. }) => Some(code),
        Err(_) => None,
    }
}

/// The first process of a container, without the values of variables that may be secrets.
fn process(config: ContainerConfig) -> GivenProcess {
    let pairs = config.env.unwrap_or_default();
    let pair = |pair: &String| {
        let (name, value) = pair.split_once('=')?;
        Some((name.to_owned(), is_shown(name).then(|| value.to_owned())))
    };
    GivenProcess {
        environment: pairs.iter().filter_map(pair).collect(),
        user: config.user.unwrap_or_default(),
        directory: config.working_dir.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::super::super::arrangement::tests::plain;
    use super::*;

    /// Follows a stream of these pieces that then stays open, with these seconds for the start and for all.
    fn followed(pieces: &[&'static str], start: u64, limit: u64) -> String {
        let piece = |text: &&'static str| Ok(LogOutput::StdOut { message: text.as_bytes().into() });
        let pieces: Vec<_> = pieces.iter().map(piece).collect();
        let mut attached = stream::iter(pieces).chain(stream::pending());
        let mut sink = |_: &[u8]| {};
        let [start, limit] = [start, limit].map(Duration::from_secs);
        let follow =
            async { Ok::<_, Error>(follow(&mut attached, &mut ContainerOutput::new(&mut sink), start, limit).await) };
        ask(PATIENCE, follow).unwrap().unwrap_err()
    }

    #[test]
    fn a_program_has_less_time_to_start_than_to_end() {
        assert_eq!(followed(&["a banner\n"], 0, 600), "the program did not start within 0 seconds");
        assert_eq!(followed(&["a banner\n"], 600, 0), "the program did not start within 0 seconds");
        assert_eq!(followed(&["{\"ncclcheck\": 1}\n"], 600, 0), "the program did not end within 0 seconds");
        assert_eq!(followed(&["{\"ncclcheck\": 1}\n"], 0, 1), "the program did not end within 1 seconds");
    }

    #[test]
    fn an_entrypoint_that_the_engine_cannot_execute_is_no_fault_of_the_engine() {
        let refused = r#"runc create failed: error during container init: exec: "/entry.sh": permission denied"#;
        let behind = Arrangement { entrypoint: EntrypointUse::OfImage, ..plain() };
        assert_eq!(refused_entrypoint(&behind, refused).unwrap(), format!("the engine cannot execute it: {refused}"));
        assert_eq!(refused_entrypoint(&plain(), refused), None);
        let hook = r#"exec: "nvidia-container-runtime-hook": executable file not found in $PATH"#;
        assert_eq!(refused_entrypoint(&behind, hook), None);
    }

    #[test]
    fn values_that_may_be_secrets_are_not_kept() {
        let env = ["NCCL_DEBUG=INFO", "TOKEN=x=y", "PATH=/bin"].map(ToOwned::to_owned).to_vec();
        let process = process(ContainerConfig { env: Some(env), ..ContainerConfig::default() });
        let kept: Vec<_> = process.environment.iter().map(|(name, value)| (&**name, value.as_deref())).collect();
        assert_eq!(kept, [("NCCL_DEBUG", Some("INFO")), ("PATH", Some("/bin")), ("TOKEN", None)]);
    }
}
