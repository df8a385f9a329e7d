//! The steps `collectives` and `forced-network`: one process for each GPU, and their measurements.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::speed::Bandwidth;
use super::{Field, Nullable};

impl Measurement {
    /// Bus bandwidth in bytes per second; `None` if it is not known.
    pub fn busbw(&self) -> Option<f64> {
        self.busbw_bytes_per_second.copied().map(f64::from)
    }
}

/// The step that runs the collectives over the network only. Its body is also [`CollectivesBody`].
pub const FORCED_NETWORK: &str = "forced-network";

/// Preparation of two ranks before their first call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Preparation {
    Nothing,
    AllReduce,
    #[serde(rename = "sendrecv")]
    SendRecv,
}

objects! {
    /// Result of the ranks.
    #[schemars(rename = "collectives")]
    pub struct CollectivesBody is step "collectives" {
        pub world_size: Field<i64>,
        pub local_ranks: Field<i64>,
        pub left_out: Field<Vec<LeftOut>>,
        pub unclean_exits: Field<Vec<UncleanExit>>,
    }

    /// A measurement that was left out. Without `bytes`, all sizes of the operation were left out.
    pub struct LeftOut {
        pub operation: Field<String>,
        pub bytes: Nullable<i64>,
        pub why: Field<String>,
    }

    /// A rank whose process ended abnormally after it had delivered its results.
    pub struct UncleanExit {
        pub rank: Field<i64>,
        pub ending: Field<String>,
    }

    /// Setup of the run, and the image's variables that it replaced.
    pub struct Setup is part "setup" {
        pub backend: Field<String>,
        pub world_size: Field<i64>,
        pub first_rank: Field<i64>,
        pub local_ranks: Field<i64>,
        pub master_addr: Field<String>,
        pub master_port: Field<i64>,
        pub operations: Field<Vec<String>>,
        pub sizes: Field<Vec<i64>>,
        pub dtype: Field<String>,
        pub env: Field<BTreeMap<String, String>>,
        pub replaced: Field<BTreeMap<String, String>>,
    }

    /// Durations of a rank's phases, from its start to its first collectives.
    pub struct Times is part "times" {
        pub rank: Field<i64>,
        pub torch_version: Field<String>,
        pub import_seconds: Field<f64>,
        pub device_seconds: Field<f64>,
        pub rendezvous_seconds: Field<f64>,
        pub init_seconds: Field<f64>,
        pub eager: Field<bool>,
        pub communicator_seconds: Nullable<f64>,
        pub first_call_seconds: Field<f64>,
        pub second_call_seconds: Field<f64>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub variant: Field<i64>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub round: Field<i64>,
    }

    /// Cost of the first call between two ranks.
    pub struct PointToPoint is part "point-to-point" {
        pub prepared_by: Field<Preparation>,
        pub ranks: Field<Vec<i64>>,
        pub bytes: Field<i64>,
        pub group_seconds: Field<f64>,
        pub preparation_seconds: Field<f64>,
        pub first_seconds: Field<f64>,
        pub second_seconds: Field<f64>,
        pub later_seconds: Field<f64>,
    }

    /// Measurement of an operation at one size. A sample is the seconds per call on the slowest rank.
    pub struct Measurement is part "measurement" {
        pub operation: Field<String>,
        pub dtype: Field<String>,
        pub ranks: Field<i64>,
        pub bytes: Field<u64>,
        pub in_place: Field<bool>,
        pub calls_per_batch: Field<i64>,
        pub samples: Field<Vec<f64>>,
        pub seconds_min: Field<f64>,
        pub seconds_median: Field<f64>,
        pub seconds_max: Field<f64>,
        pub algbw_bytes_per_second: Field<f64>,
        #[schemars(with = "f64")]
        pub busbw_bytes_per_second: Field<Bandwidth>,
        /// Number of wrong elements on all ranks.
        pub wrong: Nullable<i64>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub variant: Field<i64>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub round: Field<i64>,
    }

    /// Wrong values on a rank, and the first of them.
    pub struct WrongValues is part "wrong-values" {
        pub rank: Field<i64>,
        pub operation: Field<String>,
        pub bytes: Field<i64>,
        pub wrong: Field<i64>,
        pub first: Field<i64>,
        pub expected: Field<String>,
        pub got: Field<String>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub variant: Field<i64>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub round: Field<i64>,
    }
}
