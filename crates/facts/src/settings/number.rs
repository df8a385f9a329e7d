//! Numbers in variables, as NCCL parses them (`src/misc/param.cc`).

/// The number that NCCL reads from a value; `None` if it does not fit in 64 bits.
pub(crate) fn number(value: &str) -> Option<i64> {
    strtoll(value).number
}

/// Result of C's strtoll with base 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CNumber<'v> {
    /// `None` if it does not fit in 64 bits; 0 without digits.
    pub(crate) number: Option<i64>,
    pub(crate) digits: &'v str,
    /// The unparsed rest.
    pub(crate) rest: &'v str,
    /// True when a leading 0 changed the value.
    pub(crate) octal: bool,
}

/// Parses like strtoll(3) with base 0.
pub(crate) fn strtoll(text: &str) -> CNumber<'_> {
    let start = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let (negative, unsigned) = match start.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, start.strip_prefix('+').unwrap_or(start)),
    };
    let hexadecimal = unsigned
        .strip_prefix("0x")
        .or_else(|| unsigned.strip_prefix("0X"))
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_hexdigit()));
    let (base, body) = match hexadecimal {
        Some(body) => (16, body),
        None => (if unsigned.starts_with('0') { 8 } else { 10 }, unsigned),
    };
    let length = body.bytes().take_while(|b| char::from(*b).is_digit(base)).count();
    let (digits, rest) = body.split_at(length);
    if digits.is_empty() {
        return CNumber { number: Some(0), digits, rest: text, octal: false };
    }
    let magnitude = i128::from_str_radix(digits, base).ok();
    let number =
        magnitude.map(|number| if negative { -number } else { number }).and_then(|number| i64::try_from(number).ok());
    // Of 01 to 07 both bases make the same number.
    let octal = base == 8 && digits.parse().ok() != magnitude;
    CNumber { number, digits, rest, octal }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_strtolls() {
        // The numbers are results of glibc's strtoll.
        for (text, number, rest) in [
            ("1", Some(1), ""),
            (" +0x10", Some(16), ""),
            ("-2", Some(-2), ""),
            ("010", Some(8), ""),
            ("018", Some(1), "8"),
            ("0x", Some(0), "x"),
            ("4M", Some(4), "M"),
            ("true", Some(0), "true"),
            ("", Some(0), ""),
            ("9223372036854775807", Some(i64::MAX), ""),
            ("9223372036854775808", None, ""),
            ("-9223372036854775808", Some(i64::MIN), ""),
            ("99999999999999999999999999999999999999999999", None, ""),
        ] {
            let read = strtoll(text);
            assert_eq!((read.number, read.rest), (number, rest), "{text}");
        }
    }
}
