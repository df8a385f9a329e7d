//! Providers of libibverbs: the configured, the installed and the usable ones (rdma-core, `libibverbs/dynamic_driver.c`).

use model::{Fact, Gap, ImagePath, Site};
use rootfs::loader::elf;

use super::super::packages::is_stored;
use super::super::{Context, Facts, key, pattern, text};

pattern!(PROVIDER, r"^lib(.+)-rdmav(\d+)\.so$");
pattern!(DRIVER, r"(?m)^[ \t]*driver[ \t]+([^\s]+)");

/// A driver name, and the file that names it.
type Named = (String, Site);

/// The places where a libibverbs looks for providers.
#[derive(Clone)]
struct ProviderSearch {
    verbs: ImagePath,
    /// The directory that is compiled into libibverbs, or the usual one next to it.
    folder: ImagePath,
    /// The directory whose files name the providers: the one that is compiled into libibverbs, or the usual one.
    config: ImagePath,
    /// Version of the private interface in the names of files, if known.
    abi: Option<String>,
}

/// A provider library that libibverbs opens, or one that is for another libibverbs.
struct ProviderCandidate {
    /// The names that libibverbs passes to dlopen, up to the first that succeeds.
    names: Vec<String>,
    path: ImagePath,
    /// The version in the file's name, if it is not the one that libibverbs looks for.
    other_abi: Option<String>,
}

/// A provider that is named, and what libibverbs makes of it.
#[derive(Clone)]
struct NamedProvider {
    named: Named,
    has_library: bool,
    fault: Result<Option<String>, Gap>,
}

pub(super) fn produce(context: &Context<'_>, verbs: &Fact<ImagePath>, facts: &mut Facts) {
    let abi = facts.get(key::RDMA_PRIVATE_ABI).value().cloned();
    let search = verbs.clone().map(|verbs| ProviderSearch::new(context, verbs, abi));
    facts.insert(key::RDMA_CONFIG, search.clone().map(|search| search.config));
    let caller = facts.get(key::NCCL_LOADED_PATH).value();
    let found = search.and_then(|search, _| {
        let judged = |named: Named| -> Result<NamedProvider, Gap> {
            let candidate = search.find(context, &named.0)?;
            let fault = candidate.as_ref().map_or(Ok(None), |found| search.fault(context, found, caller));
            Ok(NamedProvider { named, has_library: candidate.is_some(), fault })
        };
        let found = drivers(context, &search.config).and_then(|named| named.into_iter().map(judged).collect());
        found.map_or_else(Fact::Unknown, |found: Vec<_>| Fact::seen(found, []))
    });
    let list = |of: &dyn Fn(&NamedProvider) -> Option<String>| {
        found.clone().and_then(|found, _| {
            let listed = found.iter().filter_map(|provider| Some((of(provider)?, provider.named.1.clone())));
            let (value, at): (Vec<String>, Vec<Site>) = listed.unzip();
            if value.is_empty() { Fact::Absent } else { Fact::Seen { value, at } }
        })
    };
    let name = |provider: &NamedProvider| provider.named.0.clone();
    let fits = |provider: &NamedProvider| provider.has_library && !matches!(provider.fault, Ok(Some(_)));
    let providers = list(&|provider| fits(provider).then(|| name(provider)));
    let dangling = list(&|provider| (!provider.has_library).then(|| name(provider)));
    let gap = found.value().into_iter().flatten().find_map(|provider| provider.fault.as_ref().err().cloned());
    let broken = gap.map_or_else(|| list(&|provider| provider.fault.clone().ok()?), Fact::Unknown);
    facts.insert(key::RDMA_PROVIDERS, providers);
    facts.insert(key::RDMA_DANGLING_DRIVERS, dangling);
    facts.insert(key::RDMA_BROKEN_PROVIDERS, broken);
}

impl ProviderSearch {
    fn new(context: &Context<'_>, verbs: ImagePath, abi: Option<String>) -> Self {
        let opened = context.rootfs.open(&verbs).ok();
        let info = opened.as_ref().and_then(|(_, file)| elf(file));
        let config = info.and_then(|info| info.provider_config.as_deref()).unwrap_or("/etc/libibverbs.d");
        let config = ImagePath::from(config);
        let pattern = info.and_then(|info| info.provider_pattern.as_deref()).map(ImagePath::from);
        let Some(pattern) = pattern else {
            let folder = verbs.parent().join(b"libibverbs");
            return Self { verbs, folder, config, abi };
        };
        let own = PROVIDER.captures(pattern.file_name()).and_then(|captures| captures.get(2));
        let own = own.map(|abi| String::from_utf8_lossy(abi.as_bytes()).into_owned());
        Self { verbs, folder: pattern.parent(), config, abi: own.or(abi) }
    }

