//! The images of an audit, each once however many names it has.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use image::Request;
use image::survey::ImageOutline;
use model::{BlobRef, Digest};

/// An image of an audit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuditItem {
    /// Hexadecimal digits of the digest of the manifest or of the configuration, or of the reference where the image
    /// has neither.
    pub id: String,
    /// The reference that workers open.
    pub reference: String,
    /// All names of the image, sorted.
    pub names: Vec<String>,
    /// Digest of the manifest.
    pub manifest: Option<Digest>,
    /// Digest of the configuration.
    pub config: Option<Digest>,
    /// Platform, as `os/arch[/variant]`.
    pub platform: Option<String>,
    /// Digests and sizes of the stored layers, lowest first.
    pub layers: Vec<(Digest, u64)>,
    /// Where the image runs, if it was found there: `NAMESPACE/POD`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<String>,
}

impl AuditItem {
    /// The image of an outline that a request led to.
    pub fn new(request: &Request, outline: ImageOutline) -> Self {
        let digest = outline.manifest.as_ref().or(outline.config.as_ref());
        let id = digest.map_or_else(|| text_id(&request.text), |digest| digest.hex().to_owned());
        let plain = request.text.strip_prefix("docker://").unwrap_or(&request.text).to_owned();
        let names = if outline.names.is_empty() { vec![plain] } else { outline.names };
        Self {
            id,
            reference: outline.reference.unwrap_or_else(|| request.text.clone()),
            names,
            manifest: outline.manifest,
            config: outline.config,
            platform: outline.platform.map(|platform| platform.to_string()),
            layers: outline.layers.into_iter().map(|BlobRef { digest, size }| (digest, size)).collect(),
            pods: Vec::new(),
        }
    }
}

/// The hexadecimal digits of a text's SHA-256.
pub(super) fn text_id(text: &str) -> String {
    let mut hasher = model::Hasher::sha256();
    hasher.update(text.as_bytes());
    hasher.finish().hex().to_owned()
}

/// Merges the items of one image, and orders all by their chains of layers, so that images of one base are neighbours.
/// The order depends on nothing but the images.
pub fn collect(items: impl IntoIterator<Item = AuditItem>) -> Vec<AuditItem> {
    let mut by_id: BTreeMap<String, AuditItem> = BTreeMap::new();
    for item in items {
        match by_id.get_mut(&item.id) {
            Some(known) => {
                known.reference = known.reference.clone().min(item.reference);
                known.names.extend(item.names);
                known.pods.extend(item.pods);
            }
            None => drop(by_id.insert(item.id.clone(), item)),
        }
    }
    let mut items: Vec<_> = by_id.into_values().collect();
    for item in &mut items {
        item.names.sort();
        item.names.dedup();
        item.pods.sort();
        item.pods.dedup();
    }
    items.sort_by(|a, b| (&a.layers, &a.id).cmp(&(&b.layers, &b.id)));
    items
}
