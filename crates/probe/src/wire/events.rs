//! The lines that the program in the container writes, one JSON object each. `payload/wire.py` describes their meaning.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use model::{conceal_line, without_content};

use super::Field;
use super::entrypoint::EntrypointLaunch;
use super::host_config::{self, HostConfig};

/// The version of the protocol.
pub(super) const PROTOCOL: u64 = 1;

/// A JSON object as the program wrote it.
pub type EventBody = Map<String, Value>;

/// The event in one line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event {
    /// Launch of the container. ncclcheck itself writes this line.
    Launch(LaunchEvent),
    /// The program starts.
    #[serde(skip_serializing)]
    Hello(Box<Hello>),
    /// A step starts.
    Start {
        /// Name of the step.
        step: String,
        /// Time limit in seconds.
        deadline: f64,
    },
    /// A partial result of a step.
    Part {
        /// Name of the step.
        step: String,
        /// The partial result.
        body: EventBody,
    },
    /// One line of NCCL's debug output.
    Log(LogEvent),
    /// A step finished.
    Result {
        /// Name of the step.
        step: String,
        /// Duration in seconds.
        seconds: f64,
        /// Result of the step.
        body: EventBody,
        /// Abnormal end of the step's process after it had delivered the result, if any.
        #[serde(default)]
        unclean_exit: Option<String>,
    },
    /// A step failed.
    Failed(FailedEvent),
    /// A step could not run.
    Skipped {
        /// Name of the step.
        step: String,
        /// The missing prerequisite, and how to provide it.
        why: String,
    },
    /// A line that ncclcheck did not accept. ncclcheck itself writes this line, in place of the other.
    Refused {
        /// Number of the line in the output, and the reason.
        why: String,
    },
    /// The output ends.
    End {
        /// Number of steps that finished.
        #[serde(default)]
        run: u64,
        /// Number of steps that failed.
        #[serde(default)]
        failed: u64,
        /// Number of steps that could not run.
        #[serde(default)]
        skipped: u64,
    },
}

objects! {
    /// Environment of the program, and its plan.
    pub struct Hello {
        pub python: Field<String>,
        pub platform: Field<String>,
        pub hostname: Field<String>,
        pub pid: Field<i64>,
        pub uid: Field<i64>,
        /// Not in recordings of earlier versions, nor is `environment`.
        pub working_folder: Field<String>,
        /// Names of all variables of the program, with the values of those that cannot be secrets.
        pub environment: Field<BTreeMap<String, Option<String>>>,
        /// The plan, with its defaults filled in.
        pub plan: Field<HelloPlan>,
    }

    /// The part of the plan that ncclcheck reads.
    pub struct HelloPlan {
        /// Names of the steps to run.
        pub steps: Field<Vec<String>>,
    }

    /// Progress of a rank.
    #[derive(JsonSchema)]
    #[schemars(deny_unknown_fields)]
    pub struct RankState {
        #[schemars(with = "u64")]
        pub rank: Field<u64>,
        #[schemars(with = "String")]
        pub phase: Field<String>,
        /// Number of the phase, the same on all ranks.
        #[schemars(with = "i64")]
        pub number: Field<i64>,
        #[schemars(with = "String")]
        pub state: Field<String>,
        #[schemars(with = "Option<String>")]
        pub error: Field<String>,
    }
}

/// Stack of a process that hung.
#[derive(JsonSchema)]
#[schemars(rename = "Stack", deny_unknown_fields)]
#[expect(dead_code, reason = "describes an entry of a failure's stacks to readers of reports")]
struct HungProcess {
    process: String,
    /// State of the process in the kernel.
    state: String,
    stack: Vec<String>,
}

/// Launch of a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LaunchEvent {
    /// Engine, such as `Docker 28.2.2 at unix:///var/run/docker.sock`.
    pub engine: String,
    /// Image, as the caller named it.
    pub image: String,
    /// ID of the image in the engine.
    pub image_id: String,
    /// Equivalent `docker run` command line.
    pub command: String,
    /// True if the launch requested GPUs.
    pub gpus: bool,
    /// Names of the requested steps; empty in recordings of earlier versions.
    #[serde(default)]
    pub steps: Vec<String>,
    /// The requested configuration of the container, under the names of `given`.
    #[serde(default)]
    pub requested: Option<Value>,
    /// The engine's account of the container (`HostConfig` of its answer to ContainerInspect), if it gave one.
    #[serde(default)]
    pub given: Option<Value>,
    /// Inodes of this host's namespaces `net`, `ipc` and `pid`, if the engine runs on this host.
    #[serde(default)]
    pub namespaces: BTreeMap<String, u64>,
    /// The image's entrypoint, if it has one.
    #[serde(default)]
    pub entrypoint: Option<EntrypointLaunch>,
}

impl LaunchEvent {
    /// The container's configuration by the engine's account, if it gave one.
    pub fn host_config(&self) -> Option<HostConfig> {
        self.given.as_ref().map(host_config::read)
    }

    /// The entrypoints that were requested and given, if both are known.
    pub fn entrypoints(&self) -> Option<(Vec<String>, Vec<String>)> {
        let read = |account: &Option<Value>| host_config::entrypoint(account.as_ref()?);
        Some((read(&self.requested)?, read(&self.given)?))
    }

    /// The entrypoint, if the program ran or was to run behind it.
    pub fn entrypoint_in_use(&self) -> Option<&EntrypointLaunch> {
        self.entrypoint.as_ref().filter(|entrypoint| entrypoint.bypassed.is_none())
    }

