//! CUDA: its runtime library, the GPU code of libraries, and what of the driver is in the image or must be on its hosts.

mod code;
mod compat;
mod driver;
mod require;
mod runtime;
pub(super) mod toolkit;

use super::{Context, Facts};

pub(super) use require::{Properties, Truth, check};

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    runtime::produce(context, facts);
    driver::produce(context, facts);
    code::produce(context, facts);
    compat::produce(context, facts);
    toolkit::produce(facts);
    require::produce(context, facts);
}
