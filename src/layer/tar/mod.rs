//! Forward reader of tar streams with limits: ustar, PAX and GNU dialects (POSIX.1-2017 pax; GNU tar manual, "Standard
//! Format" and "Storing Sparse Files"). Reads layers and the archives that hold images.

mod input;
mod pax;
mod sparse;

use std::io;

use tar::{EntryType, Header};

use crate::model::{BoundsError, Entry, EntryKind, ImagePath, Limits, OverLimit, part, part_mut};

use pax::Records;
use sparse::{Extent, MapError};

pub use input::TarInput;

const BLOCK: usize = 512;

/// Maximum size of a chunk of a member, in bytes: small enough that it stays in the processor's cache for all its
/// readers.
const CHUNK: usize = 256 << 10;

/// An error in a tar stream, with its position. `E` is the error of the input.
#[derive(Debug, thiserror::Error)]
#[error("at byte {offset} of the tar stream{}: {what}", member.as_ref().map(|m| format!(" (member {m})")).unwrap_or_default())]
#[non_exhaustive]
pub struct TarError<E = io::Error> {
    /// Offset in the unpacked stream.
    pub offset: u64,
    /// The member being read, if its name is known.
    pub member: Option<ImagePath>,
    /// The kind of error.
    #[source]
    pub what: TarErrorKind<E>,
}

/// Kinds of errors in a tar stream.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TarErrorKind<E = io::Error> {
    /// The input failed. This is its own error, unchanged.
    #[error("{0}")]
    Read(E),
    /// The bytes are not a valid tar.
    #[error("{0}")]
    Malformed(String),
    /// A limit of [`Limits`] was exceeded.
    #[error("{0}")]
    Limit(OverLimit),
}

impl<E> From<MapError> for TarErrorKind<E> {
    fn from(error: MapError) -> Self {
        match error {
            MapError::Malformed(what) => Self::Malformed(what),
            MapError::Limit(over) => Self::Limit(over),
        }
    }
}

impl<E> From<BoundsError> for TarErrorKind<E> {
    fn from(error: BoundsError) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// Reads the members of a tar stream in order.
#[derive(Debug)]
pub struct TarReader<'l, R> {
    input: R,
    limits: &'l Limits,
    /// Bytes at the front of the input's buffer that were handed out. The next read consumes them.
    handed_out: usize,
    /// Offset in the stream behind these bytes.
    offset: u64,
    entries: u64,
    global: Records,
    current: Option<MemberBody>,
}

/// The rest of the current member.
#[derive(Debug)]
struct MemberBody {
    path: ImagePath,
    /// Stored bytes left to read, without padding.
    stored: u64,
    padding: u64,
    /// Extents left of a sparse file; empty otherwise.
    extents: std::collections::VecDeque<Extent>,
    sparse: bool,
    /// Offset in the file, holes included.
    position: u64,
}

/// A chunk of a member's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TarChunk<'a> {
    /// Offset in the file.
    pub offset: u64,
    /// The bytes. Holes of sparse files are left out, so offsets skip them.
    pub bytes: &'a [u8],
}

impl<'l, R: TarInput> TarReader<'l, R> {
    /// Reads `input`, which starts with a header block. Chunks are slices of its buffer, without a copy.
    pub fn new(input: R, limits: &'l Limits) -> Self {
        Self { input, limits, handed_out: 0, offset: 0, entries: 0, global: Records::default(), current: None }
    }

    /// Returns the next member, or `None` at the end of the archive. Skips the rest of the current one. The archive
    /// ends with a block of zeros or with the stream.
    pub fn next_member(&mut self) -> Result<Option<Entry>, TarError<R::Error>> {
        self.skip_body()?;
        let mut local = Records::default();
        let mut extended = 0;
        loop {
            let at = self.offset;
            let Some(header) = self.header()? else {
                return Ok(None);
            };
            let size =
                header.entry_size().map_err(|error| self.fault(at, malformed(format!("size field: {error}"))))?;
            let kind = header.entry_type();
            if !matches!(
                kind,
                EntryType::XHeader | EntryType::XGlobalHeader | EntryType::GNULongName | EntryType::GNULongLink
            ) {
                local.inherit(&self.global);
                return self.member(&header, &local, at).map(Some);
            }
            extended = size.saturating_add(extended);
            if extended > self.limits.extended_header {
                let limit = self.limits.extended_header;
                return Err(
                    self.fault(at, over(format!("extended headers of {extended} bytes"), "extended_header", limit))
                );
            }
            let data = self.take(size)?;
            let taken = match kind {
                EntryType::XHeader => local.add_pax(&data),
                EntryType::XGlobalHeader => self.global.add_pax(&data),
                EntryType::GNULongName => local.set_long_name(&data),
                _ => local.set_long_link(&data),
            };
            taken.map_err(|what| self.fault(at, malformed(what)))?;
        }
    }

