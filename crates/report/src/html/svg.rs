//! Numbers of drawings.

/// A coordinate, with one decimal place.
pub(super) fn px(value: f64) -> String {
    format!("{value:.1}")
}

/// A duration in seconds, in the unit that suits it.
pub(super) fn seconds(value: f64) -> String {
    match value {
        _ if value >= 10.0 => format!("{value:.0} s"),
        _ if value >= 1.0 => format!("{value:.1} s"),
        _ if value >= 1e-3 => format!("{:.0} ms", value * 1e3),
        _ => format!("{:.1} µs", value * 1e6),
    }
}

/// A number of bytes, for an axis: `64 MiB`.
pub(super) fn bytes(value: u64) -> String {
    model::size(value).replace("bytes", "B")
}

/// Binary logarithm of a size of at least one byte.
#[expect(clippy::cast_precision_loss, reason = "a position in a drawing")]
pub(super) fn log2(value: u64) -> f64 {
    (value.max(1) as f64).log2()
}

/// A count as a coordinate.
#[expect(clippy::cast_precision_loss, reason = "a position in a drawing")]
pub(super) const fn float(value: usize) -> f64 {
    value as f64
}

/// The least round number (1, 2 or 5 times a power of ten) that is not less than a positive value.
pub(super) fn round_up(value: f64) -> f64 {
    let unit = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0].iter().map(|step| step * unit).find(|step| *step >= value).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        for (value, expected) in [(0.7, 1.0), (1.0, 1.0), (332.0, 500.0), (1200.0, 2000.0), (5.1, 10.0)] {
            assert!((round_up(value) - expected).abs() < 1e-9, "{value}: {}", round_up(value));
        }
        assert_eq!(seconds(0.000_02), "20.0 µs");
        assert_eq!(seconds(2.88), "2.9 s");
    }
}