    /// The container's configuration as it was requested.
    pub fn requested_config(&self) -> Option<HostConfig> {
        self.requested.as_ref().map(host_config::read)
    }
}

/// One line of NCCL's debug output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEvent {
    /// Name of the step.
    pub step: String,
    /// Run of the step: the variant's index in `what-if`, how often its ranks were renewed in `between-nodes`, else 0.
    #[serde(default)]
    pub run: u32,
    /// Rank that wrote the line.
    pub rank: Option<u32>,
    /// The line.
    pub line: String,
    /// Number of lines above the limit, which were left out; only in a rank's last line.
    #[serde(default)]
    pub left_out: Option<u64>,
}

/// Failure of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FailedEvent {
    /// Name of the step.
    pub step: String,
    /// Duration in seconds.
    pub seconds: f64,
    #[serde(flatten)]
    pub failure: StepFailure,
}

/// Details of a failure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StepFailure {
    /// `exception`, `signal`, `exit`, `deadline`, `protocol`.
    #[schemars(extend("enum" = ["exception", "signal", "exit", "deadline", "protocol"]))]
    pub how: String,
    /// The exception's type.
    #[serde(rename = "type", default)]
    pub kind: Option<String>,
    /// Description of the failure.
    pub message: String,
    /// The signal's name.
    #[serde(default)]
    pub signal: Option<String>,
    /// The exit status.
    #[serde(default)]
    pub code: Option<i64>,
    /// The rank that failed first.
    #[serde(default)]
    pub rank: Option<u32>,
    /// The last lines of its standard error.
    #[serde(default)]
    pub stderr: Vec<String>,
    /// Stacks of processes that hung.
    #[serde(default)]
    #[schemars(with = "Vec<HungProcess>")]
    pub stacks: Vec<Value>,
    /// Phase that each rank had entered.
    #[serde(default)]
    #[schemars(with = "Vec<RankState>")]
    pub ranks: Vec<Value>,
}

impl StepFailure {
    /// Phase that each rank had entered.
    pub fn rank_states(&self) -> Vec<RankState> {
        self.ranks.iter().filter_map(Value::as_object).map(super::read).collect()
    }

    /// Returns true if the step exceeded its time limit because something hung.
    pub fn is_hang(&self) -> bool {
        self.how == "deadline"
    }

    /// Returns the message, prefixed with the exception's type if there is one.
    pub fn worded(&self, message: &str) -> String {
        self.kind.as_ref().map_or_else(|| message.to_owned(), |kind| format!("{kind}: {message}"))
    }
}

/// A line, with the fields that all lines share.
#[derive(Serialize, Deserialize)]
struct Envelope {
    ncclcheck: u64,
    /// Seconds since the program started.
    #[serde(default)]
    at: f64,
    #[serde(flatten)]
    event: Event,
}

/// The kind of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum EventLine {
    /// An event, and its time in seconds since the program started.
    Event(f64, Box<Event>),
    /// Other output of the image.
    Noise(String),
}

impl EventLine {
    /// Reads a line, in which secrets are concealed. Returns an error for a line of the protocol that cannot be parsed.
    pub fn read(line: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(line);
        let text = conceal_line(&text);
        if !is_of_protocol(line) {
            return Ok(Self::Noise(text.into_owned()));
        }
        let envelope: Envelope = serde_json::from_str(&text).map_err(|error| without_content(&error.to_string()))?;
        if envelope.ncclcheck != PROTOCOL {
            return Err(format!("unsupported protocol version {} (expected {PROTOCOL})", envelope.ncclcheck));
        }
        Ok(Self::Event(envelope.at, Box::new(envelope.event)))
    }
}

/// Returns true for a line of the protocol, whether or not it can be parsed.
pub fn is_of_protocol(line: &[u8]) -> bool {
    line.starts_with(b"{\"ncclcheck\"")
}

/// An event of ncclcheck itself without the secrets in what it quotes.
pub fn concealed(event: Event) -> Event {
    match write(&event).map(|line| EventLine::read(line.as_bytes())) {
        Ok(Ok(EventLine::Event(_, event))) => *event,
        _ => event,
    }
}

/// Writes an event as a line that [`EventLine::read`] accepts.
pub fn write(event: &Event) -> serde_json::Result<String> {
    serde_json::to_string(&Envelope { ncclcheck: PROTOCOL, at: 0.0, event: event.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_noise() {
        let noise = EventLine::read(b"hello").unwrap();
        assert_eq!(noise, EventLine::Noise("hello".to_owned()));
        let EventLine::Event(at, event) =
            EventLine::read(br#"{"ncclcheck": 1, "event": "skipped", "at": 1.5, "step": "rdma", "why": "none"}"#)
                .unwrap()
        else {
            panic!("no event")
        };
        assert_eq!((at, &*event), (1.5, &Event::Skipped { step: "rdma".to_owned(), why: "none".to_owned() }));
        assert_eq!(EventLine::read(write(&event).unwrap().as_bytes()).unwrap(), EventLine::Event(0.0, event));
        assert!(EventLine::read(br#"{"ncclcheck": 2, "event": "end"}"#).unwrap_err().contains("version 2"));
        assert!(EventLine::read(br#"{"ncclcheck": 1, "event": "start"}"#).unwrap_err().contains("step"));
        assert!(EventLine::read(br#"{"ncclcheck": 1, "event": "sta"#).is_err());
    }
}
