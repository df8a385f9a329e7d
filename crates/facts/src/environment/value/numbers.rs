//! Numbers and booleans: NCCL's (`src/misc/param.cc`) and PyTorch's (`torch/csrc/distributed/c10d/Utils.hpp`).

use model::Version;

use super::super::super::settings::{CNumber, strtoll};
use super::Misreading;

const STOPS: &str = "PyTorch stops with `Invalid value for environment variable`";

/// A number, and the range outside which NCCL clamps, ignores or rejects it.
pub(super) fn number(value: &str, range: Option<(i64, i64)>) -> Option<Misreading> {
    unlike(value).map(Misreading::ignored).or_else(|| {
        let number = strtoll(value).number?;
        let (least, most) = range?;
        let what = || Misreading::ignored(format!("{number} is not between {least} and {most}"));
        (!(least..=most).contains(&number)).then(what)
    })
}

/// What strtoll makes of a value that is not plainly a number.
fn unlike(value: &str) -> Option<String> {
    match strtoll(value) {
        CNumber { number: None, .. } => Some("it does not fit in 64 bits, so NCCL uses its default".to_owned()),
        CNumber { digits: "", .. } => Some("it is not a number, so NCCL reads 0".to_owned()),
        CNumber { number: Some(number), rest, .. } if !rest.trim().is_empty() => {
            Some(format!("NCCL reads it as {number} and ignores '{rest}'"))
        }
        CNumber { number: Some(number), octal: true, .. } => {
            Some(format!("NCCL reads it as {number}: a number with a leading 0 is octal"))
        }
        CNumber { .. } => None,
    }
}

/// A switch that only the number 1 turns on (`ncclGetLevel` in `src/graph/paths.cc`).
pub(super) fn one(value: &str) -> Option<Misreading> {
    unlike(value).map(Misreading::ignored).or_else(|| {
        let number = strtoll(value).number?;
        let what = || Misreading::ignored(format!("it has no effect: only 1 does, and NCCL reads {number}"));
        (!(0..=1).contains(&number)).then(what)
    })
}

/// Threads of a block (`getNthreads` in `src/graph/tuning.cc`): multiples of a warp; 0 and less mean the default.
pub(super) fn threads(value: &str, range: Option<(i64, i64)>) -> Option<Misreading> {
    const WARP: i64 = 32;
    unlike(value).map(Misreading::ignored).or_else(|| {
        let number = strtoll(value).number?;
        let (least, most) = range?;
        let is_fit = number <= 0 || (number % WARP == 0 && (least..=most).contains(&number));
        let what = || format!("{number} is not a multiple of {WARP} between {least} and {most}");
        (!is_fit).then(|| Misreading::ignored(what()))
    })
}

/// Size of a buffer, of which NCCL keeps 32 bits (`computeBuffSizes` in `src/init.cc`); -2 means the default. A size that is too small
/// or not whole breaks the first collective.
pub(super) fn buffer(value: &str, unit: Option<i64>, range: Option<(i64, i64)>) -> Option<Misreading> {
    const DEFAULT: i64 = -2;
    let broken = || {
        let number = strtoll(value).number?;
        let unit = unit?;
        let (least, _) = range?;
        let size = number & 0xFFFF_FFFF;
        let is_negative = size > i64::from(i32::MAX);
        let is_fit = number == DEFAULT || (!is_negative && size >= least && size % unit == 0);
        let what = || {
            format!(
                "the first collective fails: NCCL reads {number}, and the size is a multiple of {unit} bytes, {least} or more"
            )
        };
        (!is_fit).then(|| Misreading::stops(what()))
    };
    broken().or_else(|| unlike(value).map(Misreading::ignored))
}

/// A number without a sign, in base 0, in full (`ncclSocketDefaultMagic` in `src/misc/socket.cc`).
pub(super) fn unsigned(value: &str) -> Option<Misreading> {
    let read = strtoll(value);
    if read.digits.is_empty() || !read.rest.is_empty() {
        return Some(Misreading::ignored("NCCL ignores it: it is not a whole number"));
    }
    read.octal.then(|| Misreading::ignored("NCCL reads it as octal: it has a leading 0"))
}

/// Numbers of processors, separated by commas (`ncclStrListToCpuset` in `src/include/cpuset.h`).
pub(super) fn processors(value: &str) -> Option<Misreading> {
    let found = value.split(',').filter(|entry| !entry.is_empty()).find_map(|entry| Some((entry, unlike(entry)?)));
    found.map(|(entry, what)| Misreading::ignored(format!("'{entry}': {what}")))
}

