//! A library whose functions are looked for and called: the first that is named `caffe2::GetBuildOptions()`, and those that refer
//! to a literal. Whatever the bytes are, each call ends within its limits, with a result or an error.
#![no_main]

use emulate::{ElfImage, StringAbi, call};

/// Names of the function, by the ABI of its strings.
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