    /// Returns the next chunk of the current member, or `None` at its end.
    pub fn chunk(&mut self) -> Result<Option<TarChunk<'_>>, TarError<R::Error>> {
        let Some(body) = &mut self.current else {
            return Ok(None);
        };
        let mut want = body.stored;
        if body.sparse {
            while body.extents.front().is_some_and(|extent| extent.length == 0) {
                body.extents.pop_front();
            }
            let Some(extent) = body.extents.front_mut() else {
                return Ok(None);
            };
            body.position = extent.offset;
            want = extent.length.min(body.stored);
        }
        if want == 0 {
            return Ok(None);
        }
        let have = self.fill()?;
        if have == 0 {
            let left = self.current.as_ref().map_or(0, |body| body.stored);
            return Err(self
                .fault(self.offset, malformed(format!("the stream ends {left} bytes before the end of the member"))));
        }
        let Some(body) = &mut self.current else {
            return Ok(None);
        };
        let count = usize::try_from(want).unwrap_or(usize::MAX).min(have).min(CHUNK);
        let offset = body.position;
        body.stored -= count as u64;
        body.position += count as u64;
        if let Some(extent) = body.extents.front_mut() {
            extent.offset += count as u64;
            extent.length -= count as u64;
        }
        Ok(Some(TarChunk { offset, bytes: self.hand_out(count)? }))
    }

    /// Reads the bytes after the end marker, so that a reader below can verify the whole blob.
    pub fn drain(mut self) -> Result<u64, TarError<R::Error>> {
        self.skip_body()?;
        loop {
            let count = self.fill()?;
            if count == 0 {
                return Ok(self.offset);
            }
            self.hand_out(count)?;
        }
    }

    /// Position in the stream, in bytes.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads and checks a header block; `None` at the end of the archive.
    fn header(&mut self) -> Result<Option<Header>, TarError<R::Error>> {
        let at = self.offset;
        let Some(block) = self.block()? else {
            return Ok(None);
        };
        if block.iter().all(|&b| b == 0) {
            return Ok(None);
        }
        let header = Header::from_byte_slice(&block).clone();
        // The checksum counts its own field as spaces. Old tars summed signed bytes; readers accept both.
        let sum = |byte: fn(u8) -> i64| -> i64 {
            block.iter().enumerate().map(|(index, &b)| if (148..156).contains(&index) { 32 } else { byte(b) }).sum()
        };
        let stored = header.cksum().ok().map(i64::from);
        if stored != Some(sum(i64::from)) && stored != Some(sum(|b| i64::from(b.cast_signed()))) {
            return Err(self.fault(at, malformed("wrong header checksum: this is not a tar, or it is damaged".into())));
        }
        Ok(Some(header))
    }

    /// Reads 512 bytes; `None` at the end of the stream.
    fn block(&mut self) -> Result<Option<[u8; BLOCK]>, TarError<R::Error>> {
        let mut block = [0; BLOCK];
        let mut have = 0;
        while have < BLOCK {
            let count = self.fill()?.min(BLOCK - have);
            if count == 0 {
                if have == 0 {
                    return Ok(None);
                }
                let what = format!("the stream ends in the middle of a header block ({have} of {BLOCK} bytes)");
                return Err(self.fault(self.offset, malformed(what)));
            }
            part_mut(&mut block, have..have + count)
                .map_err(|error| self.fault(self.offset, error.into()))?
                .copy_from_slice(self.hand_out(count)?);
            have += count;
        }
        Ok(Some(block))
    }

    /// Reads the content of an extended header and its padding. The caller has checked its size.
    fn take(&mut self, size: u64) -> Result<Vec<u8>, TarError<R::Error>> {
        self.current = Some(MemberBody::plain(ImagePath::root(), size));
        let mut data = Vec::new();
        while let Some(chunk) = self.chunk()? {
            data.extend_from_slice(chunk.bytes);
        }
        self.skip_body()?;
        Ok(data)
    }

    /// Builds a member from its header and the extended headers before it.
    fn member(&mut self, header: &Header, records: &Records, at: u64) -> Result<Entry, TarError<R::Error>> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            let limit = self.limits.entries;
            return Err(self.fault(at, over(format!("{} entries", self.entries), "entries", limit)));
        }
        let numbers = |what: &str, error: &io::Error| malformed(format!("{what} field: {error}"));
        let raw = records.name().map_or_else(|| header.path_bytes().into_owned(), <[u8]>::to_vec);
        let link =
            records.link().map(<[u8]>::to_vec).or_else(|| header.link_name_bytes().map(std::borrow::Cow::into_owned));
        let longest = raw.len().max(link.as_ref().map_or(0, Vec::len));
        if longest > self.limits.path {
            let limit = self.limits.path as u64;
            return Err(self.fault(at, over(format!("a path of {longest} bytes"), "path", limit)));
        }
        let path = ImagePath::normalise(&raw);
        let fault = |what| TarError { offset: at, member: Some(path.clone()), what };
        let link =
            || link.clone().filter(|l| !l.is_empty()).ok_or_else(|| fault(malformed("a link without a target".into())));

        let stored = match records.number("size").map_err(|what| fault(malformed(what)))? {
            Some(size) => size,
            None => header.entry_size().map_err(|error| fault(numbers("size", &error)))?,
        };
        let device = || -> Result<(u32, u32), TarError<R::Error>> {
            let major = header.device_major().map_err(|error| fault(numbers("device major", &error)))?;
            let minor = header.device_minor().map_err(|error| fault(numbers("device minor", &error)))?;
            Ok((major.unwrap_or_default(), minor.unwrap_or_default()))
        };
        // Archives older than ustar mark a directory with a slash at the end of a regular file's name.
        let old_directory = raw.ends_with(b"/");
        let kind = match header.entry_type() {
            EntryType::Regular if old_directory => EntryKind::Directory,
            EntryType::Directory => EntryKind::Directory,
            EntryType::Symlink => EntryKind::Symlink(link()?.into()),
            EntryType::Link => EntryKind::Hardlink(ImagePath::normalise(&link()?)),
            EntryType::Char => device().map(|(major, minor)| EntryKind::CharDevice(major, minor))?,
            EntryType::Block => device().map(|(major, minor)| EntryKind::BlockDevice(major, minor))?,
            EntryType::Fifo => EntryKind::Fifo,
            // POSIX: readers treat an unknown type as a regular file. Contiguous files are regular too.
            _ => EntryKind::File,
        };
        // Links, directories and devices have no content, whatever their size field says (POSIX.1-2017, ustar). Some
        // archivers do store a hard link's content behind it; the reader skips it.
        let stored = match kind {
            EntryKind::File | EntryKind::Hardlink(_) => stored,
            _ => 0,
        };
        let mode = header.mode().map_err(|error| fault(numbers("mode", &error)))? & 0o7777;
        self.current = Some(MemberBody::plain(path.clone(), stored));
        let mut entry = Entry { path, kind, mode, size: 0 };
        if entry.kind == EntryKind::File {
            entry.size = self.sparse_size(header, records, &mut entry.path, at)?.unwrap_or(stored);
        }
        Ok(entry)
    }

    /// Sets up the extents of a sparse file and returns its real size; `None` for any other file. Some formats also
    /// replace the name.
    fn sparse_size(
        &mut self,
        header: &Header,
        records: &Records,
        path: &mut ImagePath,
        at: u64,
    ) -> Result<Option<u64>, TarError<R::Error>> {
        let limit = self.limits.sparse_extents;
        let member = path.clone();
        let fault = |what: MapError| TarError { offset: at, member: Some(member.clone()), what: what.into() };
        let (map, size) = if header.entry_type() == EntryType::GNUSparse {
            let mut map = sparse::Map::new(limit);
            let mut more = sparse::read_gnu_header(header, &mut map).map_err(fault)?;
            let size = sparse::gnu_real_size(header).map_err(fault)?;
            // Extension blocks lie between header and data, and do not count in the size.
            while more {
                let Some(block) = self.block()? else {
                    return Err(fault(MapError::malformed("the sparse map is cut off")));
                };
                more = sparse::read_gnu_extension(&block, &mut map).map_err(fault)?;
            }
            (map, size)
        } else if records.sparse_version() == Some((1, 0)) {
            // The map precedes the data, in blocks of its own.
            let mut parser = sparse::TextMap::new(limit);
            loop {
                if self.current.as_ref().is_none_or(|body| body.stored < BLOCK as u64) {
                    return Err(fault(MapError::malformed("the sparse map is cut off")));
                }
                let Some(block) = self.block()? else {
                    return Err(fault(MapError::malformed("the sparse map is cut off")));
                };
                if let Some(body) = &mut self.current {
                    body.stored -= BLOCK as u64;
                }
                if parser.feed(&block).map_err(fault)? {
                    break;
                }
            }
            let size = records.sparse_real_size().map_err(|what| fault(MapError::malformed(what)))?;
            (parser.finish(), size)
        } else if let Some(map) = records.sparse_map(limit).map_err(fault)? {
            let size = records.sparse_real_size().map_err(|what| fault(MapError::malformed(what)))?;
            (map, size)
        } else {
            return Ok(None);
        };
        if let Some(name) = records.sparse_name() {
            *path = ImagePath::normalise(name);
        }
        let stored = self.current.as_ref().map_or(0, |body| body.stored);
        let extents = map.finish(size, stored).map_err(fault)?;
        if let Some(body) = &mut self.current {
            body.path = path.clone();
            body.extents = extents;
            body.sparse = true;
        }
        Ok(Some(size))
    }

    /// Skips the rest of the current member, and its padding.
    fn skip_body(&mut self) -> Result<(), TarError<R::Error>> {
        let Some(body) = &self.current else {
            return Ok(());
        };
        let mut left = body.stored.saturating_add(body.padding);
        let padding = body.padding;
        while left > 0 {
            let have = self.fill()?;
            if have == 0 {
                // The padding of the last member may be missing; its content may not.
                if left <= padding {
                    break;
                }
                let what = format!("the stream ends {} bytes before the end of the member", left - padding);
                return Err(self.fault(self.offset, malformed(what)));
            }
            let count = usize::try_from(left).unwrap_or(usize::MAX).min(have);
            self.hand_out(count)?;
            left -= count as u64;
        }
        self.current = None;
        Ok(())
    }

    /// Fills the buffer and returns its size; 0 at the end of the stream. Consumes the bytes handed out before.
    fn fill(&mut self) -> Result<usize, TarError<R::Error>> {
        self.input.advance(std::mem::take(&mut self.handed_out));
        let filled = self.input.fill().map(<[u8]>::len);
        filled.map_err(|error| self.fault(self.offset, TarErrorKind::Read(error)))
    }

    /// Hands out the first `count` buffered bytes.
    fn hand_out(&mut self, count: usize) -> Result<&[u8], TarError<R::Error>> {
        let offset = self.offset;
        self.handed_out = count;
        self.offset += count as u64;
        let fault = |what| TarError { offset, member: None, what };
        let bytes = self.input.fill().map_err(|error| fault(TarErrorKind::Read(error)))?;
        part(bytes, ..count).map_err(|error| fault(error.into()))
    }

    fn fault(&self, offset: u64, what: TarErrorKind<R::Error>) -> TarError<R::Error> {
        let member = self.current.as_ref().map(|body| body.path.clone()).filter(|path| !path.is_root());
        TarError { offset, member, what }
    }
}

impl MemberBody {
    fn plain(path: ImagePath, stored: u64) -> Self {
        let padding = (BLOCK as u64 - stored % BLOCK as u64) % BLOCK as u64;
        Self { path, stored, padding, extents: [].into(), sparse: false, position: 0 }
    }
}

fn malformed<E>(what: String) -> TarErrorKind<E> {
    TarErrorKind::Malformed(what)
}

fn over<E>(what: String, limit: &'static str, value: u64) -> TarErrorKind<E> {
    TarErrorKind::Limit(OverLimit::new(what, limit, value))
}

#[cfg(test)]
mod tests;
