//! The rate of sound tests, and the noise. All numbers are natural logarithms: 0.1 is about 10 %.

/// The rate of sound tests and the noise around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Level {
    /// The logarithm of the rate.
    pub(crate) at: f64,
    /// The standard deviation of the logarithm.
    pub(crate) noise: f64,
}

/// The noise that is assumed before tests show it, and how many tests outweigh that.
const USUAL: f64 = 0.03;
const USUAL_WEIGHT: f64 = 8.0;
/// Bounds of the noise. Noise above the highest hides every useful difference.
const LEAST: f64 = 0.01;
const MOST: f64 = 0.3;
/// The widest noise of tests that gather around one rate: beyond it, they are of several.
const WIDEST: f64 = 0.15;
/// How often a level is computed again.
const STEPS: usize = 20;
/// The quantile at which a normal distribution is one standard deviation above its middle times this: 0.9 and 1.28.
const TENTH: (f64, f64) = (0.9, 1.28);
/// The smallest loss that is looked for.
pub(crate) const SMALLEST_LOSS: f64 = 0.1;

impl Level {
    /// The highest logarithm, relative to the level, of a loss that is seen: 10 %, or three times the noise if that is more.
    pub(crate) fn floor(self) -> f64 {
        (1.0 - SMALLEST_LOSS).ln().min(-3.0 * self.noise)
    }
}

/// The value below which this share of the sorted values is.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index within the slice")]
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 values")]
    let index = (share * sorted.len() as f64) as usize;
    sorted.get(index.min(sorted.len().checked_sub(1)?)).copied()
}

/// Returns the middle value, the upper one of two; `None` without values.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    quantile(&values, 0.5)
}

/// The levels that sound tests may have, from the middle of all tests up. No fault makes a test faster, so where many are slow,
/// the sound ones are above the middle.
pub(crate) fn levels(mut logs: Vec<f64>) -> Vec<Level> {
    logs.sort_by(f64::total_cmp);
    clusters(&logs).into_iter().map(|level| widen(&logs, level)).collect()
}

/// Where tests gather, from the middle up, each with the noise of the tests near to it.
fn clusters(sorted: &[f64]) -> Vec<Level> {
    let at = |share| quantile(sorted, share);
    let Some((middle, upper)) = at(0.5).zip(at(TENTH.0)) else { return Vec::new() };
    let spread = ((upper - middle) / TENTH.1).clamp(USUAL, WIDEST);
    let mut levels: Vec<Level> = Vec::new();
    for start in [0.5, 0.75, 0.9].into_iter().filter_map(at) {
        for noise in [spread, USUAL] {
            let level = gather(sorted, Level { at: start, noise });
            if levels.iter().all(|known| (known.at - level.at).abs() > level.noise) {
                levels.push(level);
            }
        }
    }
    levels
}

/// The middle of what lies within 2.5 times the noise of a level, again until it stays.
fn gather(sorted: &[f64], start: Level) -> Level {
    let steps = std::iter::successors(Some(start), |level| narrow(sorted, *level).filter(|next| next != level));
    steps.take(STEPS).last().unwrap_or(start)
}

/// The middle of what lies within 2.5 times the noise of a level, and the noise of that.
fn narrow(sorted: &[f64], level: Level) -> Option<Level> {
    let near = sorted.iter().copied().filter(|log| (log - level.at).abs() <= 2.5 * level.noise).collect::<Vec<_>>();
    let at = quantile(&near, 0.5)?;
    let deviation = median(near.iter().map(|log| (log - at).abs()).collect())?;
    // 1.4826 makes a standard deviation of a median deviation; 5 % were cut off.
    Some(Level { at, noise: (1.05 * 1.4826 * deviation).clamp(LEAST, WIDEST) })
}

/// A level with the noise of all tests that are faster, which show it whatever is slow. Few tests keep it near to what is usual.
fn widen(sorted: &[f64], level: Level) -> Level {
    let above = sorted.iter().map(|log| log - level.at).filter(|over| *over > 0.0).collect::<Vec<_>>();
    let upper = quantile(&above, 0.8).filter(|_| above.len() >= 5).map_or(0.0, |upper| (upper / TENTH.1).min(MOST));
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 tests")]
    let count = sorted.len() as f64;
    let variance = (count * level.noise.max(upper).powi(2) + USUAL_WEIGHT * USUAL.powi(2)) / (count + USUAL_WEIGHT);
    Level { noise: variance.sqrt(), ..level }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values spread evenly around a middle: their standard deviation is 0.58 of the width.
    fn even(count: u32, middle: f64, width: f64) -> Vec<f64> {
        (0..count).map(|place| middle + width * (2.0 * f64::from(place) / f64::from(count - 1) - 1.0)).collect()
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 5e-4
    }

    #[test]
    fn the_floor_is_a_tenth_or_three_times_the_noise() {
        assert!(near(Level { at: 1.0, noise: 0.01 }.floor(), -0.1054));
        assert!(near(Level { at: 1.0, noise: 0.05 }.floor(), -0.15));
    }

    #[test]
    fn quantiles_are_values() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0], 0.5), Some(3.0));
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0], 0.2), Some(1.0));
        assert_eq!(quantile(&[1.0, 2.0], 1.0), Some(2.0));
        assert_eq!(median(vec![9.0, 1.0, 5.0]), Some(5.0));
    }

    #[test]
    fn no_test_has_no_level() {
        assert_eq!(levels(Vec::new()), []);
    }

    #[test]
    fn one_cluster_is_one_level() {
        let found = levels(even(101, 2.0, 0.05));
        assert_eq!(found.len(), 1);
        assert!(near(found[0].at, 2.0), "{found:?}");
        assert!(near(found[0].noise, 0.0384), "{found:?}");
    }

    #[test]
    fn few_tests_have_the_usual_noise() {
        let found = levels(vec![1.0; 3]);
        assert!(near(found[0].at, 1.0));
        // The mean of 0.01 of three tests and 0.03 of eight, as variances.
        assert!(near(found[0].noise, 0.0261), "{found:?}");
        let found = levels(vec![1.0; 1000]);
        assert!(near(found[0].noise, 0.0103), "{found:?}");
    }

    #[test]
    fn slow_tests_do_not_move_the_level() {
        let mut logs = even(80, 0.0, 0.05);
        logs.extend(even(20, -0.7, 0.05));
        let found = levels(logs);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(near(found[0].at, 0.0006), "{found:?}");
        assert!(near(found[0].noise, 0.0388), "{found:?}");
    }

    #[test]
    fn slow_tests_may_be_the_most() {
        let mut logs = even(75, -0.7, 0.05);
        logs.extend(even(25, 0.0, 0.05));
        let found = levels(logs);
        assert!(near(found[0].at, -0.7), "{found:?}");
        let highest = found.iter().max_by(|a, b| a.at.total_cmp(&b.at)).unwrap();
        assert!(near(highest.at, 0.0) && near(highest.noise, 0.0383), "{found:?}");
    }

    #[test]
    fn the_faster_side_shows_the_noise() {
        let noise = |faster: usize| levels([vec![0.0; 30], vec![0.2; faster]].concat())[0].noise;
        assert!(noise(4) < 0.02, "four tests show nothing");
        assert!(noise(5) > 0.12 && noise(5) < 0.16, "0.2 of five in 35, and 0.03 of eight");
        let wild = levels(even(200, 0.0, 2.0));
        assert!(wild.iter().all(|level| level.noise <= MOST), "{wild:?}");
    }
}
