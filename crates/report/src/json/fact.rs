//! Facts and sites in the JSON report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use facts::key::Definition;
use model::{Fact, Gap, ImagePath, LayerSummary, Site, Value};

/// A fact about the image.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "lowercase")]
#[schemars(rename = "Fact")]
pub(super) enum FactJson {
    /// The fact has a value.
    Seen {
        /// The value.
        // A fact that a later version added may have a value of another type.
        #[schemars(with = "Value")]
        value: Json,
        /// Sites where the value was read.
        at: Vec<SiteJson>,
    },
    /// The fact is absent: it is in none of the places where it would have to be.
    Absent,
    /// The fact could not be determined.
    Unknown {
        /// The reason, and how to determine the fact.
        gap: String,
    },
}

/// A site where a value was read.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Site")]
pub(super) enum SiteJson {
    /// A file in the merged layers of the image.
    File {
        /// Index of the layer that provides the file, from 0.
        layer: usize,
        /// Digest of the layer's stored blob, else its diff ID; null if neither is known.
        #[serde(skip_deserializing)]
        digest: Option<String>,
        /// Path in the image, with bytes that are not plain text as `\xNN` and a backslash as `\\`.
        path: String,
        /// The part of the file that was read, if not all of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        within: Option<String>,
    },
    /// A key of the image configuration.
    Config {
        /// The key, such as `Env NCCL_DEBUG`.
        config: String,
        /// The build step that set it, if known. Only in judgements.
        #[serde(skip_serializing_if = "Option::is_none")]
        step: Option<String>,
    },
    /// A step of a probe.
    Probe {
        /// Name of the step.
        probe: String,
    },
    /// A place outside the image where the job that starts it sets a variable.
    Launch {
        /// A launch file as the user named it, or the command-line option.
        launch: String,
        /// Line in the file, from 1, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<usize>,
        /// Name of the variable.
        variable: String,
    },
    /// A line of a job's log.
    Log {
        /// A log as the user named it.
        log: String,
        /// The line, from 1.
        line: u64,
        /// The entry of the fact that it shows.
        entry: String,
    },
}

impl FactJson {
    pub(super) fn new(fact: &Fact, layers: &[LayerSummary]) -> Self {
        match fact {
            Fact::Seen { value, at } => {
                Self::Seen { value: json!(value), at: at.iter().map(|site| SiteJson::new(site, layers)).collect() }
            }
            Fact::Absent => Self::Absent,
            Fact::Unknown(gap) => Self::Unknown { gap: gap.to_string() },
        }
    }

    /// Reads the fact back; `None` if its value does not have the fact's type.
    pub(super) fn into_fact(self, key: &Definition) -> Option<Fact> {
        match self {
            Self::Absent => Some(Fact::Absent),
            Self::Unknown { gap } => Some(Fact::Unknown(Gap::new(gap))),
            Self::Seen { value, at } => Some(Fact::seen(key.read(&value)?, at.into_iter().map(Site::from))),
        }
    }
}

impl SiteJson {
    pub(super) fn new(site: &Site, layers: &[LayerSummary]) -> Self {
        match site {
            Site::File { layer, path, within } => Self::File {
                layer: *layer,
                digest: layers.get(*layer).and_then(LayerSummary::name).map(ToString::to_string),
                path: path.to_string(),
                within: within.clone(),
            },
            Site::Config(key) => Self::Config { config: key.clone(), step: None },
            Site::Probe(step) => Self::Probe { probe: step.clone() },
            Site::Launch { file, line, variable } => {
                Self::Launch { launch: file.clone(), line: *line, variable: variable.clone() }
            }
            Site::Log { file, line, entry } => Self::Log { log: file.clone(), line: *line, entry: entry.clone() },
        }
    }
}

impl From<SiteJson> for Site {
    fn from(site: SiteJson) -> Self {
        match site {
            SiteJson::File { layer, path, within, .. } => Self::File { layer, path: ImagePath::printed(&path), within },
            SiteJson::Config { config, .. } => Self::Config(config),
            SiteJson::Probe { probe } => Self::Probe(probe),
            SiteJson::Launch { launch, line, variable } => Self::Launch { file: launch, line, variable },
            SiteJson::Log { log, line, entry } => Self::Log { file: log, line, entry },
        }
    }
}
