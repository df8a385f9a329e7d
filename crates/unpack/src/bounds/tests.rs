use super::*;
use crate::error::{DecodeError, InflateError};

#[test]
fn parts_inside_the_bounds_are_those_of_the_slice() {
    let mut data = [1, 2, 3, 4];
    assert_eq!(part(&data, 1..3), Ok(&[2, 3][..]));
    assert_eq!(array(&data, 2), Ok(&[3, 4]));
    copy(&mut data, 2, &[7, 8]).unwrap();
    part_mut(&mut data, 1..2).unwrap().fill(5);
    assert_eq!(data, [1, 5, 7, 8]);
}

/// Returns true if the access fails: with a panic in debug builds, with an error in others.
fn is_refused<T>(access: impl FnOnce() -> Result<T, BoundsError> + std::panic::UnwindSafe) -> bool {
    match std::panic::catch_unwind(access) {
        Ok(result) => !cfg!(debug_assertions) && result.is_err(),
        Err(_panic) => cfg!(debug_assertions),
    }
}

#[test]
fn parts_outside_the_bounds_fail() {
    assert!(is_refused(|| part(&[1, 2], 1..3).map(<[i32]>::len)));
    assert!(is_refused(|| part_mut(&mut [1, 2], 3..).map(|part| part.len())));
    assert!(is_refused(|| array::<_, 2>(&[1, 2], 1).copied()));
    assert!(is_refused(|| copy(&mut [1, 2], 1, &[3, 4])));
    assert!(is_refused(|| copy(&mut [1, 2], usize::MAX, &[3])));
}

#[test]
fn left_bounds_become_damage() {
    let error = if cfg!(debug_assertions) { BoundsError } else { BoundsError::new() };
    assert_eq!(InflateError::from(error).to_string(), DecodeError::from(error).to_string());
}
