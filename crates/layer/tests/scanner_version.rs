//! The scanner's version, which is part of every cache key: it changes with the scanner's code and with nothing else.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use sha2::{Digest as _, Sha256};

#[path = "../build.rs"]
#[expect(dead_code, clippy::print_stdout, reason = "only the digest is tested, not the output for cargo")]
mod build_script;

fn digest(code: &str) -> (Vec<u8>, BTreeSet<String>) {
    let mut hasher = Sha256::new();
    let mut words = BTreeSet::new();
    let tokens = code.parse::<TokenStream>();
    build_script::digest(tokens.unwrap_or_default(), &mut hasher, &mut words);
    (hasher.finalize().to_vec(), words)
}

#[test]
fn comments_layout_and_tests_do_not_change_it() {
    let code = "fn size(a: u8) -> u8 { a + 1 }";
    for same in [
        "//! About.\n/// Returns it.\nfn size(a: u8) -> u8 {\n    // Why.\n    a + 1\n}",
        "fn size(a: u8) -> u8 { a + 1 } #[cfg(test)] mod tests { fn f() { size(2) } }",
        "fn size(a: u8) -> u8 { a + 1 } #[cfg(test)] mod tests;",
        "#[cfg(test)] use std::fs; fn size(/* a number */ a: u8) -> u8 { a + 1 }",
    ] {
        assert_eq!(digest(same).0, digest(code).0, "{same}");
    }
    for other in [
        "fn size(a: u8) -> u8 { a + 2 }",
        "fn size(a: u8) -> u8 { a - 1 }",
        "fn size(a: u16) -> u8 { a + 1 }",
        "#[inline] fn size(a: u8) -> u8 { a + 1 }",
        "#[cfg(unix)] fn size(a: u8) -> u8 { a + 1 }",
        "fn size(a: u8) -> u8 { (a) + 1 }",
        "fn size(a: u8) -> u8 { a + 1 } #[cfg(test)] mod tests; const B: u8 = 1;",
    ] {
        assert_ne!(digest(other).0, digest(code).0, "{other}");
    }
}

#[test]
fn versions_of_the_crates_in_use_change_it() {
    let package = |name: &str, version: &str, needs: &str| {
        format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\ndependencies = [\n{needs}]\n\n")
    };
    let lock = |clap: &str, simd: &str| {
        [package("clap", clap, ""), package("memchr", "2.7.0", " \"simd-words\",\n"), package("simd-words", simd, "")]
            .concat()
    };
    let (_, words) = digest("use memchr::memmem; fn f() {}");
    let used = |clap, simd| build_script::used_crates(&lock(clap, simd), &words).unwrap();
    assert_eq!(used("4.0.0", "1.0.0").keys().collect::<Vec<_>>(), ["memchr 2.7.0", "simd-words 1.0.0"]);
    assert_eq!(used("4.0.0", "1.0.0"), used("4.1.0", "1.0.0"));
    assert_ne!(used("4.0.0", "1.0.0"), used("4.0.0", "1.0.1"));
}
