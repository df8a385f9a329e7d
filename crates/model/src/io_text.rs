//! The text of a system's error in messages.

use std::io;

/// Returns the cause in an I/O error as one clause: `no such file or directory`, without the number that the standard
/// library appends, and in lower case.
pub fn cause(error: &io::Error) -> String {
    let text = without_number(&error.to_string());
    if error.raw_os_error().is_none() {
        return text;
    }
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_lowercase().chain(rest).collect())
}

/// Removes each ` (os error N)` from a text.
pub fn without_number(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-').trim_start_matches(')')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_system_error_is_left_out() {
        assert_eq!(cause(&io::Error::from_raw_os_error(2)), "no such file or directory");
        assert_eq!(cause(&io::Error::other("XZ is damaged")), "XZ is damaged");
        let wrapped = io::Error::other(format!("opening a: {}; giving up", io::Error::from_raw_os_error(13)));
        assert_eq!(cause(&wrapped), "opening a: Permission denied; giving up");
    }
}
