//! Converts the members listed in a table to entries, with the limits that apply to a tar.

use crate::model::{Entry, EntryKind, FileOwner, ImagePath, Limits, OverLimit};

/// Bytes that an entry takes beside its own and those of its texts: the list of its chunks, and two allocations.
const BESIDE: usize = 64;

/// A member of the tar, as a table lists it.
pub(super) struct ListedLayer<'a> {
    pub(super) name: &'a [u8],
    /// Type in the spelling of all formats: `dir`, `reg`, …
    pub(super) kind: &'a [u8],
    pub(super) size: u64,
    /// The target of a link.
    pub(super) link: &'a [u8],
    pub(super) mode: u32,
    pub(super) owner: FileOwner,
    pub(super) device: (u32, u32),
}

/// Creates entries and counts them.
pub(super) struct Listing<'l> {
    limits: &'l Limits,
    entries: u64,
    /// Total size of all files, in bytes.
    total: u64,
    /// Bytes of memory that the entries take.
    kept: u64,
}

impl<'l> Listing<'l> {
    pub(super) const fn new(limits: &'l Limits) -> Self {
        Self { limits, entries: 0, total: 0, kept: 0 }
    }

    /// Converts the next member.
    pub(super) fn entry(&mut self, member: &ListedLayer<'_>) -> Result<Entry, String> {
        let limits = self.limits;
        self.entries += 1;
        if self.entries > limits.entries {
            return over(format!("it has more than {} entries", limits.entries), "entries", limits.entries);
        }
        let longest = member.name.len().max(member.link.len());
        if longest > limits.path {
            return over(format!("it has a path of {longest} bytes"), "path", limits.path as u64);
        }
        // A short entry takes more memory than it has bytes in the table.
        self.keep(size_of::<Entry>() + BESIDE + member.name.len() + member.link.len())?;
        let link = || Some(member.link).filter(|link| !link.is_empty()).ok_or("it has a link without a target");
        let (major, minor) = member.device;
        let kind = match member.kind {
            b"dir" => EntryKind::Directory,
            b"reg" if member.name.ends_with(b"/") => EntryKind::Directory,
            b"reg" => EntryKind::File,
            b"symlink" => EntryKind::Symlink(link()?.into()),
            b"hardlink" => EntryKind::Hardlink(ImagePath::normalise(link()?)),
            b"char" => EntryKind::CharDevice(major, minor),
            b"block" => EntryKind::BlockDevice(major, minor),
            b"fifo" => EntryKind::Fifo,
            other => return Err(format!("'{}' has the unknown type '{}'", shown(member.name), shown(other))),
        };
        let size = if kind == EntryKind::File { member.size } else { 0 };
        self.total = self.total.saturating_add(size);
        if self.total > limits.unpacked {
            return over(format!("its files have {} bytes", self.total), "unpacked", limits.unpacked);
        }
        Ok(Entry {
            path: ImagePath::normalise(member.name),
            kind,
            mode: member.mode & 0o7777,
            owner: Some(member.owner),
            size,
        })
    }

    /// Charges bytes of memory that the table takes until the layer is read.
    pub(super) fn keep(&mut self, bytes: usize) -> Result<(), String> {
        self.kept = self.kept.saturating_add(bytes as u64);
        if self.kept > self.limits.toc {
            return over(
                format!("its entries take more than {} bytes of memory", self.limits.toc),
                "toc",
                self.limits.toc,
            );
        }
        Ok(())
    }
}

fn over<T>(what: String, limit: &'static str, value: u64) -> Result<T, String> {
    Err(OverLimit::new(what, limit, value).to_string())
}

/// Formats a name for messages.
pub(super) fn shown(name: &[u8]) -> String {
    const LONGEST: usize = 200;
    let name = String::from_utf8_lossy(name.get(..LONGEST).unwrap_or(name));
    crate::model::printable(&name).into_owned()
}
