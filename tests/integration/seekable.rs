//! Converts a layer's tar to the formats that support partial reads, following their specifications: eStargz
//! (stargz-snapshotter, `docs/estargz.md`) and zstd:chunked (containers/storage,
//! `docs/containers-storage-zstd-chunked.md`).

use std::collections::BTreeMap;
use std::io::Write as _;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// A layer as stored.
pub(crate) struct Layer {
    pub(crate) blob: Vec<u8>,
    /// Annotations of the descriptor.
    pub(crate) annotations: BTreeMap<String, String>,
    /// Digest of the tar inside.
    pub(crate) diff_id: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    EStargz,
    ZstdChunked,
}

impl Form {
    fn pack(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::EStargz => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            Self::ZstdChunked => zstd::encode_all(bytes, 1).unwrap(),
        }
    }
}

pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

/// Converts a tar, with chunks of at most `chunk` bytes. `edit` changes the table before it is written.
pub(crate) fn convert(tar: &[u8], form: Form, chunk: usize, edit: &dyn Fn(&mut Value)) -> Layer {
    let mut blob = Vec::new();
    let mut entries = Vec::new();
    // The content of the open stream, and of all streams together.
    let (mut open, mut inside) = (Vec::new(), Vec::new());
    let mut seal = |open: &mut Vec<u8>, blob: &mut Vec<u8>| {
        inside.extend_from_slice(open);
        blob.extend(form.pack(&std::mem::take(open)));
        blob.len()
    };
    let mut at = 0;
    for entry in tar::Archive::new(tar).entries().unwrap() {
        let entry = entry.unwrap();
        let (start, size) =
            (usize::try_from(entry.raw_file_position()).unwrap(), usize::try_from(entry.size()).unwrap());
        open.extend_from_slice(&tar[at..start]);
        let header = entry.header();
        let kind = match header.entry_type() {
            tar::EntryType::Directory => "dir",
            tar::EntryType::Symlink => "symlink",
            tar::EntryType::Link => "hardlink",
            tar::EntryType::Char => "char",
            _ => "reg",
        };
        let name = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
        let mut first = json!({"name": name, "type": kind, "mode": header.mode().unwrap(), "uid": 0, "gid": 0});
        if let Some(link) = entry.link_name_bytes() {
            first["linkName"] = String::from_utf8(link.into_owned()).unwrap().into();
        }
        let content = &tar[start..start + size];
        let chunks = content.chunks(chunk).collect::<Vec<_>>();
        if kind == "reg" && size > 0 {
            first["size"] = size.into();
            first["digest"] = digest(content).into();
        }
        entries.push(first);
        for (index, piece) in chunks.iter().enumerate() {
            let offset = seal(&mut open, &mut blob);
            open.extend_from_slice(piece);
            if index > 0 {
                entries.push(json!({"name": name, "type": "chunk", "chunkOffset": index * chunk}));
            }
            let last = entries.last_mut().unwrap();
            last["offset"] = offset.into();
            // eStargz omits the size of the last chunk, zstd:chunked all chunk fields of a single chunk.
            if index + 1 < chunks.len() || (form == Form::ZstdChunked && chunks.len() > 1) {
                last["chunkSize"] = piece.len().into();
            }
            if chunks.len() > 1 || form == Form::EStargz {
                last["chunkDigest"] = digest(piece).into();
            }
        }
        at = start + size;
    }
    let padding = at.next_multiple_of(512) - at;
    let rest = if form == Form::EStargz { &tar[at..at + padding] } else { &tar[at..] };
    open.extend_from_slice(rest);
    seal(&mut open, &mut blob);
    let mut table = json!({"version": 1, "entries": entries});
    edit(&mut table);
    let table = table.to_string().into_bytes();
    let mut annotations = BTreeMap::new();
    match form {
        Form::EStargz => {
            let start = blob.len();
            let mut last = tar::Builder::new(Vec::new());
            let mut header = tar::Header::new_ustar();
            header.set_size(table.len() as u64);
            header.set_mode(0o444);
            last.append_data(&mut header, "stargz.index.json", &*table).unwrap();
            open = last.into_inner().unwrap();
            seal(&mut open, &mut blob);
            blob.extend(footer(start));
            annotations.insert("containerd.io/snapshot/stargz/toc.digest".to_owned(), digest(&table));
        }
        Form::ZstdChunked => {
            let packed = form.pack(&table);
            let position = format!("{}:{}:{}:1", blob.len() + 8, packed.len(), table.len());
            for frame in [&packed[..], &[0; 40]] {
                blob.extend([0x50, 0x2a, 0x4d, 0x18]);
                blob.extend(u32::try_from(frame.len()).unwrap().to_le_bytes());
                blob.extend(frame);
            }
            let name = |key| format!("io.github.containers.zstd-chunked.manifest-{key}");
            annotations.extend([(name("position"), position), (name("checksum"), digest(&packed))]);
        }
    }
    Layer { blob, annotations, diff_id: digest(&inside) }
}

/// An empty gzip member that contains the table's offset.
fn footer(start: usize) -> Vec<u8> {
    let mut footer = vec![0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255, 26, 0, b'S', b'G', 22, 0];
    footer.extend(format!("{start:016x}STARGZ").bytes());
    footer.extend([1, 0, 0, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0]);
    footer
}
