//! The index of the dynamic loader: a path that is found must stand in it.
#![no_main]

libfuzzer_sys::fuzz_target!(|cache: &[u8]| {
    if let Ok(Some(path)) = ncclcheck::rootfs::loader::look_up(cache, b"libnccl.so.2") {
        assert!(path.is_empty() || cache.windows(path.len()).any(|part| part == path));
    }
});
