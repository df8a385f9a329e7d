//! Loads an image of hostile bytes: it is read within the limits, or the error names it.

use std::cell::OnceCell;
use std::fs;
use std::num::NonZeroUsize;

use ncclcheck::image::{Request, load};
use ncclcheck::model::{Limits, NoProgress};
use tempfile::NamedTempFile;
use unpack::pipe::Cancel;

thread_local! {
    static FILE: OnceCell<NamedTempFile> = const { OnceCell::new() };
}

/// Loads the bytes as an image of this transport.
pub fn check(transport: &str, bytes: &[u8]) {
    FILE.with(|file| {
        let path = file.get_or_init(|| NamedTempFile::new().expect("a temporary folder")).path();
        fs::write(path, bytes).expect("room for a file");
        let path = path.to_str().expect("a path in UTF-8");
        let mut request = Request::new(&format!("{transport}:{path}")).expect("a reference");
        request.jobs = NonZeroUsize::MIN;
        request.limits = Limits { entries: 10_000, unpacked: 64 << 20, text_file: 1 << 20, ..Limits::default() };
        match load(&request, &NoProgress, &Cancel::default()) {
            Ok(images) => assert_eq!(images.len(), 1),
            Err(error) => assert!(error.to_string().contains(path), "{error}"),
        }
    });
}
