//! The steps `collectives` and `forced-network`: one process for each GPU, and their measurements.

use std::collections::BTreeMap;

use super::Field;
use super::speed::Bandwidth;

impl Measurement {
    /// Bus bandwidth in bytes per second; `None` if it is not known.
    pub fn busbw(&self) -> Option<f64> {
        self.busbw_bytes_per_second.copied().map(f64::from)
    }
}

/// The step that runs the collectives over the network only. Its body is also [`CollectivesBody`].
pub const FORCED_NETWORK: &str = "forced-network";

objects! {
    /// Result of the ranks.
    pub struct CollectivesBody is step "collectives" {
        pub left_out: Field<Vec<LeftOut>>,
        pub unclean_exits: Field<Vec<UncleanExit>>,
    }

    /// A measurement that was left out. Without `bytes`, all sizes of the operation were left out.
    pub struct LeftOut {
        pub operation: Field<String>,
        pub bytes: Field<i64>,
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
        pub sizes: Field<Vec<i64>>,
        pub env: Field<BTreeMap<String, String>>,
    }

    /// Durations of a rank's phases, from its start to its first collectives.
    pub struct Times is part "times" {
        pub rank: Field<i64>,
        pub import_seconds: Field<f64>,
        pub device_seconds: Field<f64>,
        pub rendezvous_seconds: Field<f64>,
        pub init_seconds: Field<f64>,
        pub first_call_seconds: Field<f64>,
        pub second_call_seconds: Field<f64>,
        pub variant: Field<i64>,
    }

    /// Cost of the first call between two ranks.
    pub struct PointToPoint is part "point-to-point" {
        /// What the two ranks did before, or `nothing`.
        pub prepared_by: Field<String>,
        pub bytes: Field<i64>,
        pub first_seconds: Field<f64>,
    }

    /// Measurement of an operation at one size. A sample is the seconds per call on the slowest rank.
    pub struct Measurement is part "measurement" {
        pub operation: Field<String>,
        pub bytes: Field<u64>,
        pub in_place: Field<bool>,
        pub seconds_median: Field<f64>,
        pub busbw_bytes_per_second: Field<Bandwidth>,
        /// Number of wrong elements on all ranks.
        pub wrong: Field<i64>,
        pub variant: Field<i64>,
    }
}
