//! Forward reader of tar streams with limits: ustar, PAX and GNU dialects (POSIX.1-2017 pax; GNU tar manual, "Standard
//! Format" and "Storing Sparse Files"). Reads layers and the archives that hold images.
//!
//! Where readers differ, this one reads as Go's `archive/tar`, with which Docker, containerd, Podman and umoci unpack
//! layers. It refuses what that reader refuses, and members that none of these engines unpacks.

mod header;
mod input;
mod paths;
mod pax;
mod sparse;

use std::io;

use model::{BoundsError, Entry, EntryKind, FileOwner, ImagePath, Limits, OverLimit, part, part_mut};

use header::{HeaderBlock, HeaderFields, is_header_only};
use pax::{PaxSparse, Records};
use sparse::{Extent, MapError};

pub use input::TarInput;
pub use paths::LayerPaths;

const BLOCK: usize = 512;

/// Longest name in a directory, in bytes (Linux, `NAME_MAX`).
const LONGEST_NAME: usize = 255;

/// Maximum size of a chunk of a member, in bytes: small enough that it stays in the processor's cache for all its
/// readers.
const CHUNK: usize = 256 << 10;

/// An error in a tar stream, with its position. `E` is the error of the input.
#[derive(Debug, thiserror::Error)]
#[error("at byte {offset} of the tar stream{}: {what}", member.as_ref().map(|m| format!(" (member {m})")).unwrap_or_default())]
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
    paths: LayerPaths,
    current: Option<MemberBody>,
    hides_lower: bool,
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
        Self {
            input,
            limits,
            handed_out: 0,
            offset: 0,
            entries: 0,
            paths: LayerPaths::default(),
            current: None,
            hides_lower: false,
        }
    }

    /// Returns the next member, or `None` at the end of the archive. Skips the rest of the current one. The archive
    /// ends with two blocks of zeros or with the stream.
    pub fn next_member(&mut self) -> Result<Option<Entry>, TarError<R::Error>> {
        self.skip_body()?;
        let mut local = Records::default();
        let mut extended = 0;
        loop {
            let at = self.offset;
            let Some(header) = self.header()? else {
                return Ok(None);
            };
            let fields = header.fields().map_err(|what| self.fault(at, malformed(what)))?;
            let is_extended = matches!(fields.flag, b'x' | b'g' | b'L' | b'K');
            if !is_extended {
                return self.member(&fields, &local, at).map(Some);
            }
            let size = self.size(fields.size, at)?;
            extended = size.saturating_add(extended);
            if extended > self.limits.extended_header {
                let limit = self.limits.extended_header;
                return Err(
                    self.fault(at, over(format!("extended headers of {extended} bytes"), "extended_header", limit))
                );
            }
            let data = self.take(size)?;
            match fields.flag {
                b'x' => local.set_pax(&data).map_err(|what| self.fault(at, malformed(what)))?,
                b'L' => local.set_long_name(&data),
                b'K' => local.set_long_link(&data),
                _ => {
                    self.global(&data, at)?;
                    // Go returns a global header as a member of its own, so what precedes it counts for it alone.
                    (local, extended) = (Records::default(), 0);
                }
            }
        }
    }

    /// Checks a PAX global header. Its records apply to no member: Go leaves that to its users, and no engine does it.
    fn global(&mut self, data: &[u8], at: u64) -> Result<(), TarError<R::Error>> {
        // Engines take it for a member, so it counts as one.
        self.count_entry(at)?;
        let mut records = Records::default();
        records.set_pax(data).map_err(|what| self.fault(at, malformed(what)))?;
        self.check_path(records.get("path").map_or(0, <[u8]>::len), at)
    }

    fn count_entry(&mut self, at: u64) -> Result<(), TarError<R::Error>> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            let limit = self.limits.entries;
            return Err(self.fault(at, over(format!("{} entries", self.entries), "entries", limit)));
        }
        Ok(())
    }

    fn size(&self, size: i64, at: u64) -> Result<u64, TarError<R::Error>> {
        u64::try_from(size).map_err(|_negative| self.fault(at, malformed(format!("size field: {size} is negative"))))
    }

    fn check_path(&self, length: usize, at: u64) -> Result<(), TarError<R::Error>> {
        let limit = self.limits.path;
        if length > limit {
            return Err(self.fault(at, over(format!("a path of {length} bytes"), "path", limit as u64)));
        }
        Ok(())
    }

    /// Returns true if an attribute of the current member, a directory, hides what lower layers have there.
    pub const fn hides_lower(&self) -> bool {
        self.hides_lower
    }

    /// Returns the next chunk of the current member, or `None` at its end.
    pub fn chunk(&mut self) -> Result<Option<TarChunk<'_>>, TarError<R::Error>> {
        let Some(body) = &mut self.current else {
            return Ok(None);
        };
        let left = body.stored;
        let mut want = left;
        if body.sparse {
            while body.extents.front().is_some_and(|extent| extent.length == 0) {
                body.extents.pop_front();
            }
            let Some(extent) = body.extents.front_mut() else {
                return Ok(None);
            };
            body.position = extent.offset;
            want = extent.length.min(left);
        }
        if want == 0 {
            return Ok(None);
        }
        let have = self.fill()?;
        if have == 0 {
            let what = format!("the stream ends {left} bytes before the end of the member");
            return Err(self.fault(self.offset, malformed(what)));
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
    fn header(&mut self) -> Result<Option<HeaderBlock>, TarError<R::Error>> {
        let at = self.offset;
        let Some(block) = self.block()? else {
            return Ok(None);
        };
        if is_zero(&block) {
            // Go takes one block of zeros for the end only if the stream ends there too.
            return match self.block()? {
                Some(second) if !is_zero(&second) => {
                    Err(self.fault(at, malformed("one block of zeros is followed by more".to_owned())))
                }
                _ => Ok(None),
            };
        }
        let header = HeaderBlock::new(&block);
        let wrong = || malformed("wrong header checksum: this is not a tar, or it is damaged".into());
        header.map(Some).ok_or_else(|| self.fault(at, wrong()))
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
    fn member(&mut self, fields: &HeaderFields, records: &Records, at: u64) -> Result<Entry, TarError<R::Error>> {
        self.count_entry(at)?;
        let raw = records.name().unwrap_or(&fields.name);
        let target = records.link().unwrap_or(&fields.link);
        self.check_path(raw.len().max(target.len()), at)?;
        let path = ImagePath::normalise(raw);
        let fault = |what| TarError { offset: at, member: Some(path.clone()), what };
        records.verify().map_err(|what| fault(malformed(what)))?;
        let link = || Some(target).filter(|link| !link.is_empty()).ok_or_else(|| "a link without a target".to_owned());
        let kind = match fields.flag {
            // Archives older than ustar mark a directory with a slash at the end of a file's name.
            0 if raw.ends_with(b"/") => Ok(EntryKind::Directory),
            b'1' => link().map(|target| EntryKind::Hardlink(ImagePath::normalise(target))),
            b'2' => link().map(|target| EntryKind::Symlink(target.into())),
            b'3' => Ok(EntryKind::CharDevice(major(fields.device.0), minor(fields.device.1))),
            b'4' => Ok(EntryKind::BlockDevice(major(fields.device.0), minor(fields.device.1))),
            b'5' => Ok(EntryKind::Directory),
            b'6' => Ok(EntryKind::Fifo),
            0 | b'0' => Ok(EntryKind::File),
            other => Err(format!("a member of type '{}', which no engine unpacks", other.escape_ascii())),
        };
        let kind = kind.map_err(|what| fault(malformed(what)))?;
        let size = records.number("size").ok().flatten().unwrap_or(fields.size);
        let stored = if is_header_only(fields.flag) { 0 } else { self.size(size, at)? };
        let mode = u32::try_from(fields.mode & 0o7777).unwrap_or_default();
        self.hides_lower =
            kind == EntryKind::Directory && records.attributes().any(|(name, value)| hides_lower(name, value));
        self.current = Some(MemberBody::plain(path.clone(), stored));
        let mut entry = Entry { path, kind, mode, owner: Some(owner(fields, records)), size: 0 };
        let sparse = self.sparse_size(fields.flag, records, &mut entry.path, at)?;
        // No engine writes the marker of a whiteout: the name that counts is that of what it hides.
        let is_too_long = |name: &[u8]| name.strip_prefix(b".wh.").unwrap_or(name).len() > LONGEST_NAME;
        if entry.path.components().any(is_too_long) {
            let what = malformed(format!("a name of more than {LONGEST_NAME} bytes, which Linux refuses"));
            return Err(TarError { offset: at, member: Some(entry.path), what });
        }
        if entry.kind == EntryKind::File {
            entry.size = sparse.unwrap_or(stored);
        }
        let counted = self.paths.count(&entry.path, target.len(), self.limits);
        counted.map_err(|exceeded| self.fault(at, TarErrorKind::Limit(exceeded)))?;
        Ok(entry)
    }

    /// Sets up the extents of a sparse file and returns its real size; `None` for any other file. Some formats also
    /// replace the name.
    fn sparse_size(
        &mut self,
        flag: u8,
        records: &Records,
        path: &mut ImagePath,
        at: u64,
    ) -> Result<Option<u64>, TarError<R::Error>> {
        let limit = self.limits.sparse_extents;
        let member = path.clone();
        let fault = |what: MapError| TarError { offset: at, member: Some(member.clone()), what: what.into() };
        let cut = || fault(MapError::malformed("the sparse map is cut off"));
        let map = match records.sparse() {
            None => return Ok(None),
            Some(_) if is_header_only(flag) => {
                return Err(fault(MapError::malformed("a sparse map of a member without content")));
            }
            Some(PaxSparse::InRecords) => records.sparse_map(limit).map_err(fault)?,
            // The map precedes the data, in blocks of its own.
            Some(PaxSparse::BeforeData) => {
                let mut parser = sparse::TextMap::new(limit);
                loop {
                    let body = self.current.as_mut().filter(|body| body.stored >= BLOCK as u64);
                    body.ok_or_else(cut)?.stored -= BLOCK as u64;
                    let block = self.block()?.ok_or_else(cut)?;
                    if parser.feed(&block).map_err(fault)? {
                        break parser.finish();
                    }
                }
            }
        };
        let stored = self.current.as_ref().map_or(0, |body| body.stored);
        let size = records.sparse_real_size(stored).map_err(|what| fault(MapError::malformed(what)))?;
        if let Some(name) = records.sparse_name() {
            self.check_path(name.len(), at)?;
            *path = ImagePath::normalise(name);
        }
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

/// Returns true if an attribute makes a directory hide what lower layers have there (Linux,
/// `Documentation/filesystems/overlayfs.rst`). A redirected directory shows another one's lower files, and never those of
/// its own path.
fn hides_lower(name: &[u8], value: &[u8]) -> bool {
    name == b"trusted.overlay.redirect" || (name == b"trusted.overlay.opaque" && value == b"y")
}

fn is_zero(block: &[u8; BLOCK]) -> bool {
    *block == [0; BLOCK]
}

/// The owner that `lchown` sets, whose arguments have 32 bits. The largest number leaves the one who unpacks: root.
fn owner(fields: &HeaderFields, records: &Records) -> FileOwner {
    let id = |key, field| match low_half(records.number(key).ok().flatten().unwrap_or(field)) {
        u32::MAX => 0,
        id => id,
    };
    FileOwner { user: id("uid", fields.owner.0), group: id("gid", fields.owner.1) }
}

/// The low 32 bits of a number, as system calls get it.
fn low_half(number: i64) -> u32 {
    u32::try_from(number & 0xffff_ffff).unwrap_or_default()
}

/// The bits of a device's major number that `mknod` keeps (Linux, `new_decode_dev` in `include/linux/kdev_t.h`).
fn major(number: i64) -> u32 {
    u32::try_from(number & 0xfff).unwrap_or_default()
}

/// The bits of a device's minor number that `mknod` keeps.
fn minor(number: i64) -> u32 {
    u32::try_from(number & 0xf_ffff).unwrap_or_default()
}

fn malformed<E>(what: String) -> TarErrorKind<E> {
    TarErrorKind::Malformed(what)
}

fn over<E>(what: String, limit: &'static str, value: u64) -> TarErrorKind<E> {
    TarErrorKind::Limit(OverLimit::new(what, limit, value))
}

#[cfg(test)]
mod tests;
