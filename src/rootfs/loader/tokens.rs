//! Dynamic string tokens (ld.so(8); glibc, `elf/dl-load.c`, `_dl_dst_substitute`).

/// What the tokens stand for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tokens<'t> {
    /// The folder of the object that names the path, as it was opened: links in it are not followed.
    pub(super) origin: &'t [u8],
    /// Where this loader's distribution keeps libraries, such as `lib/x86_64-linux-gnu`; `None` where it does not tell.
    pub(super) lib: Option<&'t [u8]>,
    /// The kind of processor; `None` where it depends on the host's.
    pub(super) platform: Option<&'t [u8]>,
}

impl Tokens<'_> {
    /// `text` with every token replaced, or the token that is not known. A dollar before anything else stays.
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

/// What follows a token's name, with or without braces. Nothing has to part the name from the text behind it.
fn after<'t>(text: &'t [u8], name: &str) -> Option<&'t [u8]> {
    match text.strip_prefix(b"{") {
        Some(text) => text.strip_prefix(name.as_bytes())?.strip_prefix(b"}"),
        None => text.strip_prefix(name.as_bytes()),
    }
}
