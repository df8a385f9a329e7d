//! Which driver a CUDA release needs, and which release a driver brings.
//!
//! Sources: CUDA Toolkit Release Notes, "CUDA Toolkit and Corresponding Driver Versions"; CUDA Compatibility, "Minor
//! Version Compatibility"; the names of NVIDIA's installers, which hold both versions.

use crate::model::{Fact, Gap, Value, Version};

use super::super::{Facts, key};

/// Oldest driver, by major version of CUDA, since there is minor version compatibility.
const FLOORS: [(u64, &str); 3] = [(11, "450.80.02"), (12, "525.60.13"), (13, "580.65.06")];

/// Releases of an own driver: those from before minor version compatibility, and the first with it, which came earlier.
const EXACT: [(&str, &str); 7] = [
    ("9.0", "384.81"),
    ("9.1", "390.46"),
    ("9.2", "396.26"),
    ("10.0", "410.48"),
    ("10.1", "418.39"),
    ("10.2", "440.33"),
    ("11.0", "450.36.06"),
];

/// The CUDA release of each branch of the driver: the first number of its version.
const BRANCHES: [(u64, &str); 27] = [
    (384, "9.0"),
    (390, "9.1"),
    (396, "9.2"),
    (410, "10.0"),
    (418, "10.1"),
    (440, "10.2"),
    (450, "11.0"),
    (455, "11.1"),
    (460, "11.2"),
    (465, "11.3"),
    (470, "11.4"),
    (495, "11.5"),
    (510, "11.6"),
    (515, "11.7"),
    (520, "11.8"),
    (525, "12.0"),
    (530, "12.1"),
    (535, "12.2"),
    (545, "12.3"),
    (550, "12.4"),
    (555, "12.5"),
    (560, "12.6"),
    (565, "12.7"),
    (570, "12.8"),
    (575, "12.9"),
    (580, "13.0"),
    (590, "13.1"),
];

pub(super) fn produce(facts: &mut Facts) {
    let cuda = facts.get(key::TORCH_CUDA_VERSION.name).clone();
    let needed = cuda.and_then(|value, at| match oldest_driver(&value) {
        Some(driver) => Fact::Seen { value: driver, at },
        None => Fact::Unknown(Gap::new(format!("which driver CUDA {value} needs is not known here"))),
    });
    facts.insert(key::TORCH_CUDA_DRIVER_MIN, needed);
}

/// The oldest driver that runs programs of a CUDA release.
fn oldest_driver(cuda: &Value) -> Option<Version> {
    let cuda = Version::parse(&cuda.to_string())?;
    let same = |text: &str| Version::parse(text).is_some_and(|release| release == cuda);
    let exact = EXACT.iter().find(|(release, _)| same(release)).map(|(_, driver)| *driver);
    let floor = || FLOORS.iter().find(|(major, _)| *major == cuda.major()).map(|(_, driver)| *driver);
    Version::parse(exact.or_else(floor)?)
}

/// The CUDA release that a driver brings.
pub(in crate::facts) fn release_of(driver: &Version) -> Option<Version> {
    Version::parse(BRANCHES.iter().find(|(branch, _)| *branch == driver.major())?.1)
}

/// The first CUDA release whose driver compiles a version of the PTX language (PTX ISA, "PTX Release History").
pub(in crate::facts) fn release_for_ptx(ptx: &str) -> Option<Version> {
    let (major, minor) = ptx.split_once('.')?;
    let (major, minor): (u16, u16) = (major.parse().ok()?, minor.parse().ok()?);
    let (major, minor) = match (major, minor) {
        (6, 0..=2) => (9, minor),
        (6, 3..=5) => (10, minor - 3),
        (7, 0..=8) => (11, minor),
        (8, 0..=5) => (12, minor),
        (8, 6..=8) => (12, minor + 1),
        (9, 0..=4) => (13, minor),
        _ => return None,
    };
    Version::parse(&format!("{major}.{minor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_of_releases() {
        for (cuda, driver) in [
            ("9.2", Some("396.26")),
            ("10.2", Some("440.33")),
            ("11.0", Some("450.36.06")),
            ("11.7", Some("450.80.02")),
            ("12.8", Some("525.60.13")),
            ("13.0", Some("580.65.06")),
            ("8.0", None),
            ("14.0", None),
        ] {
            assert_eq!(oldest_driver(&cuda.into()).map(|driver| driver.to_string()).as_deref(), driver, "CUDA {cuda}");
        }
    }

    #[test]
    fn releases_for_ptx() {
        for (ptx, cuda) in
            [("6.5", Some("10.2")), ("7.8", Some("11.8")), ("8.8", Some("12.9")), ("7.9", None), ("", None)]
        {
            assert_eq!(release_for_ptx(ptx).map(|release| release.to_string()).as_deref(), cuda, "PTX {ptx}");
        }
    }

    #[test]
    fn releases_of_drivers() {
        for (driver, cuda) in [("535.104.05", Some("12.2")), ("550.54", Some("12.4")), ("600.1", None)] {
            let release = release_of(&Version::parse(driver).unwrap());
            assert_eq!(release.map(|release| release.to_string()).as_deref(), cuda, "driver {driver}");
        }
    }
}
