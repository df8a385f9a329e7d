//! The images of an index, and the choice among them: by name, digest or position, then by platform.

use std::collections::BTreeMap;

use crate::plan::ImagePlan;
use crate::reference::transport_of;
use crate::source::SourceError;
use crate::target::{Selector, available, is_same_name};
use model::{BlobRef, Digest, Platform, printable, shell_word};

/// The names of an index entry, with those of the indexes around it.
#[derive(Clone, Debug, Default)]
pub(super) struct IndexedNames {
    pub(super) names: Vec<String>,
    /// Digests of the indexes around the entry.
    pub(super) within: Vec<Digest>,
}

/// A manifest that may be the requested one.
#[derive(Debug)]
pub(super) struct ManifestCandidate {
    pub(super) blob: BlobRef,
    /// The platform in the index; a platform that the index omits is in the configuration.
    pub(super) platform: Option<Platform>,
    pub(super) named: IndexedNames,
}

/// An index inside another one that cannot be read. It matters only if it may hold the requested image.
#[derive(Debug)]
pub(super) struct UnreadIndex {
    pub(super) digest: Digest,
    pub(super) named: IndexedNames,
    pub(super) error: SourceError,
}

/// A candidate with the distance of its platform from the requested one.
#[derive(Debug)]
pub(super) struct RatedCandidate<'c> {
    pub(super) distance: Option<u32>,
    /// Position among the selected candidates.
    pub(super) position: usize,
    pub(super) candidate: &'c ManifestCandidate,
    /// The image, if it was read to learn its platform.
    pub(super) read: Option<Box<ImagePlan>>,
}

/// An image that satisfies a request.
#[derive(Debug)]
pub(super) struct PlannedCandidate<'c> {
    pub(super) candidate: &'c ManifestCandidate,
    /// Position among the selected candidates.
    pub(super) position: usize,
    pub(super) plan: ImagePlan,
    /// [`Platform::distance_to`] the platform of the image.
    pub(super) distance: u32,
}

impl IndexedNames {
    /// Matches a full name, which Podman writes, or a tag alone, which Docker writes.
    fn has(&self, asked: &str) -> bool {
        let is_it = |name: &String| {
            name == asked
                || name.rsplit_once(':').is_some_and(|(_, tag)| tag == asked)
                // A text without a slash may be a tag.
                || name.contains('/') && is_same_name(name, asked)
        };
        self.names.iter().any(is_it)
    }

    /// Returns true if `selector` selects the entry with this digest. A position selects none.
    fn matches(&self, digest: &Digest, selector: &Selector) -> bool {
        match selector {
            Selector::Name(name) => self.has(name),
            Selector::Digest(asked) => digest == asked || self.within.contains(asked),
            Selector::Index(_) => false,
        }
    }
}

impl ManifestCandidate {
    /// The configuration overrides a wrong platform in the index. The variant is often only in the index.
    pub(super) fn is_for(&self, plan: &ImagePlan) -> bool {
        let whole = |platform: &Platform| (platform.os.clone(), platform.architecture.clone());
        self.platform.as_ref().zip(plan.platform()).is_none_or(|(said, is)| whole(said) == whole(is))
    }

    /// Platform and digest, for messages.
    pub(super) fn describe(&self) -> String {
        let platform = self.platform.as_ref().map(|platform| format!("{platform} "));
        printable(&format!("{}{}", platform.unwrap_or_default(), self.blob.digest)).into_owned()
    }
}

impl UnreadIndex {
    pub(super) fn is_selected(&self, selector: &Selector) -> bool {
        self.named.matches(&self.digest, selector)
    }
}

/// The candidates that a selector selects.
pub(super) fn selected<'c>(all: &'c [ManifestCandidate], selector: Option<&Selector>) -> Vec<&'c ManifestCandidate> {
    match selector {
        Some(Selector::Index(index)) => all.get(*index).into_iter().collect(),
        Some(selector) => {
            all.iter().filter(|candidate| candidate.named.matches(&candidate.blob.digest, selector)).collect()
        }
        None => all.iter().collect(),
    }
}

