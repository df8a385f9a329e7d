//! The rules and profiles of the folder `rules`, and the pages of the book that `explain` prints, which `rules/build.rs`
//! compresses into the program.

use std::io::Read as _;
use std::sync::LazyLock;

use flate2::bufread::DeflateDecoder;
use judge::{Shipped, ShippedFile};

static SHIPPED: LazyLock<Shipped> = LazyLock::new(|| {
    Shipped::new(unpack(include_bytes!(concat!(env!("OUT_DIR"), "/rules.json"))), || {
        unpack(include_bytes!(concat!(env!("OUT_DIR"), "/rules")))
    })
});

/// The rules and profiles that the program contains, or those that replace them.
pub fn shipped() -> &'static Shipped {
    crate::archive::replaced().unwrap_or(&SHIPPED)
}

static TOPICS: LazyLock<Vec<ShippedFile>> =
    LazyLock::new(|| unpack(include_bytes!(concat!(env!("OUT_DIR"), "/topics"))));

/// The pages about topics, and those on how to use the program beside others: each with its path in `docs`, in Markdown.
pub(crate) fn topics() -> &'static [ShippedFile] {
    &TOPICS
}

/// Unpacks what `rules/build.rs` wrote. The texts stay in memory until the program ends.
#[expect(clippy::expect_used, clippy::disallowed_methods, reason = "constant data, which a test reads")]
fn unpack(packed: &[u8]) -> Vec<ShippedFile> {
    let mut all = String::new();
    DeflateDecoder::new(packed).read_to_string(&mut all).expect("texts that rules/build.rs compressed");
    let mut parts = all.leak().split_terminator('\0');
    let mut files = Vec::new();
    while let (Some(path), Some(text)) = (parts.next(), parts.next()) {
        files.push((path, text));
    }
    files
}
