//! The release of the RDMA libraries, and the symbol versions that NCCL looks up in them (`dlvsym`).

use serde::Deserialize;

use crate::table;
use model::{ElfInfo, Fact, Gap, ImagePath, Site, Table};
use rootfs::loader::elf;

use super::super::words::RdmaOrigin;
use super::super::{Context, Facts, key, nccl, pattern};

// libibverbs.so.1.14.44.0: the ABI version, then the release of rdma-core.
pattern!(RELEASE, r"^libibverbs\.so\.1\.\d+\.(\d[0-9A-Za-z.]*)$");

/// A symbol version that NCCL looks up: a row of the table `verbs.yaml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SymbolRow {
    version: String,
    /// The feature that NCCL loses without it.
    loses: String,
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the table"))]
    source: String,
}

pub(crate) static TABLE: Table<Vec<SymbolRow>> = table!("verbs");

/// The feature that NCCL loses without a version.
fn lost(version: &str) -> &'static str {
    TABLE.iter().find(|asked| asked.version == version).map_or("a function", |asked| &asked.loses)
}

pub(super) fn produce(context: &Context<'_>, verbs: &Fact<ImagePath>, mlx5: &Fact<ImagePath>, facts: &mut Facts) {
    let release = verbs.clone().and_then(|path, at| {
        let release = RELEASE.captures(path.file_name()).and_then(|captures| captures.get(1));
        let text = release.map(|release| String::from_utf8_lossy(release.as_bytes()).into_owned());
        text.map_or(Fact::Absent, |value| Fact::Seen { value, at })
    });
    let owner = facts.get(key::RDMA_VERBS_OWNER).value();
    let is_mellanox = owner.is_some_and(|owner| owner.contains("mlnx") || owner.contains("OFED"));
    facts.insert(
        key::RDMA_ORIGIN,
        release.clone().map(|release| {
            if is_mellanox || release.contains("mlnx") { RdmaOrigin::MlnxOfed } else { RdmaOrigin::RdmaCore }
        }),
    );
    facts.insert(key::RDMA_VERSION, release);

    let of_verbs = table(context, verbs);
    facts.insert(
        key::RDMA_PRIVATE_ABI,
        of_verbs.clone().and_then(|elf, at| {
            let number = elf.version_gives.iter().find_map(|version| version.strip_prefix("IBVERBS_PRIVATE_"));
            number.map_or(Fact::Absent, |value| Fact::Seen { value: value.to_owned(), at })
        }),
    );

    let copy = nccl::loaded_strings(context, facts);
    let missing = match (&copy, &of_verbs) {
        (Fact::Seen { value: copy, .. }, Fact::Seen { .. }) => {
            let mut missing: Vec<(String, Site)> = Vec::new();
            for (prefix, library) in [("IBVERBS_", &of_verbs), ("MLX5_", &table(context, mlx5))] {
                let Fact::Seen { value: elf, at } = library else { continue };
                let asked = copy.symbol_versions.iter().filter(|version| version.starts_with(prefix));
                for version in asked.filter(|version| !elf.version_gives.contains(version)) {
                    let text = format!("{version} ({})", lost(version));
                    missing.extend(at.first().map(|site| (text, site.clone())));
                }
            }
            let (value, at): (Vec<_>, Vec<_>) = missing.into_iter().unzip();
            if value.is_empty() { Fact::Absent } else { Fact::Seen { value, at } }
        }
        (_, Fact::Unknown(gap)) | (Fact::Unknown(gap), Fact::Seen { .. }) => Fact::Unknown(gap.clone()),
        _ => Fact::Absent,
    };
    facts.insert(key::RDMA_MISSING_VERSIONS, missing);
}

fn table<'a>(context: &Context<'a>, path: &Fact<ImagePath>) -> Fact<&'a ElfInfo> {
    path.clone().and_then(|path, at| {
        let read = context.rootfs.open(&path).ok().and_then(|(_, file)| elf(&file));
        read.map_or_else(
            || Fact::Unknown(Gap::new(format!("{path} could not be read"))),
            |value| Fact::Seen { value, at },
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        let order = |asked: &SymbolRow| {
            let (library, version) = asked.version.rsplit_once('_').unwrap();
            (library.to_owned(), model::Version::parse(version).unwrap())
        };
        assert!(TABLE.is_sorted_by(|one, next| order(one) < order(next)), "{:?}", *TABLE);
        assert!(TABLE.iter().all(|asked| !asked.loses.is_empty() && !asked.source.is_empty()));
        assert_eq!((lost("IBVERBS_1.8"), lost("IBVERBS_1.99")), ("relaxed ordering", "a function"));
    }
}