/// Keeps one instance of each image, in order, and notes the others: images with the same configuration have the same
/// layers, however these are compressed (`podman push --add-compression`).
pub(super) fn without_copies<'c>(found: Vec<PlannedCandidate<'c>>) -> Vec<PlannedCandidate<'c>> {
    let mut kept: Vec<PlannedCandidate<'c>> = Vec::new();
    let mut by_config = BTreeMap::new();
    for one in found {
        let next = kept.len();
        let position = *by_config.entry(one.plan.config_digest.clone()).or_insert(next);
        let Some(first) = kept.get_mut(position) else {
            kept.push(one);
            continue;
        };
        first.plan.names.extend(one.plan.names.iter().cloned());
        if first.plan.manifest != one.plan.manifest {
            let compression = |found: &PlannedCandidate<'_>| {
                let types = found.plan.layers.iter().filter_map(|layer| layer.media_type.as_deref());
                if types.clone().any(|kind| kind.ends_with("+zstd")) { "zstd" } else { "gzip" }
            };
            first.plan.notes.push(format!(
                "the index lists this image twice, with the same configuration: manifest {} ({}) is read, which \
                 containerd and Docker take; Podman takes the one with zstd layers; {} ({}) is not read",
                first.candidate.blob.digest,
                compression(first),
                one.candidate.blob.digest,
                compression(&one),
            ));
        }
    }
    kept
}

/// The error when several images satisfy a request equally. `reference` names their place, if an image there can be
/// named by its digest.
pub(super) fn ambiguous(rivals: &[PlannedCandidate<'_>], reference: Option<&str>) -> SourceError {
    // A registry has no index whose names select an image.
    let has_names = reference.and_then(transport_of).is_some_and(|(transport, _)| !transport.kind.is_by_name());
    let selects_one = |name: &String| {
        let is_named =
            |rival: &&PlannedCandidate<'_>| rival.candidate.named.names.iter().any(|other| is_same_name(other, name));
        has_names && !name.is_empty() && !name.starts_with('@') && rivals.iter().filter(is_named).count() == 1
    };
    let line = |rival: &PlannedCandidate<'_>| {
        let digest = &rival.candidate.blob.digest;
        let names = &rival.candidate.named.names;
        let (whole, rest) = match (reference, names.iter().find(|name| selects_one(name))) {
            (Some(reference), Some(name)) => (format!("{reference}:{name}"), digest.to_string()),
            (Some(reference), None) => (format!("{reference}@{digest}"), names.join(", ")),
            (None, _) => (digest.to_string(), names.join(", ")),
        };
        let rest = if rest.is_empty() { rest } else { format!("  ({rest})") };
        let platform = rival.plan.platform().map(|platform| format!("  {platform}"));
        format!("\n  {}", printable(&format!("{whole}{}{rest}", platform.unwrap_or_default())))
    };
    let hint = reference.map(|reference| {
        format!(
            "choose one of these, or judge all images there: ncclcheck audit plan --store FOLDER {}",
            shell_word(reference)
        )
    });
    SourceError::invalid(format!("several images match:{}", rivals.iter().map(line).collect::<String>()))
        .with_hint(hint.unwrap_or_else(|| "choose one with --platform".to_owned()))
}

/// The error when no candidate is selected; lists the names.
pub(super) fn not_found(all: &[ManifestCandidate], selector: Option<&Selector>) -> SourceError {
    let mut names: Vec<_> =
        all.iter().flat_map(|candidate| &candidate.named.names).map(|name| printable(name)).collect();
    // The images of a nested index share its name.
    names.dedup();
    let asked = selector.map(ToString::to_string).unwrap_or_default();
    let available = available(selector, all.len(), &names);
    SourceError::not_found(format!("no image '{asked}' in the index; available: {available}"))
}
