//! A library with GPU code: what is found must not depend on where its bytes are cut.
#![no_main]

use ncclcheck::layer::scan::gpu_code;

libfuzzer_sys::fuzz_target!(|input: (u16, &[u8])| {
    let (cut, library) = input;
    let (head, tail) = library.split_at(usize::from(cut).min(library.len()));
    assert_eq!(gpu_code([library]), gpu_code([head, tail]));
});
