//! Sizes and counts as reports show them.

/// Formats a number of bytes in the largest fitting binary unit: `64 MiB` if that is exact, otherwise rounded down to
/// one decimal place: `5.4 GiB`.
pub fn size(bytes: u64) -> String {
    let units = [(1_u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let (unit, name) = units.into_iter().find(|(unit, _)| bytes >= *unit).unwrap_or((1, "bytes"));
    if bytes.is_multiple_of(unit) {
        return format!("{} {name}", bytes / unit);
    }
    // Images state their own sizes, so the number may be any.
    let tenths = u128::from(bytes) * 10 / u128::from(unit);
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

/// Formats a count with its noun: `1 layer`, `2 layers`.
pub fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_binary_unit() {
        for (bytes, expected) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1 << 10, "1 KiB"),
            (20_992, "20.5 KiB"),
            (64 << 20, "64 MiB"),
            ((1 << 30) - 1, "1023.9 MiB"),
            ((1 << 30) + 1, "1.0 GiB"),
            (3 << 40, "3 TiB"),
            (u64::MAX, "16777215.9 TiB"),
        ] {
            assert_eq!(size(bytes), expected, "{bytes}");
        }
    }
}
