//! Tests of the whole program, on the small test images in `fixtures/images`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "a test that cannot continue fails"
)]

mod archives;
mod attest;
mod audit;
mod bad_input;
mod cache;
mod ci;
mod cluster;
mod doctor;
mod explain;
mod fix;
mod foreign;
mod generate;
mod host_facts;
mod hosts;
mod launch;
mod launch_fix;
mod logs;
mod many;
mod media;
mod mirrors;
mod outputs;
mod platforms;
mod plugins;
mod policy;
mod probe;
mod record;
mod registry;
mod rules_archive;
mod sandbox;
mod secrets;
mod sentences;
mod services;
mod special_files;
mod support;
mod tree;
mod version;
mod worlds;
