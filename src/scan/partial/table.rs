//! Tables of contents: JSON with an entry for each member of the tar and each further chunk of a file. Both forms have it
//! from CRFS. What a writer never writes is refused: the layer is then read whole.

use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::model::{Digest, Entry, ImagePath, Kind, Limits, OverLimit};

use super::Toc;

/// One member of the tar.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) entry: Entry,
    /// The content of a file: each begins where the one before ends, and together they are all of it.
    pub(super) chunks: Vec<Chunk>,
}

/// A piece of a file.
#[derive(Debug)]
pub(super) struct Chunk {
    /// Offset in the file.
    pub(super) offset: u64,
    /// Bytes, unpacked; never none.
    pub(super) size: u64,
    /// The compressed stream that it lies in, in the blob. What follows on it in the stream may lie there too.
    pub(super) stored: Range<u64>,
    /// Unpacked bytes of that stream before it.
    pub(super) inner: u64,
    pub(super) digest: Digest,
}

/// An entry as it is written.
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
    dev_major: u32,
    #[serde(default)]
    dev_minor: u32,
    #[serde(default)]
    offset: u64,
    #[serde(default)]
    inner_offset: u64,
    #[serde(default)]
    chunk_offset: u64,
    /// 0: all that is left of the file.
    #[serde(default)]
    chunk_size: u64,
    #[serde(default)]
    chunk_digest: String,
    /// Of the whole file.
    #[serde(default)]
    digest: String,
}

/// Reads a table. `own` are files in the root that are no files of the image.
pub(super) fn parse(toc: &Toc, own: &[&str], limits: &Limits) -> Result<Vec<Member>, String> {
    let mut builder = Builder { limits, end: toc.start, members: Vec::new(), open: None, total: 0, last: (0, 0) };
    let mut json = serde_json::Deserializer::from_slice(&toc.json);
    (&mut builder).deserialize(&mut json).and_then(|()| json.end()).map_err(|error| error.to_string())?;
    builder.close()?;
    let mut members = builder.members;
    // A stream ends where the next one begins.
    let mut next = toc.start..toc.start;
    for chunk in members.iter_mut().rev().flat_map(|member| member.chunks.iter_mut().rev()) {
        let end = if chunk.stored.start == next.start { next.end } else { next.start };
        chunk.stored.end = end;
        next = chunk.stored.clone();
    }
    members.retain(|member| !own.iter().any(|name| name.as_bytes() == member.entry.path.as_bytes()));
    Ok(members)
}

/// Puts members together, entry by entry, so that nothing large stays but what is returned.
struct Builder<'a> {
    limits: &'a Limits,
    /// Where the table begins in the blob.
    end: u64,
    members: Vec<Member>,
    /// The file whose chunks are coming.
    open: Option<Open>,
    /// Bytes of all files.
    total: u64,
    /// Where the last chunk's stream begins in the blob, and where the chunk ends in that stream.
    last: (u64, u64),
}

struct Open {
    name: String,
    member: Member,
    /// Bytes of the file that its chunks so far are.
    covered: u64,
    /// Of the whole file, as it is written.
    digest: String,
}