/// Six sizes in bytes, separated by blanks (`ncclTopoTuneModel` in `src/graph/tuning.cc`).
pub(super) fn thresholds(value: &str) -> Option<Misreading> {
    const SIZES: usize = 6;
    let read = value.split_ascii_whitespace().take_while(|size| size.parse::<i64>().is_ok()).count();
    let what = || format!("NCCL reads {read} of {SIZES} numbers separated by blanks");
    (read != SIZES || value.split_ascii_whitespace().count() != SIZES).then(|| Misreading::ignored(what()))
}

/// PyTorch's flags of `c10/util/env.h`, which are 0 or 1. It warns of other values and ignores them.
pub(super) fn digit(value: &str) -> Option<Misreading> {
    (!matches!(value, "0" | "1")).then(|| Misreading::ignored("PyTorch ignores it: the flag is 0 or 1"))
}

/// Seconds that PyTorch reads with `std::stoi`, for communicators that do not block.
pub(super) fn timeout(value: &str) -> Option<Misreading> {
    let what = "it is not a number of seconds: PyTorch stops at it with TORCH_NCCL_USE_COMM_NONBLOCKING";
    stoi(value).is_none().then(|| Misreading::ignored(what)).or_else(|| shortened(value))
}

/// PyTorch's booleans are words since 2.2; before, only the numbers 0 and 1.
pub(super) fn switch(value: &str, version: &Version) -> Option<Misreading> {
    let has_words = Version::parse("2.2").is_some_and(|first| *version >= first);
    if has_words {
        return truth(value).is_none().then(|| Misreading::stops(STOPS));
    }
    let is_read = stoi(value).is_some_and(|(number, _)| (0..=1).contains(&number));
    if is_read { shortened(value) } else { Some(Misreading::stops(STOPS)) }
}

/// The number of one of PyTorch's words for a boolean.
pub(super) fn truth(value: &str) -> Option<i64> {
    match value.to_ascii_lowercase().as_str() {
        "y" | "yes" | "1" | "t" | "true" => Some(1),
        "n" | "no" | "0" | "f" | "false" => Some(0),
        _ => None,
    }
}

/// An integer of PyTorch, and the values that have a meaning.
pub(super) fn integer(value: &str, range: Option<(i64, i64)>) -> Option<Misreading> {
    let Some((number, _)) = stoi(value) else { return Some(Misreading::stops(STOPS)) };
    let what = |(least, most)| Misreading::ignored(format!("{number} is not between {least} and {most}"));
    let outside = range.filter(|(least, most)| !(*least..=*most).contains(&i64::from(number)));
    outside.map(what).or_else(|| shortened(value))
}

/// A number that PyTorch reads without what follows it.
fn shortened(value: &str) -> Option<Misreading> {
    let (number, rest) = stoi(value).filter(|(_, rest)| !rest.trim().is_empty())?;
    Some(Misreading::ignored(format!("PyTorch reads it as {number} and ignores '{rest}'")))
}

