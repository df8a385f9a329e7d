//! Searches a library for functions and calls them: `caffe2::GetBuildOptions()` by name, and functions that refer to a literal. For
//! all input bytes, each call must end within its limits, with a result or an error.
#![no_main]

use emulate::{ElfImage, StringAbi, call};

/// Mangled names of the function, by the ABI of its strings.
const NAMES: [&str; 2] = ["_ZN6caffe215GetBuildOptionsB5cxx11Ev", "_ZN6caffe215GetBuildOptionsEv"];

libfuzzer_sys::fuzz_target!(|library: &[u8]| {
    let Ok(image) = ElfImage::open(&library) else { return };
    let named = NAMES.iter().filter_map(|name| image.function(name).ok().flatten());
    let nameless = image.functions_that_refer_to(b"-fvisibility-inlines-hidden").unwrap_or_default();
    for entry in named.chain(nameless) {
        if let Ok(mut returned) = call(&image, entry) {
            for abi in [StringAbi::Cxx11, StringAbi::Old] {
                let _ = returned.map(abi);
            }
        }
    }
});
