//! `docker save` archives: `manifest.json` lists the configuration and the layer members of each image (Docker Image
//! Specification v1.2).

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::go_json::parse_document;
use crate::layout::LayoutFiles;
use crate::medium::{Medium, Transport, TransportKind};
use crate::needs::PlaceNeeds;
use crate::plan::{DescribedLayer, ImagePlan, LayerLocation, check_platform, configure, digest_of};
use crate::scanned::ScannedLayers;
use crate::source::SourceError;
use crate::target::{Selector, Target, available, is_same_name};
use crate::{ImageError, PlatformChoice, Request, ScanContext, layers};
use model::{ImagePath, Limits, printable};

use super::ArchiveForm;
use super::indexed::IndexedArchive;

pub(crate) static TRANSPORT: Transport = Transport {
    prefix: "docker-archive:",
    syntax: "PATH[:REF]",
    description: "an archive written by `docker save`",
    kind: TransportKind::File,
    mark: None,
    needs: PlaceNeeds::Path,
    parse: Target::path_and_selector,
    open: |target, request| super::open(target.path(), target.selector(), ArchiveForm::Docker, request),
};

/// An archive on disk, as a medium.
pub(super) struct DockerArchive {
    name: String,
    selector: Option<Selector>,
    files: IndexedArchive,
}

impl DockerArchive {
    pub(super) fn new(files: IndexedArchive, selector: Option<Selector>) -> Self {
        Self { name: format!("{}{}", TRANSPORT.prefix, files.place()), selector, files }
    }
}

impl Medium for DockerArchive {
    fn name(&self) -> &str {
        &self.name
    }

    fn plans(&mut self, request: &Request, _context: ScanContext<'_>) -> Result<Vec<ImagePlan>, ImageError> {
        plans(&self.files, Some(&self.name), self.selector.as_ref(), &request.choice, &request.limits)
    }

    fn scan(&self, plan: &mut ImagePlan, _request: &Request, context: ScanContext<'_>) -> ScannedLayers {
        let open = |location: &LayerLocation| {
            let LayerLocation::Member(path) = location else {
                return Err(SourceError::invalid("a layer without a name"));
            };
            let place = self.files.place();
            let missing = || {
                let what = format!("{place} has no member {path}, which is a layer of the image");
                SourceError::missing(what)
            };
            self.files.open(path)?.map(|(reader, size)| (reader, Some(size))).ok_or_else(missing)
        };
        layers::scan(plan, &open, context)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Item {
    config: String,
    repo_tags: Option<Vec<String>>,
    /// `null` for an image without layers.
    layers: Option<Vec<String>>,
    /// The descriptors of foreign layers, by diff ID (moby, `image/tarexport`).
    #[serde(default)]
    layer_sources: Option<BTreeMap<String, LayerSource>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LayerSource {
    #[serde(default)]
    media_type: String,
}

impl Item {
    fn tags(&self) -> impl Iterator<Item = &String> {
        self.repo_tags.iter().flatten()
    }

    fn plan(&self, files: &dyn LayoutFiles, limits: &Limits) -> Result<ImagePlan, ImageError> {
        let config = files.document(&ImagePath::from(self.config.as_str()), limits)?.ok_or_else(|| {
            ImageError::invalid(format!("{} has no member {}", files.place(), printable(&self.config)))
        })?;
        let described = |name: &String| DescribedLayer {
            location: LayerLocation::Member(ImagePath::from(name.as_str())),
            media_type: None,
        };
        let layers = self.layers.iter().flatten().map(described).collect();
        let mut plan = configure(&config, digest_of(&config), None, layers, limits)?;
        for layer in &mut plan.layers {
            let source = layer.diff_id.as_ref().zip(self.layer_sources.as_ref());
            let source = source.and_then(|(diff_id, sources)| sources.get(diff_id.as_str()));
            layer.media_type = source.map(|source| source.media_type.clone());
        }
        Ok(plan)
    }
}

/// Plans the requested images of an archive. `reference` names the archive, if it can be followed by a selector. The
/// error is [`SourceErrorKind::NotFound`](crate::source::SourceErrorKind::NotFound) if the archive has none of them.
pub(super) fn plans(
    files: &dyn LayoutFiles,
    reference: Option<&str>,
    selector: Option<&Selector>,
    choice: &PlatformChoice,
    limits: &Limits,
) -> Result<Vec<ImagePlan>, ImageError> {
    let place = files.place();
    let document = files
        .document(&ImagePath::from("manifest.json"), limits)?
        .ok_or_else(|| super::not_an_image_archive(&place))?;
    let items: Vec<Item> = parse_document(&document)
        .map_err(|error| ImageError::invalid(format!("manifest.json of {place} is malformed: {error}")))?;
    let chosen = choose(&items, selector, &place)?;
    if let [(_, item)] = *chosen {
        let plan = item.plan(files, limits)?;
        check_platform(&plan, choice)?;
        return Ok(vec![plan]);
    }
    let mut found: Vec<(u32, String, ImagePlan)> = Vec::new();
    let mut offered = Vec::new();
    for (index, item) in chosen {
        let plan = item.plan(files, limits)?;
        let Some(platform) = plan.platform() else { continue };
        offered.push(platform.clone());
        let Some(distance) = choice.distance_to(platform) else { continue };
        // An image may be listed once for each of its names.
        if found.iter().all(|(.., other)| other.config_digest != plan.config_digest) {
            let names: Vec<_> = item.tags().map(String::as_str).collect();
            let line = format!("{}:@{index}  ({})  {platform}", reference.unwrap_or_default(), names.join(", "));
            found.push((distance, line, plan));
        }
    }
    let nearest = found.iter().map(|(distance, ..)| *distance).min();
    found.retain(|(distance, ..)| Some(*distance) == nearest);
    if found.is_empty() {
        return Err(choice.not_offered(&offered).into());
    }
    if *choice != PlatformChoice::All && found.len() > 1 {
        let lines: Vec<_> = found.iter().map(|(_, line, _)| printable(line)).collect();
        let hint = Some("choose one of these, or one by its name: :NAME instead of :@INDEX".to_owned());
        return Err(SourceError::invalid(format!("{place} has several images that match:\n  {}", lines.join("\n  ")))
            .with_hint(hint)
            .into());
    }
    Ok(found.into_iter().map(|(.., plan)| plan).collect())
}

/// The selected items, with their positions.
fn choose<'a>(
    items: &'a [Item],
    selector: Option<&Selector>,
    place: &str,
) -> Result<Vec<(usize, &'a Item)>, ImageError> {
    if items.is_empty() {
        return Err(ImageError::invalid(format!("{place} contains no image")));
    }
    let all = items.iter().enumerate();
    let found: Vec<_> = match selector {
        None => all.collect(),
        Some(Selector::Index(index)) => all.filter(|(position, _)| position == index).collect(),
        Some(Selector::Name(name)) => all.filter(|(_, item)| item.tags().any(|tag| is_same_name(tag, name))).collect(),
        Some(Selector::Digest(_)) => {
            return Err(ImageError::invalid(format!(
                "manifest.json of {place} gives images no digest: choose one by :NAME or by :@INDEX"
            )));
        }
    };
    if found.is_empty() {
        let names: Vec<_> = items.iter().flat_map(Item::tags).map(|name| printable(name)).collect();
        let available = available(selector, items.len(), &names);
        let asked = selector.map(ToString::to_string).unwrap_or_default();
        return Err(SourceError::not_found(format!("no image '{asked}' in {place}; available: {available}")).into());
    }
    Ok(found)
}
