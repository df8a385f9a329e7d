//! RDMA user space: libibverbs, which NCCL opens by name at run time, and the providers that libibverbs opens
//! (rdma-core, `libibverbs/dynamic_driver.c`).

mod providers;
pub(crate) mod versions;

use std::collections::BTreeMap;

use crate::launch::Setting;
use model::{ElfInfo, Endian, Fact, ImagePath, Version};
use rootfs::loader::elf;

use super::packages::is_stored;
use super::records::LibraryFile;
use super::{Context, Facts, key, nccl, settings};

/// Names of libibverbs in NCCL's order (`src/misc/ibvsymbols.cc`). Only development packages install the first.
const NAMES: [&str; 2] = ["libibverbs.so", "libibverbs.so.1"];

/// Names of libmlx5, for direct verbs, in NCCL's order (`src/misc/mlx5dvsymbols.cc`).
const MLX5_NAMES: [&str; 2] = ["libmlx5.so", "libmlx5.so.1"];

/// Libraries for other fast networks, and for connection management.
const OTHERS: &[&str] = &["librdmacm.so.1", "libefa.so.1", "libfabric.so.1", "libucp.so.0", "libsharp_coll.so."];

/// `e_machine` of the two architectures that PyTorch has CUDA builds for.
const X86_64: u16 = 62;
const AARCH64: u16 = 183;

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let version = nccl::loaded_strings(context, facts).value().and_then(|copy| Version::parse(&copy.version));
    let environment = settings::effective(context, version.as_ref());
    let first = version.filter(|version| Version::parse("2.30.3").is_some_and(|first| *version >= first));
    let own = first.and_then(|_| environment.get("NCCL_IBVERBS_LIB")).and_then(|set| set.value.as_deref());
    let verbs = opened(context, facts, own.into_iter().chain(NAMES));
    let mlx5 = match &verbs {
        Fact::Seen { .. } => opened(context, facts, MLX5_NAMES),
        other => other.clone(),
    };
    facts.insert(
        key::RDMA_VERBS_OWNER,
        verbs
            .clone()
            .and_then(|path, at| context.packages.owner(&path).map_or(Fact::Absent, |value| Fact::Seen { value, at })),
    );
    facts.insert(key::RDMA_NOT_LOADED, not_loaded(context, &verbs));
    facts.insert(key::RDMA_VERBS, verbs.clone());
    facts.insert(key::RDMA_MLX5, mlx5.clone());

    versions::produce(context, &verbs, &mlx5, facts);
    providers::produce(context, &verbs, facts);
    libraries(context, facts);
    forbidden(&environment, facts);
    runtime_needs(facts);
}

/// The library that NCCL's dlopen would return, from the first of these names that exists.
fn opened<'n>(context: &Context<'_>, facts: &Facts, names: impl IntoIterator<Item = &'n str>) -> Fact<ImagePath> {
    let loaded = facts.get(key::NCCL_LOADED_PATH).value();
    let caller = loaded.and_then(|path| context.rootfs.open(path).ok());
    // Without NCCL, use the image's architecture; without a configuration, that of its files.
    let known = caller.as_ref().and_then(|(path, file)| Some((path.clone(), elf(file)?.clone())));
    let (path, object) = known.unwrap_or_else(|| {
        let platform = context.config.and_then(|config| config.platform.as_ref());
        let machine = match platform.map(|platform| &*platform.architecture) {
            Some("arm64") => Some(AARCH64),
            Some(_) => None,
            None => context.rootfs.read_files().find_map(|(_, file)| Some(elf(&file)?.machine)),
        };
        (ImagePath::root(), ElfInfo::bare(64, Endian::Little, machine.unwrap_or(X86_64)))
    });
    for name in names {
        match context.loader.find(name, &path, &object) {
            Err(gap) => return Fact::Unknown(gap),
            Ok(None) => {}
            Ok(Some(bound)) => {
                let Ok((real, file)) = context.rootfs.open(&bound.path) else {
                    continue;
                };
                let site = file.site(&real, Some(&bound.route.to_string()));
                return Fact::seen(real, [site]);
            }
        }
    }
    Fact::Absent
}

