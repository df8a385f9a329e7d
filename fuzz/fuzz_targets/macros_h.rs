//! PyTorch's header of build options: a name that is found must stand in it.
#![no_main]

libfuzzer_sys::fuzz_target!(|header: &[u8]| {
    for name in ncclcheck::facts::header_options(header).iter().flat_map(|options| options.keys()) {
        assert!(name.is_empty() || header.windows(name.len()).any(|part| part == name.as_bytes()));
    }
});
