//! Dynamic string tokens (ld.so(8); glibc, `elf/dl-load.c`, `_dl_dst_substitute`).

/// Values of the tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tokens<'t> {
    /// The directory of the object that defines the path, as it was opened; links are not followed.
    pub(super) origin: &'t [u8],
    /// The library directory of this loader's distribution, such as `lib/x86_64-linux-gnu`; `None` if unknown.
    pub(super) lib: Option<&'t [u8]>,
    /// The platform; `None` if it depends on the host's processor.
    pub(super) platform: Option<&'t [u8]>,
}

impl Tokens<'_> {
    /// The parts of `text` with every token replaced, whose sum can be far longer; an error names a token without a known
    /// value. Any other dollar sign stays.
    pub(super) fn expand<'p>(&'p self, text: &'p [u8]) -> Result<Vec<&'p [u8]>, &'static str> {
        let names = [("ORIGIN", Some(self.origin)), ("PLATFORM", self.platform), ("LIB", self.lib)];
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(sign) = rest.iter().position(|&byte| byte == b'$') {
            let (before, behind) = rest.split_at(sign);
            let (dollar, behind) = behind.split_at(1);
            parts.push(before);
            match names.iter().find_map(|(name, value)| Some((name, value, after(behind, name)?))) {
                None => {
                    parts.push(dollar);
                    rest = behind;
                }
                Some((name, None, _)) => return Err(name),
                Some((_, Some(value), after)) => {
                    parts.push(value);
                    rest = after;
                }
            }
        }
        parts.push(rest);
        Ok(parts)
    }
}

/// The text after a token's name, with or without braces. No separator is needed after the name.
fn after<'t>(text: &'t [u8], name: &str) -> Option<&'t [u8]> {
    match text.strip_prefix(b"{") {
        Some(text) => text.strip_prefix(name.as_bytes())?.strip_prefix(b"}"),
        None => text.strip_prefix(name.as_bytes()),
    }
}
