//! Header blocks, read as Go's `archive/tar` reads them: all common engines use it.

use tar::Header;

use super::BLOCK;

/// A header block.
#[derive(Debug)]
pub(super) struct HeaderBlock(Header);

/// Formats by their magic. They share the fields of the seventh edition's tar and differ in the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderFormat {
    /// Without magic: the seventh edition's tar.
    V7,
    /// POSIX, with or without PAX.
    Ustar,
    /// Schily's star.
    Star,
    /// GNU tar.
    Gnu,
}

/// The fields that all readers parse.
#[derive(Debug)]
pub(super) struct HeaderFields {
    pub(super) flag: u8,
    /// Name with its prefix.
    pub(super) name: Vec<u8>,
    pub(super) link: Vec<u8>,
    pub(super) size: i64,
    pub(super) mode: i64,
    /// User and group.
    pub(super) owner: (i64, i64),
    pub(super) device: (i64, i64),
}

impl HeaderBlock {
    /// Accepts a block with a right checksum.
    pub(super) fn new(block: &[u8; BLOCK]) -> Option<Self> {
        let header = Header::from_byte_slice(block);
        // The checksum counts its own field as spaces. Old tars summed signed bytes; readers accept both.
        let sum = |byte: fn(u8) -> i64| -> i64 {
            block.iter().enumerate().map(|(index, &b)| if (148..156).contains(&index) { 32 } else { byte(b) }).sum()
        };
        let stored = octal(&header.as_old().cksum)?;
        let is_right = stored == sum(i64::from) || stored == sum(|b| i64::from(b.cast_signed()));
        is_right.then(|| Self(header.clone()))
    }

    pub(super) fn format(&self) -> HeaderFormat {
        match (self.part(257, 6), self.part(263, 2), self.part(508, 4)) {
            (b"ustar\0", _, b"tar\0") => HeaderFormat::Star,
            (b"ustar\0", ..) => HeaderFormat::Ustar,
            (b"ustar ", b" \0", _) => HeaderFormat::Gnu,
            _ => HeaderFormat::V7,
        }
    }

    /// Parses the fields. An error names the field.
    pub(super) fn fields(&self) -> Result<HeaderFields, String> {
        let old = self.0.as_old();
        let numeric = |name: &str, field: &[u8]| {
            number(field).ok_or_else(|| format!("{name} field: '{}' is not a number", field.escape_ascii()))
        };
        let size = numeric("size", &old.size)?;
        let mode = numeric("mode", &old.mode)?;
        let owner = (numeric("uid", &old.uid)?, numeric("gid", &old.gid)?);
        // No fact needs it, but engines refuse a layer with another.
        numeric("mtime", &old.mtime)?;
        let format = self.format();
        let mut device = (0, 0);
        if format != HeaderFormat::V7 {
            device = (numeric("device major", self.part(329, 8))?, numeric("device minor", self.part(337, 8))?);
        }
        if format == HeaderFormat::Star {
            numeric("atime", self.part(476, 12))?;
            numeric("ctime", self.part(488, 12))?;
        }
        let mut name = until_nul(self.prefix(format)).to_vec();
        if !name.is_empty() {
            name.push(b'/');
        }
        name.extend_from_slice(until_nul(&old.name));
        let [flag] = old.linkflag;
        Ok(HeaderFields { flag, name, link: until_nul(&old.linkname).to_vec(), size, mode, owner, device })
    }

    fn prefix(&self, format: HeaderFormat) -> &[u8] {
        match format {
            HeaderFormat::V7 => b"",
            HeaderFormat::Ustar => self.part(345, 155),
            HeaderFormat::Star => self.part(345, 131),
            // Go before 1.8 wrote a prefix where GNU's format has times, so Go reads one there if the times are none.
            HeaderFormat::Gnu => {
                let times = [self.part(345, 12), self.part(357, 12)];
                let are_times = times.iter().all(|time| time.first() == Some(&0) || number(time).is_some());
                let prefix = until_nul(self.part(345, 155));
                if are_times || !prefix.is_ascii() { b"" } else { prefix }
            }
        }
    }

    /// Bytes behind the fields of the seventh edition: what they mean depends on a magic that Go reads more leniently than
    /// [`tar`].
    fn part(&self, at: usize, length: usize) -> &[u8] {
        self.0.as_bytes().get(at..at + length).unwrap_or_default()
    }
}

/// Returns true for members that have no content, whatever their size field says: links, devices, directories and
/// pipes.
pub(super) const fn is_header_only(flag: u8) -> bool {
    matches!(flag, b'1'..=b'6')
}

