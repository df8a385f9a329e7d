//! A library whose `caffe2::GetBuildOptions()` is followed instruction by instruction.
#![no_main]

libfuzzer_sys::fuzz_target!(|library: &[u8]| {
    let _ = ncclcheck::layer::scan::build_options(library);
});
