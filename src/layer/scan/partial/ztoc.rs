//! Parser of zTOCs, the tables of a SOCI index for its layers (soci-snapshotter, `ztoc/fbs/ztoc.fbs`): FlatBuffers
//! (`flatbuffers.dev/internals`), of which only tables, strings, vectors and numbers occur.
//!
//! It is handwritten because code generated from a schema needs `unsafe`. Offsets may point anywhere, and several times
//! to one place.

/// A malformed zTOC: the error and its position.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not a valid zTOC: {0} at byte {1}")]
pub(super) struct Malformed(&'static str, usize);

/// A zTOC.
#[derive(Debug)]
pub(super) struct Ztoc<'z> {
    pub(super) version: &'z [u8],
    /// Size of the stored layer, in bytes.
    pub(super) packed: u64,
    /// Size of the tar inside, in bytes, up to where the writer stopped reading.
    pub(super) unpacked: u64,
    /// Compression of the layer; 1 is gzip.
    pub(super) algorithm: u8,
    /// Number of the last span.
    pub(super) last_span: u64,
    digests: FlatVector<'z>,
    /// Positions of the spans (`ztoc/compression/gzip_zinfo.c`, `zinfo_to_blob`).
    pub(super) checkpoints: &'z [u8],
    files: FlatVector<'z>,
}

/// A member of the tar.
#[derive(Debug)]
pub(super) struct ZtocFile<'z> {
    pub(super) name: &'z [u8],
    pub(super) kind: &'z [u8],
    /// Offset of its content in the tar.
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) link: &'z [u8],
    pub(super) mode: u64,
    /// User and group.
    pub(super) owner: (u32, u32),
    pub(super) device: (u64, u64),
    /// True if the file is sparse, so that its size differs from that of its content in the tar.
    pub(super) is_sparse: bool,
}

impl<'z> Ztoc<'z> {
    pub(super) fn read(bytes: &'z [u8]) -> Result<Self, Malformed> {
        let root = ZtocTable::at(bytes, follow(bytes, 0)?)?;
        let missing = |what| Malformed(what, root.at);
        let toc = root.table(4)?.ok_or_else(|| missing("it has no list of files"))?;
        let compression = root.table(5)?.ok_or_else(|| missing("it has no compression information"))?;
        Ok(Self {
            version: root.text(0)?,
            packed: root.long(2)?,
            unpacked: root.long(3)?,
            algorithm: compression.field(0)?.map_or(Ok(1), |at| number::<1>(bytes, at).map(|[byte]| byte))?,
            last_span: match compression.field(1)? {
                Some(at) => unsigned(i32::from_le_bytes(number(bytes, at)?).into(), at)?,
                None => 0,
            },
            digests: compression.vector(2)?,
            checkpoints: compression.text(3)?,
            files: toc.vector(0)?,
        })
    }

    /// Digests of the spans' stored bytes.
    pub(super) fn digests(&self) -> impl ExactSizeIterator<Item = Result<&'z [u8], Malformed>> {
        self.digests.elements().map(|(bytes, at)| text(bytes, follow(bytes, at)?))
    }

    /// Members of the tar. Their total size is limited to that of the zTOC.
    pub(super) fn files(&self) -> impl Iterator<Item = Result<ZtocFile<'z>, Malformed>> {
        let mut left = self.files.bytes.len();
        self.files.elements().map(move |(bytes, at)| {
            let table = ZtocTable::at(bytes, follow(bytes, at)?)?;
            let records = table.vector(13)?;
            let file = ZtocFile {
                name: table.text(0)?,
                kind: table.text(1)?,
                offset: table.long(2)?,
                size: table.long(3)?,
                link: table.text(4)?,
                mode: table.long(5)?,
                owner: (table.word(6)?, table.word(7)?),
                device: (table.long(11)?, table.long(12)?),
                is_sparse: false,
            };
            let own = file.name.len() + file.link.len() + 4 * records.count;
            left = left.checked_sub(own).ok_or(Malformed("its elements exceed its size", table.at))?;
            // These include all PAX records of the member, not only extended attributes.
            let mut is_sparse = false;
            for (bytes, at) in records.elements() {
                is_sparse |= ZtocTable::at(bytes, follow(bytes, at)?)?.text(0)?.starts_with(b"GNU.sparse.");
            }
            Ok(ZtocFile { is_sparse, ..file })
        })
    }
}

