//! Tables of contents: JSON with an entry for each member of the tar and for each further chunk of a file. eStargz and
//! zstd:chunked inherited the format from CRFS. Content that no writer produces is refused: the layer is then read
//! whole.

use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::model::{Digest, Entry, EntryKind, FileOwner, Limits};

use super::listing::{ListedLayer, Listing, shown};

/// One member of the tar.
#[derive(Debug)]
pub(super) struct TableMember {
    pub(super) entry: Entry,
    /// Chunks of a file's content: contiguous, and together complete.
    pub(super) chunks: Vec<TableChunk>,
}

/// A chunk of a file.
#[derive(Debug)]
pub(super) struct TableChunk {
    /// Offset in the file.
    pub(super) offset: u64,
    /// Unpacked size in bytes; never 0.
    pub(super) size: u64,
    /// Range in the blob of its compressed stream, which may hold following chunks too.
    pub(super) stored: Range<u64>,
    /// Number of unpacked bytes before it in that stream.
    pub(super) inner: u64,
    pub(super) seal: Seal,
}

/// Verification of a chunk.
#[derive(Debug)]
pub(super) enum Seal {
    /// Digest of the unpacked bytes.
    Digest(Digest),
    /// Number of the span that stores it, which has a digest.
    Span(usize),
}

/// An entry of the JSON.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    size: u64,
    #[serde(default)]
    link_name: String,
    #[serde(default)]
    mode: u32,
    #[serde(default)]
    uid: u32,
    #[serde(default)]
    gid: u32,
    #[serde(default)]
    dev_major: u32,
    #[serde(default)]
    dev_minor: u32,
    #[serde(default)]
    offset: u64,
    #[serde(default)]
    inner_offset: u64,
    #[serde(default)]
    chunk_offset: u64,
    /// 0 stands for the rest of the file.
    #[serde(default)]
    chunk_size: u64,
    #[serde(default)]
    chunk_digest: String,
    /// Digest of the whole file.
    #[serde(default)]
    digest: String,
}

/// Parses a table, which begins at the byte `start` of the blob. `own` are files in the root that do not belong to the
/// image.
pub(super) fn parse(json: &[u8], start: u64, own: &[&str], limits: &Limits) -> Result<Vec<TableMember>, String> {
    let listing = Listing::new(limits);
    let mut builder = Builder { listing, end: start, members: Vec::new(), open: None, last: (0, 0) };
    let mut json = serde_json::Deserializer::from_slice(json);
    (&mut builder).deserialize(&mut json).and_then(|()| json.end()).map_err(|error| error.to_string())?;
    builder.close()?;
    let mut members = builder.members;
    // A stream ends at the beginning of the next one.
    let mut next = start..start;
    for chunk in members.iter_mut().rev().flat_map(|member| member.chunks.iter_mut().rev()) {
        let end = if chunk.stored.start == next.start { next.end } else { next.start };
        chunk.stored.end = end;
        next = chunk.stored.clone();
    }
    members.retain(|member| !own.iter().any(|name| name.as_bytes() == member.entry.path.as_bytes()));
    Ok(members)
}

/// Assembles members entry by entry, so that only the result takes memory.
struct Builder<'a> {
    listing: Listing<'a>,
    /// Offset of the table in the blob.
    end: u64,
    members: Vec<TableMember>,
    /// The file whose chunks are being read.
    open: Option<Open>,
    /// Offset in the blob of the last chunk's stream, and the end of the chunk in that stream.
    last: (u64, u64),
}

struct Open {
    name: String,
    member: TableMember,
    /// Bytes of the file that its chunks so far cover.
    covered: u64,
    /// Digest of the whole file, as written.
    digest: String,
}

