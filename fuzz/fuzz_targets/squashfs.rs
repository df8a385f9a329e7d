//! A squashfs image of enroot.
#![no_main]

#[path = "../load.rs"]
mod load;

libfuzzer_sys::fuzz_target!(|image: &[u8]| load::check("sqsh", image));
