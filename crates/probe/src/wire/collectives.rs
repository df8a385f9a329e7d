//! The steps `collectives` and `forced-network`: one process for each GPU, and their measurements.

use std::collections::BTreeMap;

use super::Field;
use super::gpus::LinkTraffic;
use super::speed::Bandwidth;
use super::what_if::VariantSize;

impl Measurement {
    /// Bus bandwidth in bytes per second; `None` if it is not known.
    pub fn busbw(&self) -> Option<f64> {
        self.busbw_bytes_per_second.copied().map(f64::from)
    }

    /// Bus bandwidth of the fastest sample, in bytes per second, which noise lowers least.
    pub fn best_busbw(&self) -> Option<f64> {
        let gain = self.seconds_median.copied().zip(self.seconds_min.copied());
        let gain = gain.filter(|(_, least)| *least > 0.0).map_or(1.0, |(median, least)| median / least);
        Some(self.busbw()? * gain)
    }
}

/// The step that runs the collectives over the network only. Its body is also [`CollectivesBody`].
pub const FORCED_NETWORK: &str = "forced-network";

objects! {
    /// Result of the ranks.
    pub struct CollectivesBody is step "collectives" {
        pub left_out: Field<Vec<LeftOut>>,
        pub unclean_exits: Field<Vec<UncleanExit>>,
        pub gpus_during: Field<Vec<GpuDuring>>,
        pub gpus_after: Field<Vec<GpuAfter>>,
        pub without_variables: Field<Vec<RunWithout>>,
        pub cpu_waits: Field<Vec<CpuWait>>,
    }

    /// How long the first thread of a rank had no CPU while it measured.
    pub struct CpuWait {
        pub rank: Field<i64>,
        pub seconds: Field<f64>,
        pub waited_seconds: Field<f64>,
    }

    /// Clocks of a GPU while the collectives ran.
    pub struct GpuDuring {
        pub index: Field<i64>,
        pub event_reasons: Field<Vec<String>>,
        pub celsius_most: Field<i64>,
    }

    /// Load of a GPU after all ranks have ended, which is that of other processes.
    pub struct GpuAfter {
        pub index: Field<i64>,
        pub busy_percent: Field<i64>,
        pub traffic: Field<LinkTraffic>,
    }

    /// The largest size without some variables. The first run is without all that the container sets.
    pub struct RunWithout {
        pub variables: Field<Vec<String>>,
        pub sizes: Field<Vec<VariantSize>>,
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
        pub seconds_min: Field<f64>,
        pub seconds_median: Field<f64>,
        pub busbw_bytes_per_second: Field<Bandwidth>,
        /// Number of wrong elements on all ranks.
        pub wrong: Field<i64>,
        pub variant: Field<i64>,
    }
}