/// A table, with the position of its list of fields.
#[derive(Clone, Copy, Debug)]
struct ZtocTable<'z> {
    bytes: &'z [u8],
    at: usize,
    fields: usize,
    fields_end: usize,
}

impl<'z> ZtocTable<'z> {
    fn at(bytes: &'z [u8], at: usize) -> Result<Self, Malformed> {
        let back = i32::from_le_bytes(number(bytes, at)?);
        let fields = i64::try_from(at).ok().and_then(|at| usize::try_from(at - i64::from(back)).ok());
        let fields = fields.ok_or(Malformed("a table exceeds the data", at))?;
        let length = u16::from_le_bytes(number(bytes, fields)?);
        Ok(Self { bytes, at, fields, fields_end: fields + usize::from(length) })
    }

    /// Position of a field, if present.
    fn field(self, index: usize) -> Result<Option<usize>, Malformed> {
        let slot = self.fields + 4 + 2 * index;
        if slot + 2 > self.fields_end {
            return Ok(None);
        }
        let offset = u16::from_le_bytes(number(self.bytes, slot)?);
        Ok((offset > 0).then(|| self.at + usize::from(offset)))
    }

    /// A non-negative number; 0 if absent.
    fn long(self, index: usize) -> Result<u64, Malformed> {
        let Some(at) = self.field(index)? else { return Ok(0) };
        unsigned(i64::from_le_bytes(number(self.bytes, at)?), at)
    }

    /// A number of 32 bits; 0 if absent.
    fn word(self, index: usize) -> Result<u32, Malformed> {
        let at = self.field(index)?;
        at.map_or(Ok(0), |at| number(self.bytes, at).map(u32::from_le_bytes))
    }

    /// A string or a vector of bytes; empty if absent.
    fn text(self, index: usize) -> Result<&'z [u8], Malformed> {
        let Some(at) = self.field(index)? else { return Ok(&[]) };
        text(self.bytes, follow(self.bytes, at)?)
    }

    fn table(self, index: usize) -> Result<Option<Self>, Malformed> {
        self.field(index)?.map(|at| Self::at(self.bytes, follow(self.bytes, at)?)).transpose()
    }

    /// A vector of offsets; empty if absent.
    fn vector(self, index: usize) -> Result<FlatVector<'z>, Malformed> {
        let none = FlatVector { bytes: self.bytes, first: 0, count: 0 };
        let Some(at) = self.field(index)? else { return Ok(none) };
        let at = follow(self.bytes, at)?;
        let count = size(self.bytes, at)?;
        let is_within = count.checked_mul(4).is_some_and(|size| size <= self.bytes.len() - at - 4);
        is_within.then_some(FlatVector { first: at + 4, count, ..none }).ok_or(Malformed("a list exceeds the data", at))
    }
}

/// A vector of offsets, each relative to its own position.
#[derive(Clone, Copy, Debug)]
struct FlatVector<'z> {
    bytes: &'z [u8],
    first: usize,
    count: usize,
}

impl<'z> FlatVector<'z> {
    /// The data, with the position of each offset.
    fn elements(self) -> impl ExactSizeIterator<Item = (&'z [u8], usize)> {
        (0..self.count).map(move |index| (self.bytes, self.first + 4 * index))
    }
}

fn number<const COUNT: usize>(bytes: &[u8], at: usize) -> Result<[u8; COUNT], Malformed> {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk()).copied();
    found.ok_or(Malformed("a number exceeds the data", at))
}

fn unsigned(number: i64, at: usize) -> Result<u64, Malformed> {
    u64::try_from(number).map_err(|_negative| Malformed("a number is negative", at))
}

fn size(bytes: &[u8], at: usize) -> Result<usize, Malformed> {
    let size = u32::from_le_bytes(number(bytes, at)?);
    usize::try_from(size).map_err(|_size| Malformed("a size is too large", at))
}

/// Follows an offset.
fn follow(bytes: &[u8], at: usize) -> Result<usize, Malformed> {
    at.checked_add(size(bytes, at)?).filter(|to| *to < bytes.len()).ok_or(Malformed("an offset exceeds the data", at))
}

/// Reads a string at a position.
fn text(bytes: &[u8], at: usize) -> Result<&[u8], Malformed> {
    let size = size(bytes, at)?;
    bytes.get(at + 4..).and_then(|rest| rest.get(..size)).ok_or(Malformed("a string exceeds the data", at))
}
