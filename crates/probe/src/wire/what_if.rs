//! The step `what-if`: one measurement under several variants of the environment.

use std::collections::BTreeMap;

use super::collectives::UncleanExit;
use super::events::StepFailure;
use super::{Field, Nullable};

objects! {
    /// Measurements by variant.
    #[schemars(rename = "what-if")]
    pub struct WhatIfBody is step "what-if" {
        pub world_size: Field<i64>,
        pub local_ranks: Field<i64>,
        pub operation: Field<String>,
        /// The first variant has no variables; the others are compared with it.
        pub variants: Field<Vec<WhatIfVariant>>,
    }

    /// A variant of the environment.
    pub struct WhatIfVariant {
        pub index: Field<i64>,
        pub env: Field<BTreeMap<String, String>>,
        pub sizes: Field<Vec<VariantSize>>,
        pub failed: Nullable<StepFailure>,
        pub left_out: Field<Vec<LeftOutTurn>>,
        pub unclean_exits: Field<Vec<UncleanExit>>,
    }

    /// Samples of one size.
    pub struct VariantSize {
        pub bytes: Field<i64>,
        pub median_seconds: Field<f64>,
        pub samples: Field<Vec<f64>>,
    }

    /// A round of a variant, or one size in it, that was left out.
    pub struct LeftOutTurn {
        pub round: Field<i64>,
        pub bytes: Nullable<i64>,
        pub why: Field<String>,
    }
}