impl Builder<'_> {
    fn add(&mut self, raw: &Raw) -> Result<(), String> {
        if raw.kind == "chunk" {
            let open = self.open.take().filter(|open| open.name == raw.name);
            let mut open = open.ok_or_else(|| format!("a chunk of '{}' follows no file", shown(&raw.name)))?;
            self.chunk(&mut open, raw)?;
            self.open = Some(open);
            return Ok(());
        }
        self.close()?;
        let entry = self.entry(raw)?;
        let member = Member { entry, chunks: Vec::new() };
        if member.entry.kind != Kind::File || member.entry.size == 0 {
            self.members.push(member);
        } else {
            let digest = raw.digest.clone();
            let mut open = Open { name: raw.name.clone(), member, covered: 0, digest };
            self.chunk(&mut open, raw)?;
            self.open = Some(open);
        }
        Ok(())
    }

    /// An entry with the bounds that the tar's would have.
    fn entry(&mut self, raw: &Raw) -> Result<Entry, String> {
        let limits = self.limits;
        if self.members.len() as u64 >= limits.entries {
            return Err(OverLimit::new(
                format!("it has more than {} entries", limits.entries),
                "entries",
                limits.entries,
            )
            .to_string());
        }
        let longest = raw.name.len().max(raw.link_name.len());
        if longest > limits.path {
            return Err(
                OverLimit::new(format!("it has a path of {longest} bytes"), "path", limits.path as u64).to_string()
            );
        }
        // Writers put this in place of bytes that are no UTF-8: what the name was is not known.
        if raw.name.contains('\u{fffd}') || raw.link_name.contains('\u{fffd}') {
            return Err(format!("'{}' is not spelled as in the tar", shown(&raw.name)));
        }
        let link = || Some(&raw.link_name).filter(|link| !link.is_empty()).ok_or("it has a link without a target");
        let kind = match raw.kind.as_str() {
            "dir" => Kind::Directory,
            "reg" if raw.name.ends_with('/') => Kind::Directory,
            "reg" => Kind::File,
            "symlink" => Kind::Symlink(link()?.as_bytes().into()),
            "hardlink" => Kind::Hardlink(ImagePath::normalise(link()?.as_bytes())),
            "char" => Kind::CharDevice(raw.dev_major, raw.dev_minor),
            "block" => Kind::BlockDevice(raw.dev_major, raw.dev_minor),
            "fifo" => Kind::Fifo,
            other => return Err(format!("'{}' is of the unknown type '{}'", shown(&raw.name), shown(other))),
        };
        let size = if kind == Kind::File { raw.size } else { 0 };
        self.total = self.total.saturating_add(size);
        if self.total > limits.unpacked {
            return Err(
                OverLimit::new(format!("its files have {} bytes", self.total), "unpacked", limits.unpacked).to_string()
            );
        }
        Ok(Entry { path: ImagePath::normalise(raw.name.as_bytes()), kind, mode: raw.mode & 0o7777, size })
    }

    /// Adds a chunk to its file. Writers write forward: what goes back would be read twice.
    fn chunk(&mut self, open: &mut Open, raw: &Raw) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("a chunk of '{}' {what}", shown(&raw.name)));
        let left = open.member.entry.size - open.covered;
        let size = if raw.chunk_size == 0 { left } else { raw.chunk_size };
        if raw.chunk_offset != open.covered || size == 0 || size > left {
            return wrong("does not follow on the one before");
        }
        let (last, inner) = self.last;
        let is_behind = raw.offset > last || (raw.offset == last && raw.inner_offset >= inner);
        let Some(end) = raw.inner_offset.checked_add(size).filter(|_| is_behind && raw.offset < self.end) else {
            return wrong("lies where none can be in the blob");
        };
        let digest = if raw.chunk_digest.is_empty() { &open.digest } else { &raw.chunk_digest };
        let is_all = size == open.member.entry.size;
        let Some(digest) = digest.parse().ok().filter(|_| is_all || !raw.chunk_digest.is_empty()) else {
            return wrong("has no digest");
        };
        self.last = (raw.offset, end);
        let stored = raw.offset..raw.offset;
        open.member.chunks.push(Chunk { offset: open.covered, size, stored, inner: raw.inner_offset, digest });
        open.covered += size;
        Ok(())
    }

    /// Ends the file whose chunks were coming.
    fn close(&mut self) -> Result<(), String> {
        let Some(open) = self.open.take() else { return Ok(()) };
        if open.covered != open.member.entry.size {
            return Err(format!("the chunks of '{}' are not all of it", shown(&open.name)));
        }
        self.members.push(open.member);
        Ok(())
    }
}

/// A name, for messages.
fn shown(name: &str) -> String {
    const LONGEST: usize = 200;
    crate::model::printable(&name.chars().take(LONGEST).collect::<String>()).into_owned()
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
                    map.next_value_seed(Entries(self))?;
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

/// The list in it.
struct Entries<'a, 'b>(&'a mut Builder<'b>);

impl<'de> DeserializeSeed<'de> for Entries<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_, '_> {
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
