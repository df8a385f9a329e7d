//! Versions in `torch/version.py`.

use model::{Fact, Gap, Version};

use super::super::{Context, Facts, key, pattern};

// torch/version.py as tools/generate_torch_version.py writes it; `cuda` is annotated since 2.2.
pattern!(VERSION, r"(?m)^__version__ *= *'([^']+)'");
pattern!(GIT_VERSION, r"(?m)^git_version *= *'([^']+)'");
pattern!(pub(super) CUDA, r"(?m)^cuda *(?:: *Optional\[str\])? *= *(?:'([^']+)'|None)");

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let version_file = context.in_torch("version.py");
    let capture = |bytes: &[u8], pattern: &regex::bytes::Regex| {
        pattern
            .captures(bytes)
            .and_then(|captures| captures.get(1))
            .map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned())
    };
    let unreadable =
        |what: &str| Fact::Unknown(Gap::new(format!("torch/version.py does not set {what} in PyTorch's format")));
    facts.insert(
        key::TORCH_VERSION,
        version_file.clone().and_then(|bytes, at| {
            let version = capture(bytes, &VERSION).and_then(|text| Version::parse(&text));
            version.map_or_else(|| unreadable("__version__"), |value| Fact::Seen { value, at })
        }),
    );
    facts.insert(
        key::TORCH_GIT_VERSION,
        version_file
            .clone()
            .and_then(|bytes, at| capture(bytes, &GIT_VERSION).map_or(Fact::Absent, |value| Fact::Seen { value, at })),
    );
    facts.insert(
        key::TORCH_CUDA_VERSION,
        version_file.and_then(|bytes, at| {
            if !CUDA.is_match(bytes) {
                return unreadable("cuda");
            }
            match capture(bytes, &CUDA) {
                None => Fact::Absent,
                Some(text) => {
                    Version::parse(&text).map_or_else(|| unreadable("cuda"), |value| Fact::Seen { value, at })
                }
            }
        }),
    );
}
