//! `pyvenv.cfg`, the mark of a virtual environment (PEP 405). Each reader of CPython has rules of its own.

use model::{Fact, ImagePath};

use super::files::ProcessFiles;

/// The lines of a `pyvenv.cfg`; `None` if the process cannot read it.
pub(super) fn lines(files: &ProcessFiles<'_>, folder: &ImagePath) -> Option<Vec<String>> {
    match files.text(&folder.join(b"pyvenv.cfg")) {
        Fact::Seen { value, .. } => Some(String::from_utf8_lossy(value).lines().map(ToOwned::to_owned).collect()),
        Fact::Absent | Fact::Unknown(_) => None,
    }
}

/// `home` as `getpath.py` reads it: the first key with this name in any case.
pub(super) fn home(lines: &[String]) -> Option<String> {
    let mut pairs = lines.iter().filter_map(|line| line.split_once('='));
    pairs.find(|(key, _)| key.trim().eq_ignore_ascii_case("home")).map(|(_, value)| value.trim().to_owned())
}

/// `home` as `getpath.c` reads it up to 3.10: lower case, with blanks around the sign.
pub(super) fn old_home(lines: &[String]) -> Option<String> {
    const BLANKS: [char; 2] = [' ', '\t'];
    lines.iter().filter(|line| !line.starts_with('#')).find_map(|line| {
        let rest = line.trim_start_matches(BLANKS).strip_prefix("home")?;
        let rest = rest.strip_prefix(BLANKS)?.trim_start_matches(BLANKS).strip_prefix('=')?;
        // The next character is a blank, or the sign would be part of a longer word.
        Some(rest.strip_prefix(BLANKS)?.to_owned()).filter(|value| !value.is_empty())
    })
}

/// `include-system-site-packages` as `site.py` reads it: the last key counts, and it is on without one.
pub(super) fn sees_system(lines: &[String]) -> bool {
    let pairs = lines.iter().filter_map(|line| line.split_once('='));
    let mut values = pairs.filter(|(key, _)| key.trim().eq_ignore_ascii_case("include-system-site-packages"));
    values.next_back().is_none_or(|(_, value)| value.trim().eq_ignore_ascii_case("true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        text.lines().map(ToOwned::to_owned).collect()
    }

    #[test]
    fn a_key_is_read_in_any_spelling_since_3_11() {
        for (text, new, old) in [
            ("home = /usr/bin", Some("/usr/bin"), Some("/usr/bin")),
            ("\thome\t=\t/a b", Some("/a b"), Some("/a b")),
            ("HOME = /usr/bin", Some("/usr/bin"), None),
            ("home=/usr/bin", Some("/usr/bin"), None),
            ("home =/usr/bin", Some("/usr/bin"), None),
            ("homes = /a\nhome = /b\nhome = /c", Some("/b"), Some("/b")),
            ("home = \"/usr/bin\"", Some("\"/usr/bin\""), Some("\"/usr/bin\"")),
            ("version = 3", None, None),
        ] {
            assert_eq!(home(&all(text)).as_deref(), new, "{text}");
            assert_eq!(old_home(&all(text)).as_deref(), old, "{text}");
        }
    }

    #[test]
    fn the_system_is_seen_unless_the_last_key_says_otherwise() {
        for (text, sees) in [
            ("", true),
            ("include-system-site-packages = false", false),
            ("Include-System-Site-Packages=TRUE", true),
            ("include-system-site-packages = yes", false),
            ("include-system-site-packages = true\ninclude-system-site-packages = no", false),
        ] {
            assert_eq!(sees_system(&all(text)), sees, "{text}");
        }
    }
}
