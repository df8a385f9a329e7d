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
    /// Expands every token in `text`; an error names a token without a known value. Any other dollar sign stays.
    pub(super) fn expand(&self, text: &[u8]) -> Result<Vec<u8>, &'static str> {
        let names = [("ORIGIN", Some(self.origin)), ("PLATFORM", self.platform), ("LIB", self.lib)];
        let mut expanded = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some((&byte, behind)) = rest.split_first() {
            rest = behind;
            let token = names.iter().find_map(|(name, value)| Some((name, value, after(behind, name)?)));
            match token.filter(|_| byte == b'$') {
                None => expanded.push(byte),
                Some((name, None, _)) => return Err(name),
                Some((_, Some(value), after)) => {
                    expanded.extend_from_slice(value);
                    rest = after;
                }
            }
        }
        Ok(expanded)
    }
}

/// The text after a token's name, with or without braces. No separator is needed after the name.
fn after<'t>(text: &'t [u8], name: &str) -> Option<&'t [u8]> {
    match text.strip_prefix(b"{") {
        Some(text) => text.strip_prefix(name.as_bytes())?.strip_prefix(b"}"),
        None => text.strip_prefix(name.as_bytes()),
    }
}