/// C++'s `std::stoi`: a decimal number and an ignored rest.
fn stoi(value: &str) -> Option<(i32, &str)> {
    let text = value.trim_start();
    let length = text
        .bytes()
        .enumerate()
        .take_while(|(index, b)| b.is_ascii_digit() || (*index == 0 && matches!(b, b'-' | b'+')))
        .count();
    let (number, rest) = text.split_at_checked(length)?;
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_is_what_stoi_reads() {
        for (value, number) in [
            ("600s", Some(600)),
            (" 7", Some(7)),
            ("-5", Some(-5)),
            ("+5", Some(5)),
            ("1-2", Some(1)),
            ("--1", None),
            ("s600", None),
            ("", None),
            ("2147483647", Some(i32::MAX)),
            ("2147483648", None),
        ] {
            assert_eq!(stoi(value).map(|(number, _)| number), number, "{value}");
        }
    }

    #[test]
    fn integers_outside_their_meanings_do_not_stop_the_job() {
        assert_eq!(integer("3", Some((0, 3))), None);
        let four = integer("4", Some((0, 3))).unwrap();
        assert_eq!((four.what.as_str(), four.stops), ("4 is not between 0 and 3", false));
        assert!(integer("true", Some((0, 3))).unwrap().stops);
        let shortened = integer("600s", None).unwrap();
        assert_eq!((shortened.what.as_str(), shortened.stops), ("PyTorch reads it as 600 and ignores 's'", false));
        assert_eq!(integer("600 ", None), None);
    }

    #[test]
    fn lists_and_whole_numbers() {
        let is_read = |found: Option<Misreading>| found.is_none();
        for (value, whole) in
            [("7", true), ("0x1F", true), ("07", true), ("010", false), ("7 ", false), ("x", false), ("", false)]
        {
            assert_eq!(is_read(unsigned(value)), whole, "{value}");
        }
        for (value, list) in [("0,1,2", true), ("0x3,,4", true), ("0-3", false), ("0, 1", true), ("all", false)] {
            assert_eq!(is_read(processors(value)), list, "{value}");
        }
        for (value, six) in [
            ("1 2 3 4 5 6", true),
            ("1 2 3 4 5", false),
            ("1,2,3,4,5,6", false),
            ("1 2 3 4 5 6 7", false),
            ("1 2 3 4 5 6 x", false),
        ] {
            assert_eq!(is_read(thresholds(value)), six, "{value}");
        }
        for (value, flag) in [("0", true), ("1", true), ("true", false), ("", false), ("01", false)] {
            assert_eq!(is_read(digit(value)), flag, "{value}");
        }
        assert!(is_read(timeout("60")) && !is_read(timeout("a minute")));
    }

    #[test]
    fn only_one_switches_on() {
        for (value, what) in [
            ("0", None),
            ("1", None),
            ("0x1", None),
            ("2", Some("it has no effect: only 1 does, and NCCL reads 2")),
            ("-1", Some("it has no effect: only 1 does, and NCCL reads -1")),
            ("true", Some("it is not a number, so NCCL reads 0")),
            ("1x", Some("NCCL reads it as 1 and ignores 'x'")),
        ] {
            assert_eq!(one(value).map(|found| found.what).as_deref(), what, "{value}");
        }
    }

    #[test]
    fn threads_are_whole_warps() {
        for (value, is_fit) in [
            ("64", true),
            ("512", true),
            ("0", true),
            ("-2", true),
            ("32", false),
            ("100", false),
            ("544", false),
            ("x", false),
        ] {
            assert_eq!(threads(value, Some((64, 512))).is_none(), is_fit, "{value}");
        }
    }

    #[test]
    fn buffers_are_whole_units() {
        let stops = |found: Option<Misreading>| found.is_some_and(|found| found.stops);
        for (value, breaks) in [
            ("8", false),
            ("120", false),
            ("4194312", false),
            ("-2", false),
            ("4294967296", false),
            ("99999999999999999999", false),
            ("true", false),
            ("1", true),
            ("1x", true),
            ("100", true),
            ("4194305", true),
            ("-1", true),
            ("-3", true),
            ("2147483648", true),
            ("4294967295", true),
        ] {
            assert_eq!(stops(buffer(value, Some(8), Some((0, 2_147_483_640)))), breaks, "{value}");
        }
        for (value, breaks) in [
            ("256", false),
            ("524288", false),
            ("-2", false),
            ("128", true),
            ("1000", true),
            ("true", true),
            ("-1", true),
        ] {
            assert_eq!(stops(buffer(value, Some(128), Some((256, 2_147_483_520)))), breaks, "{value}");
        }
        assert_eq!(
            buffer("100", Some(8), Some((0, 2_147_483_640))).unwrap().what,
            "the first collective fails: NCCL reads 100, and the size is a multiple of 8 bytes, 0 or more"
        );
        assert!(!buffer("16x", Some(8), Some((0, 2_147_483_640))).unwrap().stops);
    }

    #[test]
    fn ranges_hold_their_ends() {
        for (value, range, expected) in [
            ("4", Some((4, 8)), None),
            ("8", Some((4, 8)), None),
            ("3", Some((4, 8)), Some("3 is not between 4 and 8")),
            ("9", Some((4, 8)), Some("9 is not between 4 and 8")),
            ("9", None, None),
            ("5 ", Some((4, 8)), None),
            ("0x", None, Some("NCCL reads it as 0 and ignores 'x'")),
        ] {
            assert_eq!(number(value, range).map(|found| found.what).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn switches_are_words_since_2_2_and_numbers_before() {
        for (value, before, since) in [
            ("0", true, true),
            ("1", true, true),
            ("2", false, false),
            ("-1", false, false),
            ("01", true, false),
            ("YES", false, true),
            ("n", false, true),
            ("on", false, false),
            ("", false, false),
        ] {
            for (version, is_good) in [("2.1.2", before), ("2.2", since), ("2.10", since)] {
                let found = switch(value, &Version::parse(version).unwrap());
                assert_eq!(found.is_none(), is_good, "{value} for {version}");
                assert!(found.is_none_or(|found| found.stops), "{value} for {version}");
            }
        }
    }
}
