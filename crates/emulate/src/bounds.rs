//! Access to slices whose bounds an invariant guarantees. If a bound is violated, a debug build panics, and a release build
//! returns an error. Missing bytes are never replaced by invented ones.

use std::slice::SliceIndex;

/// A slice is shorter than an invariant guarantees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BoundsError(());

impl BoundsError {
    /// Returns the error; panics in debug builds.
    #[cold]
    #[track_caller]
    pub(crate) fn new() -> Self {
        debug_assert!(false, "a slice is shorter than it should be");
        Self(())
    }
}

/// `data[range]`.
#[track_caller]
pub(crate) fn part<T, I: SliceIndex<[T]>>(data: &[T], range: I) -> Result<&I::Output, BoundsError> {
    let Some(part) = data.get(range) else { return Err(BoundsError::new()) };
    Ok(part)
}

/// `&mut data[range]`.
#[track_caller]
pub(crate) fn part_mut<T, I: SliceIndex<[T]>>(data: &mut [T], range: I) -> Result<&mut I::Output, BoundsError> {
    let Some(part) = data.get_mut(range) else { return Err(BoundsError::new()) };
    Ok(part)
}

/// Converts a number that was checked against the length of a slice to an index.
#[track_caller]
pub(crate) fn index(number: u64) -> Result<usize, BoundsError> {
    let Ok(index) = usize::try_from(number) else { return Err(BoundsError::new()) };
    Ok(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_inside_the_bounds_are_those_of_the_slice() {
        let mut data = [1, 2, 3];
        part_mut(&mut data, 1..2).unwrap().fill(5);
        assert_eq!(part(&data, 1..), Ok(&[5, 3][..]));
        assert_eq!(index(7), Ok(7));
    }

    #[test]
    fn parts_outside_the_bounds_fail() {
        let accesses: [fn() -> bool; 2] = [|| part(&[1, 2], 1..3).is_err(), || part_mut(&mut [1, 2], 3..).is_err()];
        for access in accesses {
            let is_refused = match std::panic::catch_unwind(access) {
                Ok(is_error) => is_error && !cfg!(debug_assertions),
                Err(_panic) => cfg!(debug_assertions),
            };
            assert!(is_refused);
        }
    }
}
