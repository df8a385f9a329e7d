//! The tables of nccl-tests.

use std::sync::LazyLock;

use regex::Regex;

/// Rows that are kept: one for each size.
const MOST: usize = 256;
/// Sizes, in bytes, from which on bandwidth should not fall.
const LARGE: u64 = 1 << 20;

/// The rows of a table.
#[derive(Debug, Default)]
pub(super) struct Bandwidth {
    /// Size in bytes, and the greater bus bandwidth of both measurements in GB/s.
    rows: Vec<(u64, f64)>,
    /// Size in bytes of the first row with wrong values, and their number.
    wrong: Option<(u64, u64)>,
}

#[expect(clippy::expect_used, reason = "constant patterns, which a test compiles")]
static ROW: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    let measured = r"\s+[\d.]+\s+[\d.]+\s+([\d.]+)\s+(\d+|N/A)";
    // Some launchers repeat the rank in brackets before each part that was flushed.
    [format!(r"^\s*(\d+)\s+\d+\s+\S+\s+\S+\s+-?\d+{measured}{measured}"), r"\[\d+\]".to_owned()]
        .map(|pattern| Regex::new(&pattern).expect("a pattern that parses"))
});

impl Bandwidth {
    /// Adds a line, if it is a row of a table. Returns true if it is.
    pub(super) fn add(&mut self, line: &str) -> bool {
        let may_be_row = line.trim_start().starts_with(|first: char| first.is_ascii_digit() || first == '[');
        let [row, rank] = &*ROW;
        if !may_be_row {
            return false;
        }
        let line = rank.replace_all(line, " ");
        let Some(captures) = row.captures(&line) else { return false };
        let number = |index: usize| captures.get(index).and_then(|found| found.as_str().parse::<u64>().ok());
        let speed =
            |index: usize| captures.get(index).and_then(|found| found.as_str().parse::<f64>().ok()).unwrap_or_default();
        let Some(bytes) = number(1) else { return false };
        if self.rows.len() < MOST {
            self.rows.push((bytes, speed(2).max(speed(4))));
        }
        let wrong = [number(3), number(5)].into_iter().flatten().find(|count| *count > 0);
        self.wrong = self.wrong.or(wrong.map(|count| (bytes, count)));
        true
    }

    /// The bus bandwidth at the largest size.
    pub(super) fn at_largest(&self) -> Option<String> {
        self.rows.iter().max_by_key(|(bytes, _)| *bytes).map(shown)
    }

    /// Where the bandwidth falls to less than half of what a smaller size reached.
    pub(super) fn drop(&self) -> Option<String> {
        let large = self.rows.iter().filter(|(bytes, _)| *bytes >= LARGE);
        let best = large.clone().max_by(|(_, one), (_, other)| one.total_cmp(other))?;
        let worst = large.filter(|row| row.0 > best.0).min_by(|(_, one), (_, other)| one.total_cmp(other))?;
        (worst.1 < best.1 / 2.0).then(|| format!("{}, and {}", shown(best), shown(worst)))
    }

    /// The first wrong values.
    pub(super) fn wrong(&self) -> Option<String> {
        self.wrong.map(|(bytes, count)| format!("{count} at {}", size(bytes)))
    }
}

fn shown((bytes, speed): &(u64, f64)) -> String {
    format!("{speed} GB/s at {}", size(*bytes))
}

fn size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.into_iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{bytes} B"), |(unit, name)| format!("{} {name}", bytes / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_tables() {
        let mut table = Bandwidth::default();
        for line in [
            "           8             2     float     sum      -1    130.1    0.00    0.00      0    118.6    0.00    0.00      0",
            "[0]     33554432       8388608     float     sum      -1[0]    2180.1   15.39   29.50      0[0]    2285.2   14.68   28.14      0",
            "    67108864      16777216     float     sum      -1     24410    2.75    5.27  N/A     24425    2.75    5.30    N/A",
            "   134217728      33554432     float     sum      -1     49264    2.72    20.5   7     48558    2.76    5.30      0",
        ] {
            assert!(table.add(line), "{line}");
        }
        assert!(!table.add("# Avg bus bandwidth    : 2.1") && !table.add("12 ranks"));
        assert_eq!(table.at_largest().as_deref(), Some("20.5 GB/s at 128 MiB"));
        assert_eq!(table.drop().as_deref(), Some("29.5 GB/s at 32 MiB, and 5.3 GB/s at 64 MiB"));
        assert_eq!(table.wrong().as_deref(), Some("7 at 128 MiB"));
    }
}
