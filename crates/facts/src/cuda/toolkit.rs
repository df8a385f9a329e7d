//! The oldest driver for a CUDA release, the release that a driver supports, and the names of CUDA's libraries: the
//! table `cuda.yaml`. A driver newer than the table supports at least the newest release with a driver in it.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::table;
use model::{Fact, Gap, Table, Version};

use super::super::{Facts, key};

/// The table `cuda.yaml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolkitTable {
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the table"))]
    sources: BTreeMap<String, String>,
    majors: Vec<Major>,
    releases: Vec<Release>,
    /// Name prefixes of CUDA's own libraries.
    libraries: Vec<String>,
}

/// A major version of CUDA with minor version compatibility.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Major {
    cuda: String,
    /// The oldest driver.
    driver: String,
}

/// A release of CUDA, major and minor number.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Release {
    cuda: String,
    /// The driver branch that ships with it: the first number of the driver's version.
    branch: Option<u64>,
    /// The newest PTX ISA version that it supports.
    ptx: String,
    /// The oldest driver, if it differs from that of the major version.
    driver: Option<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the table"))]
    unknown: Option<String>,
    #[expect(dead_code, reason = "for readers of the table")]
    source: Option<String>,
}

pub(crate) static TABLE: Table<ToolkitTable> = table!("cuda");

pub(super) fn produce(facts: &mut Facts) {
    let cuda = facts.get(key::TORCH_CUDA_VERSION).clone();
    let needed = cuda.and_then(|value, at| match oldest_driver(&value) {
        Some(driver) => Fact::Seen { value: driver, at },
        None => Fact::Unknown(Gap::new(format!("the oldest driver for CUDA {value} is unknown"))),
    });
    facts.insert(key::TORCH_CUDA_DRIVER_MIN, needed);
}

/// The oldest driver that runs programs built with a CUDA release.
fn oldest_driver(cuda: &Version) -> Option<Version> {
    let same = |text: &str| Version::parse(text).is_some_and(|release| release == *cuda);
    let exact = TABLE.releases.iter().find(|release| same(&release.cuda)).and_then(|release| release.driver.as_ref());
    let is_of = |major: &&Major| Version::parse(&major.cuda).is_some_and(|release| release.major() == cuda.major());
    let floor = || TABLE.majors.iter().find(is_of).map(|major| &major.driver);
    Version::parse(exact.or_else(floor)?)
}

/// Name prefixes of CUDA's own libraries.
pub(super) fn libraries() -> &'static [String] {
    &TABLE.libraries
}

/// The CUDA release that a driver supports, as far as the table has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DriverRelease {
    /// The release of the driver's branch.
    Exactly(Version),
    /// The release of the newest older branch in the table: the driver supports it, and perhaps newer ones.
    AtLeast(Version),
}

/// The CUDA release that a driver supports; `None` if the driver is older than the table.
pub(crate) fn release_of(driver: &Version) -> Option<DriverRelease> {
    let branches = TABLE.releases.iter().filter_map(|release| Some((release.branch?, release)));
    let (branch, release) = branches.take_while(|(branch, _)| *branch <= driver.major()).last()?;
    let cuda = Version::parse(&release.cuda)?;
    Some(if branch == driver.major() { DriverRelease::Exactly(cuda) } else { DriverRelease::AtLeast(cuda) })
}

/// The first CUDA release whose driver compiles a PTX ISA version; `None` if the version is newer than the table.
pub(crate) fn release_for_ptx(ptx: &str) -> Option<Version> {
    let wanted = Version::parse(ptx)?;
    let compiles = |release: &&Release| Version::parse(&release.ptx).is_some_and(|newest| newest >= wanted);
    Version::parse(&TABLE.releases.iter().find(compiles)?.cuda)
}

/// Returns true when a CUDA release is not newer than the table.
pub(crate) fn is_in_table(cuda: &Version) -> bool {
    let newest = TABLE.releases.last().and_then(|release| Version::parse(&release.cuda));
    newest.is_some_and(|newest| *cuda <= newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        let version = |text: &str| Version::parse(text).unwrap();
        for group in ["majors", "releases", "libraries"] {
            assert!(TABLE.sources.contains_key(group), "{group} has no source");
        }
        for (earlier, later) in TABLE.releases.iter().zip(TABLE.releases.iter().skip(1)) {
            assert!(version(&earlier.cuda) < version(&later.cuda), "{} before {}", earlier.cuda, later.cuda);
            assert!(version(&earlier.ptx) <= version(&later.ptx), "PTX of {} and {}", earlier.cuda, later.cuda);
            assert!(later.branch.is_none_or(|branch| earlier.branch < Some(branch)), "branch of {}", later.cuda);
        }
        for release in &TABLE.releases {
            assert_eq!(release.branch.is_none(), release.unknown.is_some(), "{}", release.cuda);
            assert!(oldest_driver(&version(&release.cuda)).is_some(), "{}", release.cuda);
        }
    }

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
            assert_eq!(
                oldest_driver(&Version::parse(cuda).unwrap()).map(|driver| driver.to_string()).as_deref(),
                driver,
                "CUDA {cuda}"
            );
        }
    }

    #[test]
    fn releases_for_ptx() {
        for (ptx, cuda) in
            [("6.5", Some("10.2")), ("8.5", Some("12.5")), ("8.8", Some("12.9")), ("7.9", Some("12.0")), ("99.0", None)]
        {
            assert_eq!(release_for_ptx(ptx).map(|release| release.to_string()).as_deref(), cuda, "PTX {ptx}");
        }
    }

    #[test]
    fn releases_of_drivers() {
        let exactly = |cuda: &str| Version::parse(cuda).map(DriverRelease::Exactly);
        let at_least = |cuda: &str| Version::parse(cuda).map(DriverRelease::AtLeast);
        for (driver, release) in [
            ("535.104.05", exactly("12.2")),
            ("550.54", exactly("12.4")),
            ("615.71.09", exactly("13.4")),
            ("600.1", at_least("13.2")),
            ("999.1", at_least("13.4")),
            ("375.26", None),
        ] {
            assert_eq!(release_of(&Version::parse(driver).unwrap()), release, "driver {driver}");
        }
        for (cuda, expected) in [("12.8", true), ("13.5", true), ("99.0", false)] {
            assert_eq!(is_in_table(&Version::parse(cuda).unwrap()), expected, "CUDA {cuda}");
        }
    }
}
