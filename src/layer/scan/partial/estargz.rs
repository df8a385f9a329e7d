//! eStargz (stargz-snapshotter, `docs/estargz.md`): independent gzip members. The footer, an empty member with an
//! offset in its extra field, points to the table, the last file of the tar.

use std::io::BufReader;

use crate::layer::tar::TarReader;
use crate::model::{Digest, Limits, OverLimit};

use super::super::{Compression, ScanError};
use super::pieces::{self, Streams};
use super::{PartialError, Ranged, TableFormat, Toc, stored, table, verify};

/// Annotation with the digest of the unpacked table.
const TOC_DIGEST: &str = "containerd.io/snapshot/stargz/toc.digest";

/// Name of the table in the tar.
const TOC: &str = "stargz.index.json";

/// Files in the root that belong to the format and not to the image.
pub(super) const OWN: &[&str] = &[TOC, ".prefetch.landmark", ".no.prefetch.landmark"];

const FOOTER: u64 = 51;

pub(super) const FORMAT: TableFormat = TableFormat {
    name: "eStargz",
    compression: Compression::Gzip,
    promised: |blob| blob.annotations.contains_key(TOC_DIGEST),
    table,
};

fn table<'a>(blob: &Ranged<'a>, limits: &Limits) -> Result<Toc<'a>, PartialError> {
    let unusable = |what: &str| PartialError::Unusable(what.to_owned());
    let digest: Option<Digest> = blob.annotations.get(TOC_DIGEST).and_then(|text| text.parse().ok());
    let digest = digest.ok_or_else(|| unusable("the annotation of its descriptor is not a digest"))?;
    let end = blob.size.checked_sub(FOOTER).ok_or_else(|| unusable("the blob is too small for its footer"))?;
    let footer = stored::bytes(blob, end..blob.size)?;
    let start = offset(&footer).filter(|start| *start < end);
    let start = start.ok_or_else(|| unusable("the blob does not end in an eStargz footer"))?;
    if end - start > limits.toc {
        let what = format!("it has {} bytes", end - start);
        return Err(PartialError::Unusable(OverLimit::new(what, "toc", limits.toc).to_string()));
    }
    let packed = stored::bytes(blob, start..end)?;
    let json = unpack(&packed, start, limits)?;
    verify(&format!("the table of contents at byte {start} of the blob"), &json, &digest)?;
    let members = table::parse(&json, start, OWN, limits).map_err(PartialError::Unusable)?;
    Ok(Toc { members, end: start, read: blob.size - start, streams: Streams::Own(Compression::Gzip) })
}

/// Parses the offset in a footer.
fn offset(footer: &[u8]) -> Option<u64> {
    let digits = footer.get(16..32)?;
    let is_footer = footer.starts_with(&[0x1f, 0x8b, 8, 4])
        && footer.get(10..16)? == [26, 0, b'S', b'G', 22, 0]
        && footer.get(32..38)? == b"STARGZ";
    let digits = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u64::from_str_radix(digits, 16).ok().filter(|_| is_footer)
}

/// Reads the table from its tar.
fn unpack(packed: &[u8], start: u64, limits: &Limits) -> Result<Vec<u8>, PartialError> {
    let damaged = |error: &dyn std::fmt::Display| {
        let what = format!("the table of contents at byte {start} of the blob is damaged: {error}");
        PartialError::Fatal(ScanError::Piece(what))
    };
    let tar = pieces::unpacked(packed, Compression::Gzip, limits).map_err(|error| damaged(&error))?;
    let mut tar = TarReader::new(BufReader::new(tar), limits);
    let entry = tar.next_member().map_err(|error| damaged(&error))?;
    let Some(entry) = entry.filter(|entry| entry.path.as_bytes() == TOC.as_bytes()) else {
        return Err(PartialError::Unusable(format!("the footer points to a file other than {TOC}")));
    };
    if entry.size > limits.toc {
        let what = format!("it has {} bytes", entry.size);
        return Err(PartialError::Unusable(OverLimit::new(what, "toc", limits.toc).to_string()));
    }
    let mut json = Vec::new();
    while let Some(chunk) = tar.chunk().map_err(|error| damaged(&error))? {
        json.extend_from_slice(chunk.bytes);
    }
    Ok(json)
}
