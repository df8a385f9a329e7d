//! The cuDNN that `import torch` maps.

use model::{Fact, ImagePath, Version};

use super::super::{Context, Facts, key, pattern};

pattern!(FILE, r"^libcudnn\.so\.([0-9]+\.[0-9]+\.[0-9.]+)$");
pattern!(OWNER, r"cudnn[^ ]* ([0-9]+\.[0-9]+\.[0-9]+)");

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let loaded = facts.get(key::TORCH_LOADED).clone().and_then(|paths, _| {
        let paths = paths.into_iter().map(|path| ImagePath::from(path.as_str()));
        Fact::from(paths.into_iter().find(|path| path.file_name().starts_with(b"libcudnn.so.")))
    });
    let release = loaded.clone().and_then(|path, _| {
        let Ok((path, file)) = context.rootfs.open(&path) else { return Fact::Absent };
        let owner = context.packages.owner(&path).unwrap_or_default();
        let captures = FILE.captures(path.file_name()).or_else(|| OWNER.captures(owner.as_bytes()));
        let release =
            captures.and_then(|captures| Version::parse(std::str::from_utf8(captures.get(1)?.as_bytes()).ok()?));
        release.map_or(Fact::Absent, |release| Fact::seen(release, [file.site(&path, None)]))
    });
    facts.insert(key::TORCH_CUDNN_PATH, loaded);
    facts.insert(key::TORCH_CUDNN, release);
    let built = facts.get(key::TORCH_BUILD).clone().and_then(|options, at| {
        let version = options.get("CUDNN_VERSION").and_then(|version| Version::parse(version));
        version.map_or(Fact::Absent, |value| Fact::Seen { value, at })
    });
    facts.insert(key::TORCH_CUDNN_BUILT, built);
}
