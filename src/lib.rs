//! Tells, from the bytes of a container image, whether distributed PyTorch training in it will use NCCL, NVLink and RDMA.

pub mod facts;
pub mod model;
pub mod pipeline;
pub mod report;
pub mod rootfs;
pub mod rules;
pub mod scan;
pub mod source;
pub mod tarball;