/// Parses a numeric field: octal digits, or a binary number if the first bit is set. It may be negative.
pub(super) fn number(field: &[u8]) -> Option<i64> {
    let Some((&first, rest)) = field.split_first().filter(|(first, _)| **first & 0x80 != 0) else {
        return octal(field);
    };
    // A negative number is the complement of its bits: -a - 1 == !a.
    let inverted = if first & 0x40 == 0 { 0 } else { 0xff };
    let mut value = u64::from((first ^ inverted) & 0x7f);
    for byte in rest {
        if value >> 56 > 0 {
            return None;
        }
        value = value << 8 | u64::from(byte ^ inverted);
    }
    let value = i64::try_from(value).ok()?;
    Some(if inverted == 0 { value } else { !value })
}

/// Parses octal digits between spaces and NULs. None at all is zero, as in fields that are not used.
fn octal(field: &[u8]) -> Option<i64> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | 0);
    let Some(start) = field.iter().position(|byte| !is_blank(byte)) else { return Some(0) };
    let end = field.iter().rposition(|byte| !is_blank(byte)).map_or(start, |last| last + 1);
    let mut value: i64 = 0;
    for digit in until_nul(field.get(start..end).unwrap_or_default()) {
        if !matches!(digit, b'0'..=b'7') {
            return None;
        }
        value = value.checked_mul(8)?.checked_add(i64::from(digit - b'0'))?;
    }
    Some(value)
}

/// The bytes before the first NUL.
pub(super) fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    bytes.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_octal_or_binary() {
        for (field, value) in [
            (&b"0000644\0"[..], Some(0o644)),
            (b"    644 ", Some(0o644)),
            (b"\0\x00644\0\0\0", Some(0o644)),
            (b"\0\0\0\0\0\0\0\0", Some(0)),
            (b"        ", Some(0)),
            (b"", Some(0)),
            (b"64\x0099", Some(0o64)),
            (b"9", None),
            (b"-1", None),
            (b"6 4", None),
            (b"\x80\0\0\0\0\0\x01\0", Some(256)),
            (b"\xa0\0\0\0\0\0\0\x01", Some(0x2000_0000_0000_0001)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff", Some(-1)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe", Some(-2)),
            (b"\x80\0\0\x01\0\0\0\0\0\0\0\0", None),
            (b"\x80\0\0\0\x80\0\0\0\0\0\0\0", None),
        ] {
            assert_eq!(number(field), value, "{}", field.escape_ascii());
        }
    }

    /// A header with this magic and these bytes from offset 345 on.
    fn name(magic: &[u8], prefix: &[u8]) -> String {
        let mut block = [0; BLOCK];
        block[..4].copy_from_slice(b"name");
        block[257..265].copy_from_slice(magic);
        block[345..345 + prefix.len()].copy_from_slice(prefix);
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum::<u32>() + 8 * 32;
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        block[155] = b' ';
        let fields = HeaderBlock::new(&block).unwrap().fields().unwrap();
        String::from_utf8(fields.name).unwrap()
    }

    #[test]
    fn the_magic_decides_whether_there_is_a_prefix() {
        assert_eq!(name(b"ustar\x0000", b"some/folder"), "some/folder/name");
        assert_eq!(name(b"ustar\x0099", b"some/folder"), "some/folder/name");
        assert_eq!(name(b"ustar\x0000", b""), "name");
        assert_eq!(name(b"\0\0\0\0\0\0\0\0", b"some/folder"), "name");
        assert_eq!(name(b"USTAR\x0000", b"some/folder"), "name");
        // GNU's format has times there.
        assert_eq!(name(b"ustar  \0", b"00000000000\x0000000000000\0"), "name");
        assert_eq!(name(b"ustar  \0", b"some/folder"), "some/folder/name");
        assert_eq!(name(b"ustar  \0", "gr\u{fc}n".as_bytes()), "name");
        // The bytes behind the prefix are not part of it.
        let star = [&[b'p'; 131][..], &[b'7'; 24], b"\0\0\0\0\0\0\0\0tar\0"].concat();
        for (magic, bytes, length) in
            [(b"ustar\x0000", &[b'p'; 156][..], 155), (b"ustar  \0", &[b'p'; 156], 155), (b"ustar\x0000", &star, 131)]
        {
            assert_eq!(name(magic, bytes), format!("{}/name", "p".repeat(length)));
        }
    }
}
