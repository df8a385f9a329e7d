//! zstd:chunked (containers/storage, `docs/containers-storage-zstd-chunked.md` and `pkg/chunked`): independent zstd
//! frames. A skippable frame at the end holds the table, and annotations have its position.

use std::io::Read as _;

use crate::model::{Digest, Limits, OverLimit};

use super::super::Compression;
use super::pieces::{self, Streams};
use super::{Annotations, PartialError, Ranged, TableFormat, Toc, stored, table, verify};

/// Prefix of the annotations: the current one, and that before containers/storage 1.44.
const PREFIXES: [&str; 2] = ["io.github.containers.zstd-chunked", "io.containers.zstd-chunked"];

/// The only type of table.
const CRFS: u64 = 1;

/// Size of a skippable frame's header, in bytes (RFC 8878, section 3.1.2).
const FRAME_HEADER: u64 = 8;

pub(super) const FORMAT: TableFormat = TableFormat {
    name: "zstd:chunked",
    compression: Compression::Zstd,
    promised: |blob| promise(blob.annotations).is_some(),
    table,
};

/// The annotations with the table's position and digest.
fn promise(annotations: &Annotations) -> Option<(&str, &str)> {
    PREFIXES.iter().find_map(|prefix| {
        let get = |name| annotations.get(&format!("{prefix}.{name}")).map(String::as_str);
        Some((get("manifest-position")?, get("manifest-checksum")?))
    })
}

fn table<'a>(blob: &Ranged<'a>, limits: &Limits) -> Result<Toc<'a>, PartialError> {
    let unusable = |what: &str| PartialError::Unusable(what.to_owned());
    let (position, digest) = promise(blob.annotations).unwrap_or_default();
    let digest: Digest = digest.parse().map_err(|error| PartialError::Unusable(format!("{error}")))?;
    let numbers: Option<Vec<u64>> = position.split(':').map(|number| number.parse().ok()).collect();
    let Some([offset, packed, unpacked, CRFS]) = numbers.as_deref() else {
        return Err(unusable("the position in the annotations of its descriptor is not supported"));
    };
    if (*packed).max(*unpacked) > limits.toc {
        let what = format!("it has {unpacked} bytes");
        return Err(PartialError::Unusable(OverLimit::new(what, "toc", limits.toc).to_string()));
    }
    let end = offset.checked_add(*packed).filter(|end| *end <= blob.size && *offset >= FRAME_HEADER);
    let end =
        end.ok_or_else(|| unusable("the position in the annotations of its descriptor is outside of the blob"))?;
    let bytes = stored::bytes(blob, *offset..end)?;
    verify(&format!("the table of contents at byte {offset} of the blob"), &bytes, &digest)?;
    let json = unpack(&bytes, *unpacked, limits)
        .map_err(|error| PartialError::Unusable(format!("it cannot be unpacked ({error})")))?;
    let start = offset - FRAME_HEADER;
    let members = table::parse(&json, start, &[], limits).map_err(PartialError::Unusable)?;
    Ok(Toc { members, end: start, read: *packed, streams: Streams::Own(Compression::Zstd) })
}

fn unpack(bytes: &[u8], size: u64, limits: &Limits) -> std::io::Result<Vec<u8>> {
    let unpacked = pieces::unpacked(bytes, Compression::Zstd, limits)?;
    // The caller has compared the size with its limit. A list that grows as it fills would take up to three times as much.
    let mut json = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    std::io::copy(&mut unpacked.take(size.saturating_add(1)), &mut json)?;
    if json.len() as u64 == size { Ok(json) } else { Err(std::io::Error::other("its size is not as announced")) }
}
