//! Providers of libibverbs: the configured, the installed and the usable ones.

use crate::model::{Fact, Gap, ImagePath, Site};

use super::super::{Context, Draft, key, pattern, text};

pattern!(PROVIDER, r"^lib(.+)-rdmav(\d+)\.so$");
pattern!(DRIVER, r"(?m)^driver[ \t]+([^\s]+)");

/// A driver name, and the file that names it.
type Named = (String, Site);

/// A provider library in libibverbs's provider directory.
struct ProviderCandidate {
    name: String,
    abi: String,
    path: ImagePath,
}

pub(super) fn produce(context: &Context<'_>, verbs: &Fact<ImagePath>, facts: &mut Draft<'_>) {
    let abi = facts.get(key::RDMA_PRIVATE_ABI).value().cloned();
    // libibverbs opens providers of its own private ABI; if that is unknown, any provider counts.
    let fits = |library: &ProviderCandidate| abi.as_ref().is_none_or(|abi| *abi == library.abi);
    let libraries = verbs.clone().map(|path| libraries(context, &path));
    let named = drivers(context);
    let both = libraries.and_then(|libraries, _| match &named {
        Ok(named) => Fact::seen((libraries, named.as_slice()), []),
        Err(gap) => Fact::Unknown(gap.clone()),
    });
    let list = |keep: &dyn Fn(&[ProviderCandidate], &str) -> bool| match &both {
        Fact::Seen { value: (libraries, named), .. } => {
            let (names, at): (Vec<_>, Vec<_>) = named.iter().filter(|(name, _)| keep(libraries, name)).cloned().unzip();
            if names.is_empty() { Fact::Absent } else { Fact::Seen { value: names, at } }
        }
        Fact::Absent => Fact::Absent,
        Fact::Unknown(gap) => Fact::Unknown(gap.clone()),
    };
    facts.insert(
        key::RDMA_PROVIDERS,
        list(&|libraries, name| libraries.iter().any(|library| is(library, name) && fits(library))),
    );
    facts.insert(
        key::RDMA_DANGLING_DRIVERS,
        list(&|libraries, name| !libraries.iter().any(|library| is(library, name))),
    );
    facts.insert(key::RDMA_BROKEN_PROVIDERS, broken(context, verbs, &both, abi.as_deref(), facts));
}

/// Returns true for a driver's name, or for the prefix of its library's path.
fn is(library: &ProviderCandidate, driver: &str) -> bool {
    library.name == driver || (driver.starts_with('/') && driver.ends_with(&format!("/lib{}", library.name)))
}

/// The provider directory is next to libibverbs. Dangling links are skipped.
fn libraries(context: &Context<'_>, verbs: &ImagePath) -> Vec<ProviderCandidate> {
    let folder = verbs.parent().join(b"libibverbs");
    let found = context.rootfs.names(&folder).filter_map(|file| {
        let captures = PROVIDER.captures(file)?;
        let text = |part: usize| captures.get(part).map(|part| String::from_utf8_lossy(part.as_bytes()).into_owned());
        let path = folder.join(file);
        context.rootfs.open(&path).ok()?;
        Some(ProviderCandidate { name: text(1)?, abi: text(2)?, path })
    });
    found.collect()
}

/// Named providers that are installed but unusable: built for another libibverbs, or rejected by the dynamic loader.
fn broken(
    context: &Context<'_>,
    verbs: &Fact<ImagePath>,
    both: &Fact<(Vec<ProviderCandidate>, &[Named])>,
    abi: Option<&str>,
    facts: &Draft<'_>,
) -> Fact<Vec<String>> {
    let (libraries, named) = match both {
        Fact::Seen { value, .. } => value,
        Fact::Absent => return Fact::Absent,
        Fact::Unknown(gap) => return Fact::Unknown(gap.clone()),
    };
    let caller = facts.get(key::NCCL_LOADED_PATH).value();
    let mut found: Vec<(String, Site)> = Vec::new();
    for (name, site) in *named {
        let own: Vec<_> = libraries.iter().filter(|library| is(library, name)).collect();
        let fitting = own.iter().find(|library| abi.is_none_or(|abi| abi == library.abi));
        match (fitting, own.first(), abi, verbs.value(), caller) {
            (None, Some(other), Some(abi), ..) => found.push((
                format!(
                    "{} is for a libibverbs with IBVERBS_PRIVATE_{}, and this one has {abi}",
                    other.path, other.abi
                ),
                site.clone(),
            )),
            (Some(library), _, _, Some(verbs), Some(caller)) => {
                let chain = [verbs.to_string(), library.path.to_string()];
                match context.loader.dlopen(caller, &chain.each_ref().map(String::as_str)) {
                    Fact::Seen { value: Err(why), .. } => {
                        found.push((format!("{}: {why}", library.path), site.clone()));
                    }
                    Fact::Unknown(gap) => return Fact::Unknown(gap),
                    Fact::Seen { value: Ok(_), .. } | Fact::Absent => {}
                }
            }
            _ => {}
        }
    }
    let (value, at): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    if value.is_empty() { Fact::Absent } else { Fact::Seen { value, at } }
}

/// The providers that `/etc/libibverbs.d` names, sorted.
fn drivers(context: &Context<'_>) -> Result<Vec<Named>, Gap> {
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