impl Builder<'_> {
    fn add(&mut self, raw: &Raw) -> Result<(), String> {
        if raw.kind == "chunk" {
            let open = self.open.take().filter(|open| open.name == raw.name);
            let mut open =
                open.ok_or_else(|| format!("a chunk of '{}' follows no file", shown(raw.name.as_bytes())))?;
            self.chunk(&mut open, raw)?;
            self.open = Some(open);
            return Ok(());
        }
        self.close()?;
        let entry = self.entry(raw)?;
        let member = TableMember { entry, chunks: Vec::new() };
        if member.entry.kind != EntryKind::File || member.entry.size == 0 {
            self.members.push(member);
        } else {
            let digest = raw.digest.clone();
            let mut open = Open { name: raw.name.clone(), member, covered: 0, digest };
            self.chunk(&mut open, raw)?;
            self.open = Some(open);
        }
        Ok(())
    }

    /// Converts the entry of a member.
    fn entry(&mut self, raw: &Raw) -> Result<Entry, String> {
        // Writers put this in place of bytes that are not UTF-8, so the real name is unknown.
        if raw.name.contains('\u{fffd}') || raw.link_name.contains('\u{fffd}') {
            return Err(format!("the real name of '{}' is unknown", shown(raw.name.as_bytes())));
        }
        self.listing.entry(&ListedLayer {
            name: raw.name.as_bytes(),
            kind: raw.kind.as_bytes(),
            size: raw.size,
            link: raw.link_name.as_bytes(),
            mode: raw.mode,
            owner: FileOwner { user: raw.uid, group: raw.gid },
            device: (raw.dev_major, raw.dev_minor),
        })
    }

    /// Adds a chunk to its file. Writers write forward; a chunk that goes backwards would be read twice.
    fn chunk(&mut self, open: &mut Open, raw: &Raw) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("a chunk of '{}' {what}", shown(raw.name.as_bytes())));
        let left = open.member.entry.size - open.covered;
        let size = if raw.chunk_size == 0 { left } else { raw.chunk_size };
        if raw.chunk_offset != open.covered || size == 0 || size > left {
            return wrong("does not follow the previous one");
        }
        let (last, inner) = self.last;
        let is_behind = raw.offset > last || (raw.offset == last && raw.inner_offset >= inner);
        let Some(end) = raw.inner_offset.checked_add(size).filter(|_| is_behind && raw.offset < self.end) else {
            return wrong("lies at an invalid position in the blob");
        };
        let digest = if raw.chunk_digest.is_empty() { &open.digest } else { &raw.chunk_digest };
        let is_all = size == open.member.entry.size;
        let Some(seal) = digest.parse().ok().map(Seal::Digest).filter(|_| is_all || !raw.chunk_digest.is_empty())
        else {
            return wrong("has no digest");
        };
        self.listing.keep(size_of::<TableChunk>() + digest.len())?;
        self.last = (raw.offset, end);
        let stored = raw.offset..raw.offset;
        open.member.chunks.push(TableChunk { offset: open.covered, size, stored, inner: raw.inner_offset, seal });
        open.covered += size;
        Ok(())
    }

    /// Completes the file whose chunks were being read.
    fn close(&mut self) -> Result<(), String> {
        let Some(open) = self.open.take() else { return Ok(()) };
        if open.covered != open.member.entry.size {
            return Err(format!("the chunks of '{}' do not cover it", shown(open.name.as_bytes())));
        }
        self.members.push(open.member);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for &mut Builder<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

/// The outer object.
impl<'de> Visitor<'de> for &mut Builder<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of contents")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut version = None;
        let mut seen = false;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "version" => version = Some(map.next_value::<u64>()?),
                "entries" if !seen => {
                    seen = true;
                    map.next_value_seed(TableEntries(self))?;
                }
                "entries" => return Err(A::Error::custom("it has two lists of entries")),
                _ => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        match (version, seen) {
            (Some(1), true) => Ok(()),
            (Some(1), false) => Err(A::Error::custom("it has no entries")),
            _ => Err(A::Error::custom("it is not of version 1")),
        }
    }
}

/// The list of entries.
struct TableEntries<'a, 'b>(&'a mut Builder<'b>);

impl<'de> DeserializeSeed<'de> for TableEntries<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for TableEntries<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(raw) = list.next_element::<Raw>()? {
            self.0.add(&raw).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}
