//! Explains why an engine did not start a container: the table `engines.yaml` maps messages of engines to a cause and a
//! remedy.

use serde::Deserialize;

use image::daemon::EngineError;
use image::source::SourceErrorKind;
use model::document::parse_table;
use model::{ReplaceableTable, Table};

use super::super::ProbeError;
use super::super::arrangement::{Arrangement, GpuWay, PullPolicy};
use super::Offers;

/// A row of the table `engines.yaml`: the explanation of messages that contain all of `words`, in any case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownMessage {
    /// The words of the message.
    pub words: Vec<String>,
    /// Why the engine says so.
    pub cause: String,
    /// What to do.
    pub help: String,
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the table"))]
    source: String,
}

/// Rows of the table. The first match wins, so specific rows precede general ones.
static KNOWN: Table<Vec<KnownMessage>> =
    Table::new("engines", || parse_table("rules/tables/engines.yaml", include_str!("../../tables/engines.yaml")));

/// The table, to be replaced.
pub fn table_of_messages() -> &'static dyn ReplaceableTable {
    &KNOWN
}

/// The messages of engines. The first that matches counts.
pub fn known_messages() -> impl Iterator<Item = &'static KnownMessage> {
    KNOWN.iter()
}

impl KnownMessage {
    /// Returns true if the text has all words of the message.
    pub fn matches(&self, text: &str) -> bool {
        let lower = text.to_lowercase();
        self.words.iter().all(|word| lower.contains(&word.to_lowercase()))
    }
}

/// Builds the error for a container that the engine did not start.
pub(super) fn start(arrangement: &Arrangement, trouble: &EngineError, offers: &Offers) -> ProbeError {
    let text = &trouble.text;
    let lower = text.to_lowercase();
    let known = known_messages().find(|known| known.matches(text));
    let (cause, mut help) = match known {
        Some(known) => (format!("\n  cause: {}", known.cause), Some(known.help.clone())),
        None => (String::new(), None),
    };
    if arrangement.gpu_way == Some(GpuWay::Request)
        && lower.contains("device driver")
        && offers.cdi.is_none()
        && offers.is_local
    {
        let nodes = std::path::Path::new("/dev/nvidiactl").exists();
        let seen = if nodes { "" } else { "; this machine has no /dev/nvidiactl, so no NVIDIA driver is loaded" };
        help = help.map(|help| format!("{help}{seen}"));
    }
    ProbeError::Engine { what: format!("{} cannot run {}: {text}{cause}", offers.engine, arrangement.image), help }
}

/// Builds the error for an image that the engine does not have or cannot fetch.
pub(super) fn image(name: &str, pull: PullPolicy, trouble: &EngineError, engine: &str) -> ProbeError {
    let text = &trouble.text;
    let (what, help) = match (trouble.kind, pull) {
        (SourceErrorKind::NotFound, PullPolicy::Never) => (
            format!("{engine} has no image {name}"),
            format!("fetch it with docker pull {name}, or let the probe fetch it with --pull missing"),
        ),
        (_, PullPolicy::Never) => (format!("{engine} cannot inspect image {name}: {text}"), String::new()),
        _ => (
            format!("{engine} cannot fetch {name}: {text}"),
            format!(
                "if it needs credentials or comes from a file, load it into the engine first: docker pull {name}, or docker load"
            ),
        ),
    };
    ProbeError::Engine { what, help: Some(help).filter(|help| !help.is_empty()) }
}

/// Builds the error for a failed request about the engine itself.
pub(super) fn request(about: &str, trouble: &EngineError, engine: &str) -> ProbeError {
    ProbeError::Engine { what: format!("{engine} cannot report {about}: {}", trouble.text), help: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of engines, and words of their explanations. Docker 20.10 printed the texts about device drivers,
    /// limits, programs and devices; the others follow the format strings in the sources of the engines and tools.
    const SAID: &[(&str, &str)] = &[
        (r#"could not select device driver "" with capabilities: [[gpu]]"#, "nvidia-ctk runtime configure"),
        (r#"could not select device driver "cdi" with capabilities: []"#, "\"cdi\": true"),
        ("CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=9", "nvidia-ctk cdi generate"),
        (
            "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: \
             error during container init: error setting rlimits for ready process: error setting rlimit type 8: operation \
             not permitted: unknown",
            "LimitMEMLOCK",
        ),
        (
            r#"unable to start container process: exec: "nope": executable file not found in $PATH: unknown"#,
            "ncclcheck inspect shows it as python.path",
        ),
        (
            r#"error gathering device information while adding custom device "/dev/infiniband": no such file or directory"#,
            "--rdma no",
        ),
        ("OCI runtime create failed: exec /usr/bin/python3: exec format error", "made for another architecture"),
        (
            "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=13.0, please update your driver",
            "NVIDIA_REQUIRE_",
        ),
        ("nvidia-container-cli: initialization error: nvml error: driver not loaded", "kernel module"),
        ("nvidia-container-cli: device error: 9: unknown device", "nvidia-smi -L"),
        ("crun: controller `pids` is not available under /sys/fs/cgroup/user.slice", "Delegate="),
        ("write /var/lib/docker/tmp/x: no space left on device", "disk is full"),
    ];

    #[test]
    fn every_row_has_a_source_and_can_match() {
        for (index, known) in KNOWN.iter().enumerate() {
            assert!(!known.words.is_empty() && !known.source.is_empty(), "{known:?}");
            // A message that an earlier row matches never reaches this one.
            let takes = |earlier: &KnownMessage| earlier.words.iter().all(|word| known.words.contains(word));
            assert!(!KNOWN.iter().take(index).any(takes), "{known:?}");
        }
    }

    #[test]
    fn engines_are_explained() {
        let arrangement = super::super::super::arrangement::tests::plain();
        for (said, wanted) in SAID {
            let trouble = EngineError::new(SourceErrorKind::Invalid, *said);
            let text = start(&arrangement, &trouble, &Offers::default()).to_string();
            assert!(text.contains(said) && text.contains("\n  cause: ") && text.contains(wanted), "{text}");
        }
    }

    #[test]
    fn an_unknown_message_is_passed_on_without_a_cause() {
        let arrangement = super::super::super::arrangement::tests::plain();
        let error =
            start(&arrangement, &EngineError::new(SourceErrorKind::Invalid, "something new"), &Offers::default());
        assert_eq!(error.to_string(), " cannot run my/image: something new");
    }
}
