//! The target that NCCLCHECK_TARGET names. Its seeds are written into the folder NCCLCHECK_SEEDS first.
#![no_main]

#[path = "../engine.rs"]
mod engine;
#[path = "../targets.rs"]
mod targets;
#[path = "../world.rs"]
mod world;

use std::path::Path;
use std::sync::OnceLock;

use targets::{TARGETS, Target};

static TARGET: OnceLock<&Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: {
        let variable = |name| std::env::var(name).expect(name);
        let name = variable("NCCLCHECK_TARGET");
        let target = TARGETS.iter().find(|target| target.name == name).expect("a target of targets.rs");
        for (number, seed) in target.seeds().iter().enumerate() {
            std::fs::write(Path::new(&variable("NCCLCHECK_SEEDS")).join(format!("seed-{number}")), seed).expect("room for a seed");
        }
        TARGET.get_or_init(|| target);
    },
    |bytes: &[u8]| TARGET.get().expect("the target of init").read(bytes)
);
