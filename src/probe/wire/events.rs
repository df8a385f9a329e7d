//! The lines that the program in the container writes: one JSON object each. What they mean stands in `payload/wire.py`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::host_config::{self, HostConfig};
use super::{Field, Nullable};

/// The version of the protocol.
pub(super) const PROTOCOL: u64 = 1;

/// A JSON object as the program wrote it.
pub type EventBody = Map<String, Value>;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "lowercase")]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub enum Event {
    /// How the container was launched; written by us, the first line of a recording.
    #[schemars(skip)]
    Launch(LaunchEvent),
    /// Where the program runs.
    Hello(Box<Hello>),
    /// A step begins.
    Start {
        /// Its name.
        step: String,
        /// Seconds that it may take.
        deadline: f64,
    },
    /// A partial result of a step.
    Part {
        /// The step.
        step: String,
        /// What it is.
        body: EventBody,
    },
    /// One line of NCCL's own output.
    Log(LogEvent),
    /// A step is done.
    Result {
        /// The step.
        step: String,
        /// How long it took.
        seconds: f64,
        /// What it found.
        body: EventBody,
        /// How its process ended after it had delivered, if not well.
        #[serde(default)]
        unclean_exit: Option<String>,
    },
    /// A step is lost.
    Failed(FailedEvent),
    /// A step could not be run.
    Skipped {
        /// The step.
        step: String,
        /// What is missing, and what would make it run.
        why: String,
    },
    /// Nothing follows.
    End {
        /// How many steps are done.
        #[serde(default)]
        run: u64,
        /// How many are lost.
        #[serde(default)]
        failed: u64,
        /// How many could not be run.
        #[serde(default)]
        skipped: u64,
    },
}

objects! {
    /// Where the program runs, and its plan.
    pub struct Hello {
        pub python: Field<String>,
        pub executable: Field<String>,
        pub platform: Field<String>,
        pub hostname: Field<String>,
        pub pid: Field<i64>,
        pub uid: Field<i64>,
        pub gid: Field<i64>,
        pub groups: Field<Vec<i64>>,
        /// The plan with its defaults filled in.
        #[schemars(with = "EventBody")]
        pub plan: Field<HelloPlan>,
    }

    /// As much of the plan as concerns us.
    pub struct HelloPlan {
        /// Names of the steps that are to run.
        pub steps: Field<Vec<String>>,
    }

    /// The stack of a process that hung.
    pub struct Stack {
        pub process: Field<String>,
        /// The kernel's state of the process.
        pub state: Field<String>,
        pub stack: Field<Vec<String>>,
    }

    /// How far a rank had come.
    pub struct RankState {
        pub rank: Field<u64>,
        pub phase: Field<String>,
        /// The phase's number, which is the same on all ranks.
        pub number: Field<i64>,
        pub state: Field<String>,
        pub error: Nullable<String>,
    }
}

/// How a container was launched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LaunchEvent {
    /// The engine: `Docker 28.2.2 at unix:///var/run/docker.sock`.
    pub engine: String,
    /// The image, as it was asked for.
    pub image: String,
    /// Its ID in the engine.
    pub image_id: String,
    /// The command line that would do the same.
    pub command: String,
    /// Whether GPUs were asked for.
    pub gpus: bool,
    /// What the engine said that it gave (of its answer to ContainerInspect, `HostConfig`), where it said something.
    #[serde(default)]
    pub given: Option<Value>,
    /// Inodes of this host's own namespaces, `net`, `ipc` and `pid`, where the engine runs on it.
    #[serde(default)]
    pub namespaces: BTreeMap<String, u64>,
}

impl LaunchEvent {
    /// What the engine gave, where it said something.
    pub fn host_config(&self) -> Option<HostConfig> {
        self.given.as_ref().map(host_config::read)
    }
}

/// One line of NCCL's own output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[schemars(rename = "Log")]
#[non_exhaustive]
pub struct LogEvent {
    /// The step.
    pub step: String,
    /// Which run of the step.
    #[serde(default)]
    pub run: u32,
    /// Whose output it is.
    #[schemars(with = "u32")]
    pub rank: Option<u32>,
    /// The line.
    pub line: String,
    /// In a rank's last line: how many were too many to be told.
    #[serde(default)]
    pub left_out: Option<u64>,
}

/// How a step was lost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct FailedEvent {
    /// The step.
    pub step: String,
    /// How long it took.
    pub seconds: f64,
    #[serde(flatten)]
    pub failure: StepFailure,
}

/// What is known of a failure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct StepFailure {
    /// `exception`, `signal`, `exit`, `deadline`, `protocol`.
    #[schemars(extend("enum" = ["exception", "signal", "exit", "deadline", "protocol"]))]
    pub how: String,
    /// The exception's type.
    #[serde(rename = "type", default)]
    pub kind: Option<String>,
    /// What is wrong, in words.
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
    #[schemars(with = "Vec<Stack>")]
    pub stacks: Vec<Value>,
    /// Which phase each rank had entered.
    #[serde(default)]
    #[schemars(with = "Vec<RankState>")]
    pub ranks: Vec<Value>,
}

impl StepFailure {
    /// Which phase each rank had entered.
    pub fn rank_states(&self) -> Vec<RankState> {
        self.ranks.iter().filter_map(Value::as_object).map(super::read).collect()
    }

    /// Returns true if the step was lost at a deadline: something hung.
    pub fn is_hang(&self) -> bool {
        self.how == "deadline"
    }

    /// The message, with the exception's type before it.
    pub fn worded(&self, message: &str) -> String {
        self.kind.as_ref().map_or_else(|| message.to_owned(), |kind| format!("{kind}: {message}"))
    }
}

/// A line, with what every line has.
#[derive(Serialize, Deserialize)]
struct Envelope {
    ncclcheck: u64,
    /// Seconds since the program started.
    #[serde(default)]
    at: f64,
    #[serde(flatten)]
    event: Event,
}

/// What a line is.
#[derive(Clone, Debug, PartialEq)]
pub enum EventLine {
    /// An event, and the seconds since the program's start.
    Event(f64, Box<Event>),
    /// Something else that the image wrote to standard output.
    Noise(String),
}

impl EventLine {
    /// Reads a line; an error where it is ours and is not understood.
    pub fn read(line: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(line);
        let is_ours = text.starts_with("{\"ncclcheck\"");
        if !is_ours {
            return Ok(Self::Noise(text.into_owned()));
        }
        let envelope: Envelope = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        if envelope.ncclcheck != PROTOCOL {
            return Err(format!("it is of version {} of the protocol, {PROTOCOL} is read here", envelope.ncclcheck));
        }
        Ok(Self::Event(envelope.at, Box::new(envelope.event)))
    }
}

/// A line that the next run can read.
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
