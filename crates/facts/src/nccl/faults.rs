//! Known bugs of NCCL releases: the table `faults.yaml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::launch::Setting;
use crate::table;
use model::{Fact, Table, Version};
use rootfs::loader::elf;

use super::super::words::Linkage;
use super::super::{Context, Facts, key, settings};

/// A bug in a range of releases.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FaultRow {
    /// The first release that has it.
    since: String,
    /// The first release without it; `None` if no release is known to fix it.
    fixed: Option<String>,
    /// The last release that is known to have it; only where `fixed` is `None`.
    until: Option<String>,
    meets: Meets,
    /// The ELF machine of the library that the bug needs; `None` for any.
    machine: Option<u16>,
    /// The linkage of NCCL that the bug needs; `None` for any.
    linkage: Option<Linkage>,
    /// The symptom.
    what: String,
    /// The setting that avoids it: `NAME=NUMBER`, or only a name for any number that is not negative.
    off: Option<String>,
    source: String,
}

/// Jobs that a bug affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Meets {
    /// Any job on common hosts.
    Ordinary,
    /// Only jobs on special hosts or with special programs.
    Rare,
}

pub(crate) static TABLE: Table<Vec<FaultRow>> = table!("faults");

/// The properties of a loaded NCCL that decide which bugs it has.
#[derive(Clone, Copy, Debug, Default)]
struct NcclBuild {
    linkage: Option<Linkage>,
    machine: Option<u16>,
}

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let version = facts.get(key::NCCL_LOADED_VERSION).clone();
    let build =
        NcclBuild { linkage: facts.get(key::TORCH_NCCL_LINKAGE).value().copied(), machine: machine(context, facts) };
    for (key, meets) in [(key::NCCL_FAULTS, Meets::Ordinary), (key::NCCL_RARE_FAULTS, Meets::Rare)] {
        let fact = version.clone().and_then(|version, at| {
            let environment = settings::effective(context, Some(&version));
            let found: Vec<String> = TABLE
                .iter()
                .filter(|fault| fault.meets == meets && fault.is_in(&version, build))
                .filter(|fault| !fault.is_avoided(&environment))
                .map(FaultRow::sentence)
                .collect();
            if found.is_empty() { Fact::Absent } else { Fact::Seen { value: found, at } }
        });
        facts.insert(key, fact);
    }
}

/// The ELF machine of the loaded NCCL.
fn machine(context: &Context<'_>, facts: &Facts) -> Option<u16> {
    let path = facts.get(key::NCCL_LOADED_PATH).value()?;
    let (_, file) = context.rootfs.open(path).ok()?;
    elf(&file).map(|info| info.machine)
}

impl FaultRow {
    fn is_in(&self, version: &Version, build: NcclBuild) -> bool {
        let bound = |text: &str| Version::parse(text);
        let before_fix = self.fixed.as_deref().and_then(bound).is_some_and(|end| *version < end);
        let known_to_last = self.until.as_deref().and_then(bound).is_some_and(|last| *version <= last);
        bound(&self.since).is_some_and(|first| *version >= first)
            && (before_fix || known_to_last)
            && self.linkage.is_none_or(|needed| build.linkage == Some(needed))
            && self.machine.is_none_or(|needed| build.machine == Some(needed))
    }

    fn is_avoided(&self, environment: &BTreeMap<String, Setting>) -> bool {
        let Some(off) = &self.off else { return false };
        let (name, value) = off.split_once('=').map_or((off.as_str(), None), |(name, value)| (name, Some(value)));
        let set = environment.get(name).and_then(|setting| setting.value.as_deref());
        set.filter(|set| !set.is_empty()).is_some_and(|set| {
            settings::number(set).is_some_and(|number| value.map_or(number >= 0, |value| number.to_string() == value))
        })
    }

