//! The ELF note of a CUDA forward compatibility library that lists the drivers it works with: its owner is `NVIDIA
//! Corporation` and its content is a JSON object (nvidia-container-toolkit,
//! `cmd/nvidia-cdi-hook/cudacompat/cuda-elf-header.go`).

use memchr::memmem;
use serde::Deserialize;

use model::{BoundsError, CompatNote, Found, Gap, part};

use super::extract::{Collect, Extractor};

pub(super) const EXTRACTOR: Extractor = Extractor {
    name: "forward compatibility",
    wants: |entry, head| head.starts_with(b"\x7fELF") && entry.path.file_name().starts_with(b"libcuda.so."),
    start: |entry, _| Box::new(NoteHead { path: entry.path.to_string(), bytes: Vec::new() }),
};

/// Number of leading bytes searched: notes directly follow the headers.
const HEAD: usize = 1 << 20;

/// The owner's name as stored, padded to four bytes, and the beginning of the content.
const NOTE: &[u8] = b"NVIDIA Corporation\0\0{\"format\":";

/// Size of the owner's name in [`NOTE`], in bytes.
const OWNER: usize = 20;

/// Maximum size of the content, in bytes. Notes have a few hundred.
const LONGEST: usize = 4096;

/// The beginning of a file.
struct NoteHead {
    path: String,
    bytes: Vec<u8>,
}

impl Collect for NoteHead {
    fn push(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        if let Some(start) = usize::try_from(offset).ok().filter(|start| *start < HEAD) {
            self.bytes.resize(start, 0);
            self.bytes.extend_from_slice(bytes.get(..HEAD - start).unwrap_or(bytes));
        }
        Ok(())
    }

    fn next(&self, at: u64) -> Option<u64> {
        (at < HEAD as u64).then_some(at)
    }

    fn finish(self: Box<Self>) -> Result<Option<Found>, Gap> {
        let Some(at) = memmem::find(&self.bytes, NOTE) else { return Ok(None) };
        let content = part(&self.bytes, at + OWNER..).map_err(|error| Gap::new(format!("{}: {error}", self.path)))?;
        let content = content.get(..LONGEST).unwrap_or(content).split(|byte| *byte == 0).next().unwrap_or_default();
        match serde_json::from_slice::<NoteContent>(content) {
            Ok(content) => Ok(Some(Found::Compat(CompatNote { cuda: content.cuda, branches: content.driver }))),
            Err(error) => {
                Err(Gap::new(format!("{}: its note on forward compatibility is damaged: {error}", self.path)))
            }
        }
    }
}

#[derive(Deserialize)]
struct NoteContent {
    #[serde(rename = "CUDA version")]
    cuda: String,
    /// A note for Jetson has no drivers.
    #[serde(default)]
    driver: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(content: &str) -> Result<Option<Found>, Gap> {
        let mut head = Box::new(NoteHead { path: "libcuda.so.575.57.08".to_owned(), bytes: Vec::new() });
        let bytes =
            [&b"\x7fELF....\x13\0\0\0j\0\0\0\0\0\0\0NVIDIA Corporation\0\0"[..], content.as_bytes(), b"\0\0"].concat();
        let (first, second) = bytes.split_at(30);
        head.push(0, first).unwrap();
        head.push(30, second).unwrap();
        head.push(1 << 30, b"far behind").unwrap();
        head.finish()
    }

    #[test]
    fn notes_are_read() {
        let content = r#"{"format":1,"CUDA version":"12.9","driver":[535,550,575],"device":[1,2,7]}"#;
        let expected = CompatNote { cuda: "12.9".to_owned(), branches: vec![535, 550, 575] };
        assert_eq!(note(content), Ok(Some(Found::Compat(expected))));
        let jetson = CompatNote { cuda: "13.2".to_owned(), branches: Vec::new() };
        assert_eq!(note(r#"{"format":1,"CUDA version":"13.2"}"#), Ok(Some(Found::Compat(jetson))));
        assert_eq!(note(r#"{"other":1}"#), Ok(None));
        assert!(note(r#"{"format":1,"CUDA version":"13.2",}"#).unwrap_err().why.contains("is damaged: trailing comma"));
    }
}
