//! CUDA: the runtime library, the GPU code of libraries, and the driver parts that the image contains or its hosts
//! need.

mod code;
mod compat;
mod driver;
mod mapped;
mod overwritten;
mod require;
mod runtime;
pub(crate) mod toolkit;

use super::{Context, Facts};

pub(super) use require::{HostProperties, RequirementTruth, check};

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    runtime::produce(context, facts);
    mapped::produce(context, facts);
    overwritten::produce(context, facts);
    driver::produce(context, facts);
    code::produce(context, facts);
    compat::produce(context, facts);
    toolkit::produce(facts);
    require::produce(context, facts);
}

#[cfg(test)]
mod tests;
