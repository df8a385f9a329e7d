//! Modules that no folder has, because code makes them: entries of `sys.modules`, and finders of `sys.meta_path`.

use std::collections::BTreeSet;

/// What stands for every name.
pub(super) const ANY: &str = "*";

/// Text of code that finds modules in other ways than in folders.
const FINDERS: [&[u8]; 3] = [b"meta_path", b"path_hooks", b"pyximport"];

const MODULES: &[u8] = b"sys.modules";

/// Methods of `sys.modules` that add nothing.
const READERS: [&[u8]; 6] = [b".get(", b".keys(", b".items(", b".values(", b".pop(", b".copy("];

/// The first components of the names that code gives to modules itself, separated by blanks; `None` if it gives none.
pub(super) fn aliases(text: &[u8]) -> Option<String> {
    if FINDERS.iter().any(|finder| memchr::memmem::find(text, finder).is_some()) {
        return Some(ANY.to_owned());
    }
    let mut names = BTreeSet::new();
    for at in memchr::memmem::find_iter(text, MODULES) {
        let (before, rest) = text.split_at_checked(at)?;
        match use_of(before, rest.get(MODULES.len()..)?) {
            Use::Reads => {}
            Use::Adds(name) => _ = names.insert(name),
            Use::Unclear => return Some(ANY.to_owned()),
        }
    }
    (!names.is_empty()).then(|| names.into_iter().collect::<Vec<_>>().join(" "))
}

/// What code does with `sys.modules`.
enum Use<'t> {
    Reads,
    /// Adds a module below this name.
    Adds(&'t str),
    Unclear,
}

fn use_of<'t>(before: &[u8], after: &'t [u8]) -> Use<'t> {
    let line = after.split(|&byte| byte == b'\n').next().unwrap_or_default();
    if before.ends_with(b" in ") || READERS.iter().any(|reader| line.starts_with(reader)) {
        return Use::Reads;
    }
    let subscript = line.strip_prefix(b"[").and_then(|inner| {
        let end = memchr::memchr(b']', inner)?;
        Some((inner.get(..end)?.trim_ascii(), inner.get(end + 1..)?.trim_ascii_start()))
    });
    // `del sys.modules[NAME]`, and a value that is read.
    let Some((name, rest)) = subscript else { return Use::Unclear };
    let is_assigned = rest.starts_with(b"=") && !rest.starts_with(b"==");
    if name == b"__name__" || !(is_assigned || name.contains(&b'[')) {
        return Use::Reads;
    }
    let quoted = |quote: &[u8]| name.strip_prefix(quote)?.strip_suffix(quote);
    let literal = quoted(b"\"").or_else(|| quoted(b"'")).and_then(|name| std::str::from_utf8(name).ok());
    let first = literal.and_then(|name| name.split('.').next());
    let is_name = |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    first.filter(is_name).map_or(Use::Unclear, Use::Adds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_code_adds_to_the_modules_is_named() {
        for (code, names) in [
            ("import sys\nsys.modules[__name__] = Lazy()\n", None),
            ("x = sys.modules[cls.__module__].y\nif 'a' in sys.modules:\n    del sys.modules['a']\n", None),
            ("sys.modules.get('a')\nsys.modules['a'] == b\n", None),
            ("sys.modules['a.b'] = x\nsys.modules[\"c\"]=x\n", Some("a c")),
            ("sys.modules[name] = x\n", Some("*")),
            ("sys.modules[f'{x}.y'] = x\n", Some("*")),
            ("sys.modules[names[0]] = x\n", Some("*")),
            ("sys.modules.update(x)\n", Some("*")),
            ("modules = sys.modules\n", Some("*")),
            ("sys.meta_path.insert(0, x)\n", Some("*")),
            ("import pyximport\n", Some("*")),
            ("import sys\n", None),
        ] {
            assert_eq!(aliases(code.as_bytes()).as_deref(), names, "{code}");
        }
    }
}
