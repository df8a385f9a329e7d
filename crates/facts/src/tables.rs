//! The tables of `rules/tables` that this crate reads.

use model::ReplaceableTable;

use super::{cuda, environment, extension, host, image, machine, nccl, rdma, start};

/// All of them.
pub fn tables() -> [&'static dyn ReplaceableTable; 15] {
    [
        &cuda::toolkit::TABLE,
        &environment::value::selection::TABLE,
        &environment::vocabulary::TABLE,
        &extension::compiler::COMPILING,
        &extension::missing::LIBRARIES,
        &extension::opened::OPENED,
        &extension::pinned::BUILT_FOR,
        &host::recorded::names::LOCAL,
        &image::SHOWN,
        &machine::models::TABLE,
        &machine::system::HYPERVISORS,
        &nccl::faults::TABLE,
        &nccl::plugins::KINDS,
        &rdma::versions::TABLE,
        &start::wrapper::TABLE,
    ]
}
