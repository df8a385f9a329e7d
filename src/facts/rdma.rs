//! The user space of RDMA: libibverbs, which NCCL opens by name at run time, and the providers that it opens in turn
//! (rdma-core, `libibverbs/dynamic_driver.c`).

use crate::model::{ElfInfo, Endian, Fact, Gap, ImagePath, Site};
use crate::rootfs::loader::elf;

use super::{Context, Facts, key, pattern, text};

pattern!(PROVIDER, r"^lib(.+)-rdmav\d+\.so$");
pattern!(DRIVER, r"(?m)^driver[ \t]+([^\s]+)");

/// In NCCL's order (`src/misc/ibvsymbols.cc`). The first name exists only with a development package.
const NAMES: [&str; 2] = ["libibverbs.so", "libibverbs.so.1"];

/// `e_machine` of the two architectures that PyTorch has CUDA builds for.
const X86_64: u16 = 62;
const AARCH64: u16 = 183;

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let verbs = verbs(context, facts);
    facts.insert(
        key::RDMA_VERBS_OWNER,
        verbs
            .clone()
            .and_then(|path, at| context.packages.owner(&path).map_or(Fact::Absent, |value| Fact::Seen { value, at })),
    );
    facts.insert(key::RDMA_VERBS, verbs.clone().map(|path| path.to_string()));

    // The folder of providers lies beside the library.
    let folder = verbs.map(|path| path.parent().join(b"libibverbs"));
    let libraries = folder.clone().and_then(|folder, at| {
        let names: Vec<_> = context.rootfs.names(&folder).filter_map(|name| PROVIDER.captures(name)).collect();
        let names: Vec<_> = names.iter().map(|captures| String::from_utf8_lossy(&captures[1]).into_owned()).collect();
        // A link whose target is gone is no library.
        let usable = |name: &String| {
            context.rootfs.names(&folder).any(|file| {
                let is_it = PROVIDER.captures(file).is_some_and(|captures| captures[1] == *name.as_bytes());
                is_it && context.rootfs.open(&folder.join(file)).is_ok()
            })
        };
        Fact::Seen { value: names.into_iter().filter(usable).collect::<Vec<_>>(), at }
    });
    let named = drivers(context);
    let both = libraries.and_then(|libraries, _| match &named {
        Ok(named) => Fact::seen((libraries, named), []),
        Err(gap) => Fact::Unknown(gap.clone()),
    });
    let list = |keep: &dyn Fn(&[String], &str) -> bool| {
        both.clone().and_then(|(libraries, named), _| {
            let (names, at): (Vec<_>, Vec<_>) =
                named.iter().filter(|(name, _)| keep(&libraries, name)).cloned().unzip();
            if names.is_empty() { Fact::Absent } else { Fact::Seen { value: names, at } }
        })
    };
    facts.insert(key::RDMA_PROVIDERS, list(&|libraries, name| libraries.iter().any(|library| library == name)));
    facts.insert(key::RDMA_DANGLING_DRIVERS, list(&|libraries, name| !libraries.iter().any(|library| library == name)));
}

/// The library that NCCL's dlopen would give.
fn verbs(context: &Context<'_>, facts: &Facts) -> Fact<ImagePath> {
    let loaded = facts.get(key::NCCL_LOADED_PATH.name).value().map(|path| ImagePath::from(path.to_string().as_str()));
    let caller = loaded.and_then(|path| context.rootfs.open(&path).ok());
    // Without NCCL: whatever runs on the image's own machine.
    let known = caller.as_ref().and_then(|(path, file)| Some((path.clone(), elf(file)?.clone())));
    let (path, object) = known.unwrap_or_else(|| {
        let platform = context.config.and_then(|config| config.platform.as_ref());
        let machine = if platform.is_some_and(|platform| platform.architecture == "arm64") { AARCH64 } else { X86_64 };
        (ImagePath::root(), ElfInfo::bare(64, Endian::Little, machine))
    });
    for name in NAMES {
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

/// The providers that `/etc/libibverbs.d` names, sorted.
fn drivers(context: &Context<'_>) -> Result<Vec<(String, Site)>, Gap> {
    let folder = ImagePath::from("etc/libibverbs.d");
    let mut named = Vec::new();
    for name in context.rootfs.names(&folder).filter(|name| name.ends_with(b".driver")) {
        match text(context.rootfs, &folder.join(name)) {
            Fact::Seen { value, at } => named.extend(DRIVER.captures_iter(value).flat_map(|captures| {
                let driver = String::from_utf8_lossy(&captures[1]).into_owned();
                at.iter().map(move |site| (driver.clone(), site.clone())).collect::<Vec<_>>()
            })),
            Fact::Absent => {}
            Fact::Unknown(gap) => return Err(gap),
        }
    }
    named.sort();
    Ok(named)
}
