//! The step `what-if`: one measurement under several variants of the environment.

use std::collections::BTreeMap;

use super::Field;
use super::events::StepFailure;

objects! {
    /// Measurements by variant.
    pub struct WhatIfBody is step "what-if" {
        /// The first variant has no variables; the others are compared with it.
        pub variants: Field<Vec<WhatIfVariant>>,
    }

    /// A variant of the environment.
    pub struct WhatIfVariant {
        pub env: Field<BTreeMap<String, String>>,
        pub sizes: Field<Vec<VariantSize>>,
        pub failed: Field<StepFailure>,
    }

    /// Samples of one size.
    pub struct VariantSize {
        pub bytes: Field<i64>,
        pub median_seconds: Field<f64>,
        pub samples: Field<Vec<f64>>,
    }
}