    fn sentence(&self) -> String {
        let off = self.off.as_ref().filter(|off| off.contains('='));
        let workaround = off.map_or(String::new(), |off| format!(" (workaround: {off})"));
        let end = match &self.fixed {
            Some(fixed) => format!("fixed in {fixed}"),
            None => format!("not fixed as of {}", self.until.as_deref().unwrap_or_default()),
        };
        format!("{}; {end}{workaround}: {}", self.what, self.source)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// ELF machines.
    const X86_64: u16 = 62;
    const AARCH64: u16 = 183;

    #[test]
    fn the_table_is_sound() {
        assert!(TABLE.is_sorted_by_key(|fault| Version::parse(&fault.since).unwrap()));
        let texts: BTreeSet<&str> = TABLE.iter().map(|fault| fault.what.as_str()).collect();
        assert_eq!(texts.len(), TABLE.len(), "a fault is there twice");
        for fault in TABLE.iter() {
            assert!(fault.fixed.is_some() != fault.until.is_some(), "{fault:?}");
            let end = fault.fixed.as_ref().or(fault.until.as_ref()).unwrap();
            let [since, end] = [&fault.since, end].map(|text| Version::parse(text).unwrap());
            assert!(since < end && fault.source.starts_with("https://"), "{fault:?}");
            assert!(fault.linkage.is_none_or(|linkage| linkage == Linkage::Static), "{fault:?}");
            assert!(fault.machine.is_none_or(|machine| [X86_64, AARCH64].contains(&machine)), "{fault:?}");
        }
    }

    #[test]
    fn faults_of_releases() {
        let of = |version: &str, build: NcclBuild, set: &[(&str, &str)]| -> Vec<&str> {
            let version = Version::parse(version).unwrap();
            let setting = |(name, value): &(&str, &str)| Setting {
                name: (*name).to_owned(),
                value: Some((*value).to_owned()),
                site: model::Site::Config(String::new()),
            };
            let environment = set.iter().map(|set| (set.0.to_owned(), setting(set))).collect();
            let faults = TABLE.iter().filter(|fault| fault.is_in(&version, build));
            faults.filter(|fault| !fault.is_avoided(&environment)).map(|fault| fault.what.as_str()).collect()
        };
        let found = |version: &str, linkage: Linkage, set: &[(&str, &str)]| {
            of(version, NcclBuild { linkage: Some(linkage), machine: Some(X86_64) }, set)
        };
        let has = |faults: Vec<&str>, what: &str| faults.iter().any(|fault| fault.starts_with(what));
        assert!(found("2.2.13", Linkage::Shared, &[]).is_empty() && found("2.31.2", Linkage::Static, &[]).is_empty());
        for (version, set, expected) in [
            ("2.23.4", &[][..], false),
            ("2.24.3", &[], true),
            ("2.26.2", &[], true),
            ("2.26.3", &[], false),
            ("2.26.2", &[("NCCL_CUMEM_HOST_ENABLE", "0")], false),
            ("2.26.2", &[("NCCL_CUMEM_HOST_ENABLE", "1")], true),
            ("2.26.2", &[("NCCL_CUMEM_HOST_ENABLE", "")], true),
        ] {
            assert_eq!(
                has(found(version, Linkage::Shared, set), "in a Docker container"),
                expected,
                "{version} {set:?}"
            );
        }
        for (version, expected) in [("2.26.2", false), ("2.26.3", true), ("2.30.7", true), ("2.31.2", false)] {
            assert_eq!(
                has(found(version, Linkage::Shared, &[]), "if the test of shared host memory"),
                expected,
                "{version}"
            );
        }
        for (linkage, expected) in [(Linkage::Shared, false), (Linkage::Static, true)] {
            assert_eq!(has(found("2.28.3", linkage, &[]), "CUDA's error"), expected, "{linkage:?}");
        }
        for (version, machine, expected) in [
            ("2.28.7", AARCH64, false),
            ("2.28.9", AARCH64, true),
            ("2.29.2", AARCH64, true),
            ("2.29.3", AARCH64, false),
            ("2.29.2", X86_64, false),
        ] {
            let build = NcclBuild { machine: Some(machine), ..NcclBuild::default() };
            assert_eq!(has(of(version, build, &[]), "on Arm, the proxy thread loses"), expected, "{version} {machine}");
        }
        for (value, expected) in [("3", false), ("0", false), ("", true), ("-1", true)] {
            assert_eq!(
                has(found("2.21.5", Linkage::Shared, &[("NCCL_IB_GID_INDEX", value)]), "on RoCE"),
                expected,
                "{value}"
            );
        }
    }

    #[test]
    fn a_sentence_names_the_release_and_the_workaround() {
        let sentence = |what: &str| TABLE.iter().find(|fault| fault.what.starts_with(what)).unwrap().sentence();
        let fixed = sentence("a hang when NVLink SHARP");
        assert!(fixed.contains("; fixed in 2.29.2 (workaround: NCCL_NVLS_ENABLE=0): https://"), "{fixed}");
        let open = sentence("initialization fails with `too many XML nodes");
        assert!(open.contains("; not fixed as of 2.30.7: https://"), "{open}");
    }
}