    /// The library of a driver: by its own path if the driver is one, else in the compiled directory, else by the
    /// loader's search for the plain name. If there is none, one of another release.
    fn find(&self, context: &Context<'_>, driver: &str) -> Result<Option<ProviderCandidate>, Gap> {
        let (folder, stem) = match driver.rsplit_once('/') {
            Some((folder, stem)) => (ImagePath::from(folder), stem.to_owned()),
            None => (self.folder.clone(), format!("lib{driver}")),
        };
        let Some(abi) = &self.abi else { return Ok(any(context, &folder, &stem, None)) };
        let file = format!("{stem}-rdmav{abi}.so");
        let path = folder.join(file.as_bytes());
        let is_path = driver.contains('/');
        if context.rootfs.open(&path).is_ok() {
            let plain = (!is_path).then_some(file);
            let names = std::iter::once(path.to_string()).chain(plain).collect();
            return Ok(Some(ProviderCandidate { names, path, other_abi: None }));
        }
        if !is_path
            && let Ok((_, verbs)) = context.rootfs.open(&self.verbs)
            && let Some(info) = elf(&verbs)
            && let Some(bound) = context.loader.find(&file, &self.verbs, info)?
        {
            return Ok(Some(ProviderCandidate { names: vec![file], path: bound.path, other_abi: None }));
        }
        let own = any(context, &folder, &stem, Some(abi));
        Ok(own.or_else(|| if is_path { None } else { Self::of_another(context, &stem, abi) }))
    }

    /// A provider of another release, where another libibverbs of the image looks.
    fn of_another(context: &Context<'_>, stem: &str, abi: &String) -> Option<ProviderCandidate> {
        let copies = context.rootfs.read_files().filter(|(path, file)| {
            let is_copy = elf(file).is_some_and(|elf| elf.soname.as_deref() == Some("libibverbs.so.1"));
            is_copy && !is_stored(context.rootfs, path)
        });
        let mut folders = copies.map(|(path, _)| Self::new(context, path.clone(), None).folder);
        let found = folders.find_map(|folder| any(context, &folder, stem, Some(abi)));
        found.filter(|found| found.other_abi.as_ref() != Some(abi))
    }

    /// Why libibverbs cannot use a provider: it is for another libibverbs, or the dynamic loader rejects it.
    fn fault(
        &self,
        context: &Context<'_>,
        candidate: &ProviderCandidate,
        caller: Option<&ImagePath>,
    ) -> Result<Option<String>, Gap> {
        let path = &candidate.path;
        if let (Some(other), Some(abi)) = (&candidate.other_abi, &self.abi) {
            let verbs = &self.verbs;
            return Ok(Some(format!("{path} is for a libibverbs with IBVERBS_PRIVATE_{other}, and {verbs} has {abi}")));
        }
        let mut fault = None;
        for name in &candidate.names {
            match self.dlopen(context, caller, name)? {
                // The first name is the one whose file exists.
                Err(why) => fault = fault.or_else(|| Some(format!("{path} does not load: {why}"))),
                Ok(()) => return Ok(None),
            }
        }
        Ok(fault)
    }

    /// Opens a provider from libibverbs: in the process whose NCCL opens that, else in one of which nothing is known.
    fn dlopen(&self, context: &Context<'_>, caller: Option<&ImagePath>, name: &str) -> Result<Result<(), String>, Gap> {
        let verbs = self.verbs.to_string();
        match caller.map_or(Fact::Absent, |caller| context.loader.dlopen(caller, &[&verbs, name])) {
            Fact::Seen { value, .. } => return Ok(value.map(|_| ())),
            Fact::Unknown(gap) => return Err(gap),
            Fact::Absent => {}
        }
        let opened = context.rootfs.open(&self.verbs).ok();
        let object = opened.as_ref().and_then(|(_, file)| elf(file));
        object.map_or_else(
            || Err(Gap::new(format!("{verbs} could not be read"))),
            |object| context.loader.dlopen_alone(&verbs, object, name),
        )
    }
}

/// A provider in a directory, for any libibverbs. `wanted` is the version that this one looks for, if known.
fn any(context: &Context<'_>, folder: &ImagePath, stem: &str, wanted: Option<&String>) -> Option<ProviderCandidate> {
    context.rootfs.names(folder).find_map(|file| {
        let captures = PROVIDER.captures(file)?;
        let text = |part: usize| captures.get(part).map(|part| String::from_utf8_lossy(part.as_bytes()).into_owned());
        let path = folder.join(file);
        let is_of_driver = stem == format!("lib{}", text(1)?) && context.rootfs.open(&path).is_ok();
        let other_abi = text(2).filter(|_| wanted.is_some());
        is_of_driver.then(|| ProviderCandidate { names: vec![path.to_string()], path, other_abi })
    })
}

/// The providers that the files of a directory name, sorted.
fn drivers(context: &Context<'_>, folder: &ImagePath) -> Result<Vec<Named>, Gap> {
    let mut named = Vec::new();
    for name in context.rootfs.names(folder).filter(|name| context.rootfs.open(&folder.join(name)).is_ok()) {
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
