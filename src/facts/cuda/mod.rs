//! CUDA: the runtime library, the GPU code of libraries, and the driver parts that the image contains or its hosts
//! need.

mod code;
mod compat;
mod driver;
mod mapped;
mod overwritten;
mod require;
mod runtime;
pub(super) mod toolkit;

use super::key::definitions;
use super::producer::Producer;
use super::{Context, Draft};

pub(super) use require::{HostProperties, RequirementTruth, check};

pub(super) static PRODUCER: Producer = Producer {
    name: "cuda",
    produces: definitions![
        NVIDIA_REQUIREMENTS,
        TORCH_CUDA_DRIVER_MIN,
        TORCH_CUDART_NEEDED,
        CUDA_FATBIN,
        CUDA_PTX,
        CUDA_UNREAD_CODE,
        CUDA_NOT_IN_NCCL,
        CUDA_COMPAT,
        CUDA_LIBCUDA,
        CUDA_CUDART,
        CUDA_CUDART_MAJORS,
        CUDA_CUDART_MISSING,
        CUDA_LOADED_MAJORS,
        CUDA_OF_ANOTHER_MAJOR,
        CUDA_OVERWRITTEN,
        CUDA_DRIVER_LIBRARIES,
    ],
    needs: definitions![TORCH_CUDA_VERSION, NCCL_LOADED_PATH],
    run: produce,
};

fn produce(context: &Context<'_>, facts: &mut Draft<'_>) {
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
