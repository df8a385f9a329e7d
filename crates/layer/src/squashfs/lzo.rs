//! Decoder of LZO1X, which enroot's images use (Linux, `Documentation/staging/lzo.rst`). The crates that decode it are
//! under the GPL, or panic on damaged streams.

/// Decodes one stream into `out`, and returns the number of decoded bytes.
pub(super) fn decode(packed: &[u8], out: &mut [u8]) -> Result<usize, &'static str> {
    let mut stream = Lzo { packed, out, count: 0 };
    stream.run()?;
    Ok(stream.count)
}

struct Lzo<'a> {
    /// Bytes that are still to be decoded.
    packed: &'a [u8],
    out: &'a mut [u8],
    /// Number of decoded bytes.
    count: usize,
}

/// Number of literals that the last instruction copied, which decides what a short instruction means.
#[derive(Clone, Copy)]
enum Literals {
    None,
    Few,
    Many,
}

impl Lzo<'_> {
    fn run(&mut self) -> Result<(), &'static str> {
        let mut before = Literals::None;
        match self.packed.first() {
            // 17 begins a newer bitstream, which squashfs does not use.
            Some(17) => return Err("an unknown version of LZO"),
            Some(&first @ 18..) => {
                self.byte()?;
                let count = usize::from(first) - 17;
                self.literals(count)?;
                before = if count < 4 { Literals::Few } else { Literals::Many };
            }
            _ => {}
        }
        loop {
            let code = self.byte()?;
            let (length, distance, few) = match (code, before) {
                (0x40.., _) => (1 + (code >> 5), 1 + (code >> 2 & 7) + (self.byte()? << 3), code & 3),
                (0x20.., _) => {
                    let length = 2 + self.length(code & 31, 31)?;
                    let word = self.word()?;
                    (length, 1 + (word >> 2), word & 3)
                }
                (0x10.., _) => {
                    let length = 2 + self.length(code & 7, 7)?;
                    let word = self.word()?;
                    let distance = ((code & 8) << 11) + (word >> 2);
                    if distance == 0 {
                        return if length == 3 { Ok(()) } else { Err("a wrong end mark") };
                    }
                    (length, 0x4000 + distance, word & 3)
                }
                (_, Literals::None) => {
                    let count = 3 + self.length(code, 15)?;
                    self.literals(count)?;
                    before = Literals::Many;
                    continue;
                }
                (_, Literals::Few) => (2, 1 + (code >> 2) + (self.byte()? << 2), code & 3),
                (_, Literals::Many) => (3, 2049 + (code >> 2) + (self.byte()? << 2), code & 3),
            };
            self.copy(length, distance)?;
            self.literals(few)?;
            before = if few == 0 { Literals::None } else { Literals::Few };
        }
    }

    fn byte(&mut self) -> Result<usize, &'static str> {
        let (first, rest) = self.packed.split_first().ok_or(TRUNCATED)?;
        self.packed = rest;
        Ok(usize::from(*first))
    }

    fn word(&mut self) -> Result<usize, &'static str> {
        Ok(self.byte()? | self.byte()? << 8)
    }

    /// A length that does not fit into its instruction (`short` is 0) continues in the next bytes.
    fn length(&mut self, short: usize, base: usize) -> Result<usize, &'static str> {
        if short != 0 {
            return Ok(short);
        }
        let mut length = base;
        loop {
            match self.byte()? {
                0 => length += 255,
                last => return Ok(length + last),
            }
        }
    }

    fn literals(&mut self, count: usize) -> Result<(), &'static str> {
        let (literals, rest) = self.packed.split_at_checked(count).ok_or(TRUNCATED)?;
        let end = self.count + count;
        self.out.get_mut(self.count..end).ok_or(TOO_LONG)?.copy_from_slice(literals);
        (self.packed, self.count) = (rest, end);
        Ok(())
    }

    fn copy(&mut self, length: usize, distance: usize) -> Result<(), &'static str> {
        let start = self.count.checked_sub(distance).ok_or("a reference before the beginning")?;
        let window = self.out.get_mut(start..self.count + length).ok_or(TOO_LONG)?;
        // The copy may overlap itself: each round doubles what is repeated.
        let mut have = distance;
        while have < window.len() {
            let more = have.min(window.len() - have);
            let (from, to) = window.split_at_mut(have);
            if let (Some(from), Some(to)) = (from.get(..more), to.get_mut(..more)) {
                to.copy_from_slice(from);
            }
            have += more;
        }
        self.count += length;
        Ok(())
    }
}

const TRUNCATED: &str = "the stream ends early";
const TOO_LONG: &str = "more bytes than a block can hold";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_decoded() {
        // Four literals, a copy of four bytes from a distance of four (two-byte form), and the end mark.
        let packed = [21, b'a', b'b', b'c', b'd', 0x60 | 3 << 2, 0, 0x11, 0, 0];
        let mut out = [0; 16];
        let count = decode(&packed, &mut out).unwrap();
        assert_eq!(&out[..count], b"abcdabcd");
        // A run: one literal, then 40 copies of it from a distance of one.
        let packed = [18, b'x', 0x20, 7, 0, 0, 0x11, 0, 0];
        let mut out = [0; 64];
        assert_eq!(decode(&packed, &mut out), Ok(41));
        assert_eq!(&out[..41], [b'x'; 41]);
    }

    #[test]
    fn damage_is_an_error() {
        let mut out = [0; 8];
        for (packed, why) in [
            (&[][..], TRUNCATED),
            (&[17, 0, 0][..], "an unknown version of LZO"),
            (&[25, b'a'][..], TRUNCATED),
            (&[18, b'x', 0x40, 1][..], "a reference before the beginning"),
            (&[18, b'x', 0x20, 7, 0, 0, 0x11, 0, 0][..], TOO_LONG),
            (&[0, 0, 0, 0][..], TRUNCATED),
            (&[18, b'x', 0x12, 0, 0][..], "a wrong end mark"),
        ] {
            assert_eq!(decode(packed, &mut out), Err(why), "{packed:?}");
        }
    }
}