/// Copies other than the one that NCCL would open.
fn not_loaded(context: &Context<'_>, verbs: &Fact<ImagePath>) -> Fact<Vec<String>> {
    verbs.clone().and_then(|verbs, _| {
        let opened = context.rootfs.open(&verbs).ok();
        let others = context.rootfs.read_files().filter_map(|(path, file)| {
            let is_other =
                !is_stored(context.rootfs, path) && opened.as_ref().is_none_or(|(_, opened)| !file.is_same(opened));
            let elf = elf(&file).filter(|elf| elf.soname.as_deref() == Some("libibverbs.so.1") && is_other)?;
            let private = elf.version_gives.iter().find(|version| version.starts_with("IBVERBS_PRIVATE_"));
            let private = private.map_or("no private interface", String::as_str);
            Some((format!("{path} ({private})"), file.site(path, None)))
        });
        let (value, at): (Vec<_>, Vec<_>) = others.unzip();
        if value.is_empty() { Fact::Absent } else { Fact::Seen { value, at } }
    })
}

/// Other libraries for fast networks, anywhere in the image.
fn libraries(context: &Context<'_>, facts: &mut Facts) {
    let mut records = Vec::new();
    let mut at = Vec::new();
    for (path, file) in context.rootfs.read_files() {
        let soname = elf(&file).and_then(|elf| elf.soname.as_deref()).unwrap_or_default();
        if OTHERS.iter().any(|name| soname.starts_with(name)) {
            let soname = Some(soname.to_owned());
            let owner = context.packages.owner(path);
            records.push(LibraryFile { path: Some(path.to_string()), soname, owner });
            at.push(file.site(path, None));
        }
    }
    facts
        .insert(key::RDMA_LIBRARIES, if records.is_empty() { Fact::Absent } else { Fact::Seen { value: records, at } });
}

/// Settings that keep NCCL from using RDMA.
fn forbidden(environment: &BTreeMap<String, Setting>, facts: &mut Facts) {
    let off = |name: &str, value: &str| match name {
        "NCCL_IB_DISABLE" => settings::number(value).is_some_and(|number| number != 0),
        "NCCL_NET" => value.eq_ignore_ascii_case("socket"),
        _ => false,
    };
    let found = environment.values().filter_map(|set| {
        let value = set.value.as_ref().filter(|value| off(&set.name, value))?;
        Some((format!("{}={value}", set.name), set.site.clone()))
    });
    let (texts, at): (Vec<_>, Vec<_>) = found.unzip();
    let fact = if texts.is_empty() { Fact::Absent } else { Fact::Seen { value: texts, at } };
    facts.insert(key::RDMA_FORBIDDEN, fact);
}

/// Device nodes, limits and capabilities come from the container's launch.
fn runtime_needs(facts: &mut Facts) {
    const NEEDS: [&str; 3] = [
        "the devices: docker run --device=/dev/infiniband, or NVIDIA_MOFED=enabled with NVIDIA's runtime, or a device plugin",
        "locked memory: docker run --ulimit memlock=-1, or --cap-add=IPC_LOCK",
        "the host's network, whose addresses RoCE uses: docker run --network=host",
    ];
    let fact = match facts.get(key::RDMA_PROVIDERS) {
        Fact::Seen { at, .. } => Fact::Seen { value: NEEDS.map(ToOwned::to_owned).to_vec(), at: at.clone() },
        Fact::Absent => Fact::Absent,
        Fact::Unknown(gap) => Fact::Unknown(gap.clone()),
    };
    facts.insert(key::RDMA_RUNTIME_NEEDS, fact);
}

#[cfg(test)]
mod tests;
