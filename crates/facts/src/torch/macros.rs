//! `CAFFE2_BUILD_STRINGS` in `torch/include/caffe2/core/macros.h`: a macro whose body initialises a map of strings.
//! CMake generates it from `caffe2/core/macros.h.in`; 2.15 uses raw string literals for compilers and their flags, 2.9
//! does not.

use std::collections::BTreeMap;

use model::part;

/// The name of the macro.
const MACRO: &[u8] = b"CAFFE2_BUILD_STRINGS";

/// The options of the header, including empty ones.
pub(crate) fn options(header: &[u8]) -> Result<BTreeMap<String, String>, String> {
    let body = definition(header).ok_or("it does not define CAFFE2_BUILD_STRINGS")?;
    let mut text = Cursor { rest: body };
    let mut options = BTreeMap::new();
    text.expect(b'{')?;
    while !text.take(b'}') {
        text.expect(b'{')?;
        let name = text.literal()?;
        text.expect(b',')?;
        let value = text.literal()?;
        text.expect(b'}')?;
        // The first one counts, as in the C++ map.
        options.entry(name).or_insert(value);
        if !text.take(b',') {
            text.expect(b'}')?;
            break;
        }
    }
    Ok(options)
}

/// The text after `#define CAFFE2_BUILD_STRINGS`.
fn definition(header: &[u8]) -> Option<&[u8]> {
    let lines = header.split_inclusive(|&byte| byte == b'\n');
    let mut at = 0;
    for line in lines {
        let directive = line.trim_ascii_start().strip_prefix(b"#").map(<[u8]>::trim_ascii_start);
        let name = directive.and_then(|rest| rest.strip_prefix(b"define")).map(<[u8]>::trim_ascii_start);
        if let Some(body) = name.and_then(|rest| rest.strip_prefix(MACRO))
            && body.first().is_some_and(|&byte| !byte.is_ascii_alphanumeric() && byte != b'_')
        {
            return header.get(at + line.len() - body.len()..);
        }
        at += line.len();
    }
    None
}

/// The unread rest.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Skips white space and escaped line breaks.
    fn skip_blanks(&mut self) {
        loop {
            self.rest = self.rest.trim_ascii_start();
            match self.rest.strip_prefix(b"\\\n").or_else(|| self.rest.strip_prefix(b"\\\r\n")) {
                Some(rest) => self.rest = rest,
                None => return,
            }
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let rest = self.rest.strip_prefix(&[byte]);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.take(byte) { Ok(()) } else { Err(self.mistake(&format!("'{}'", char::from(byte)))) }
    }

    fn mistake(&self, wanted: &str) -> String {
        let here = self.rest.get(..16).unwrap_or(self.rest);
        format!("CAFFE2_BUILD_STRINGS has '{}' where {wanted} is expected", here.escape_ascii())
    }

    /// One or more adjacent string literals, which count as one (C++17 [lex.string], [lex.phases]).
    fn literal(&mut self) -> Result<String, String> {
        let mut text = Vec::new();
        let mut count = 0;
        loop {
            self.skip_blanks();
            if let Some(rest) = self.rest.strip_prefix(b"R\"") {
                text.extend_from_slice(self.raw(rest)?);
            } else if let Some(rest) = self.rest.strip_prefix(b"\"") {
                self.rest = rest;
                self.ordinary(&mut text)?;
            } else if count == 0 {
                return Err(self.mistake("a string"));
            } else {
                return String::from_utf8(text).map_err(|_utf8| "CAFFE2_BUILD_STRINGS is not UTF-8".to_owned());
            }
            count += 1;
        }
    }

    /// Reads up to the closing parenthesis with the delimiter of the opening one.
    fn raw(&mut self, rest: &'a [u8]) -> Result<&'a [u8], String> {
        let open = rest.iter().take(17).position(|&byte| byte == b'(').ok_or_else(|| self.mistake("a raw string"))?;
        let (delimiter, inside) = rest.split_at(open);
        let inside = inside.strip_prefix(b"(").unwrap_or(inside);
        let close = [b")", delimiter, b"\""].concat();
        let end = memchr::memmem::find(inside, &close).ok_or_else(|| self.mistake("the end of a raw string"))?;
        self.rest = part(inside, end + close.len()..)?;
        Ok(part(inside, ..end)?)
    }

    fn ordinary(&mut self, text: &mut Vec<u8>) -> Result<(), String> {
        loop {
            match *self.rest {
                [b'"', ref rest @ ..] => {
                    self.rest = rest;
                    return Ok(());
                }
                [b'\\', escaped, ref rest @ ..] => {
                    text.push(match escaped {
                        b'n' => b'\n',
                        b't' => b'\t',
                        b'"' | b'\\' | b'\'' | b'?' => escaped,
                        _ => return Err(self.mistake("a simple escape")),
                    });
                    self.rest = rest;
                }
                [b'\n', ..] | [] => return Err(self.mistake("the end of a string")),
                [byte, ref rest @ ..] => {
                    text.push(byte);
                    self.rest = rest;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_all_releases_are_read() {
        let text = |lines: &str| {
            format!(
                "#pragma once\n#define CAFFE2_BUILD_STRINGS_X 1\n#define CAFFE2_BUILD_STRINGS {{ \\\n{lines}}}\n#endif\n"
            )
        };
        for (lines, expected) in [
            (
                "  {\"USE_NCCL\", \"1\"}, \\\n  {\"ROCM_VERSION\", \"\"}, \\\n",
                Some(&[("ROCM_VERSION", ""), ("USE_NCCL", "1")][..]),
            ),
            ("{\"A\", R\"PYT(-D\"x\" \\n)PYT\"}, \\\r\n", Some(&[("A", "-D\"x\" \\n")])),
            ("{\"A\", \"say \\\"no\\\" \" \"to \\\\\"}", Some(&[("A", "say \"no\" to \\")])),
            ("{\"A\", \"first\"}, {\"A\", \"second\"}", Some(&[("A", "first")])),
            ("", Some(&[])),
            ("{\"A\", CXX_FLAGS}, \\\n", None),
            ("{\"A\", \"1\" \\\n", None),
            ("{\"A\", \"\\x41\"}", None),
            ("{\"A\", R\"PYT(x)PYTH\"}", None),
        ] {
            let found = options(text(lines).as_bytes()).ok();
            let expected = expected
                .map(|pairs| pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect());
            assert_eq!(found, expected, "{lines}");
        }
        assert!(options(b"#define CAFFE2_BUILD_SHARED_LIBS\n").is_err());
        assert!(options(b"").is_err());
    }
}
