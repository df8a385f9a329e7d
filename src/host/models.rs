//! Models of NVIDIA's GPUs.
//!
//! Sources: [CUDA GPU Compute Capability](https://developer.nvidia.com/cuda-gpus) and [Legacy CUDA GPU Compute
//! Capability](https://developer.nvidia.com/cuda-legacy-gpus); the market is the heading that a model stands under there.

use crate::model::{Arch, Variant};

/// The market that a GPU is made for. Forward compatibility of CUDA is for data centres (CUDA Compatibility, "Forward
/// Compatibility").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Data centres.
    DataCenter,
    /// Workstations.
    Workstation,
    /// Games.
    Consumer,
}

impl Class {
    /// Lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DataCenter => "datacenter",
            Self::Workstation => "workstation",
            Self::Consumer => "consumer",
        }
    }
}

/// Architecture, market and models, in small letters and without blanks and hyphens.
const MODELS: &[(u32, Class, &[&str])] = &[
    (37, Class::DataCenter, &["k80"]),
    (52, Class::DataCenter, &["m40", "m60"]),
    (60, Class::DataCenter, &["p100"]),
    (61, Class::DataCenter, &["p4", "p40"]),
    (61, Class::Consumer, &["gtx1080", "gtx1080ti"]),
    (70, Class::DataCenter, &["v100"]),
    (75, Class::DataCenter, &["t4"]),
    (75, Class::Workstation, &["quadrortx6000", "quadrortx8000"]),
    (75, Class::Consumer, &["rtx2080", "rtx2080ti"]),
    (80, Class::DataCenter, &["a100", "a30"]),
    (86, Class::DataCenter, &["a2", "a10", "a10g", "a16", "a40"]),
    (86, Class::Workstation, &["rtxa4000", "rtxa5000", "rtxa6000"]),
    (86, Class::Consumer, &["rtx3080", "rtx3090"]),
    (89, Class::DataCenter, &["l4", "l40", "l40s"]),
    (89, Class::Workstation, &["rtx6000ada"]),
    (89, Class::Consumer, &["rtx4080", "rtx4090"]),
    (90, Class::DataCenter, &["h100", "h200", "h20", "h800", "gh200"]),
    (100, Class::DataCenter, &["b200", "gb200"]),
    (103, Class::DataCenter, &["b300", "gb300"]),
    (120, Class::Workstation, &["rtxpro6000"]),
    (120, Class::Consumer, &["rtx5080", "rtx5090"]),
    (121, Class::Workstation, &["gb10"]),
];

/// A model by its name, or by its architecture alone.
pub(super) fn find(text: &str) -> Option<(Arch, Option<Class>)> {
    let name: String = text.chars().filter(|c| !matches!(c, ' ' | '-')).collect::<String>().to_ascii_lowercase();
    let by_name = MODELS.iter().find(|(_, _, names)| names.contains(&&*name));
    let by_name = by_name.and_then(|(number, class, _)| Some((Arch::new(*number, Variant::Plain)?, Some(*class))));
    by_name.or_else(|| {
        let arch: Arch = name.parse().ok()?;
        arch.is_plain().then_some((arch, None))
    })
}

/// The model that NVIDIA's name for a product speaks of: `NVIDIA H100 80GB HBM3` of h100. The longest name counts.
pub(super) fn spoken_of(product: &str) -> Option<(&'static str, Arch, Class)> {
    let words: Vec<String> = product.split([' ', '-']).map(str::to_ascii_lowercase).collect();
    let runs = (0..words.len()).flat_map(|from| (from + 1..=words.len()).map(move |to| (from, to)));
    let joined: Vec<String> = runs.filter_map(|(from, to)| Some(words.get(from..to)?.concat())).collect();
    let models = MODELS.iter().flat_map(|(number, class, names)| names.iter().map(|name| (*name, *number, *class)));
    let found = models.filter(|(name, ..)| joined.iter().any(|run| run == name)).max_by_key(|(name, ..)| name.len());
    found.and_then(|(name, number, class)| Some((name, Arch::new(number, Variant::Plain)?, class)))
}

/// All names, for messages.
pub(super) fn names() -> String {
    let mut names: Vec<&str> = MODELS.iter().flat_map(|(_, _, names)| names.iter().copied()).collect();
    names.sort_unstable();
    names.join(", ")
}
