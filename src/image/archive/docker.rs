//! `docker save` archives: `manifest.json` lists the configuration and the layer members of each image (Docker Image
//! Specification v1.2).

use serde::Deserialize;

use crate::image::layout::LayoutFiles;
use crate::image::medium::{Medium, Transport, TransportKind};
use crate::image::plan::{DescribedLayer, ImagePlan, LayerLocation, check_platform, configure, digest_of};
use crate::image::scanned::ScannedLayer;
use crate::image::source::SourceError;
use crate::image::target::{Selector, Target};
use crate::image::{ImageError, PlatformChoice, Request, ScanContext, layers};
use crate::layer::scan::Annotations;
use crate::model::{ImagePath, Limits, printable};

use super::indexed::IndexedArchive;

pub(in crate::image) static TRANSPORT: Transport = Transport {
    prefix: "docker-archive:",
    syntax: "PATH[:REF]",
    description: "an archive written by `docker save`",
    kind: TransportKind::File,
    mark: None,
    parse: Target::path_and_selector,
    open: |target, request| super::open(target.path(), target.selector(), request),
};

/// An archive on disk, as a medium.
pub(super) struct DockerArchive {
    name: String,
    selector: Option<Selector>,
    files: IndexedArchive,
}

impl DockerArchive {
    pub(super) fn new(files: IndexedArchive, selector: Option<Selector>) -> Self {
        Self { name: format!("docker-archive:{}", files.place()), selector, files }
    }
}

impl Medium for DockerArchive {
    fn name(&self) -> &str {
        &self.name
    }

    fn plans(&mut self, request: &Request, _context: ScanContext<'_>) -> Result<Vec<ImagePlan>, ImageError> {
        plans(&self.files, self.selector.as_ref(), &request.choice, &request.limits)
    }

    fn scan(
        &self,
        plan: &mut ImagePlan,
        _request: &Request,
        context: ScanContext<'_>,
    ) -> Result<Vec<ScannedLayer>, ImageError> {
        let open = |location: &LayerLocation| {
            let LayerLocation::Member(path) = location else {
                return Err(SourceError::invalid("a layer without a name"));
            };
            let place = self.files.place();
            let missing =
                || SourceError::invalid(format!("{place} has no member {path}, which is a layer of the image"));
            self.files.open(path)?.map(|(reader, size)| (reader, Some(size))).ok_or_else(missing)
        };
        layers::scan(plan, &open, None, context)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Item {
    config: String,
    repo_tags: Option<Vec<String>>,
    #[serde(default)]
    layers: Vec<String>,
}

/// Plans the requested images of an archive.
pub(super) fn plans(
    files: &dyn LayoutFiles,
    selector: Option<&Selector>,
    choice: &PlatformChoice,
    limits: &Limits,
) -> Result<Vec<ImagePlan>, ImageError> {
    let document = files.document(&ImagePath::from("manifest.json"), limits)?.ok_or_else(|| {
        ImageError::invalid(format!(
            "{} is not an image archive: it has neither manifest.json nor index.json",
            files.place()
        ))
    })?;
    let items: Vec<Item> = serde_json::from_slice(&document)
        .map_err(|error| ImageError::invalid(format!("manifest.json of {} is malformed: {error}", files.place())))?;
    let item = choose(&items, selector, &files.place())?;
    let config = files
        .document(&ImagePath::from(item.config.as_str()), limits)?
        .ok_or_else(|| ImageError::invalid(format!("{} has no member {}", files.place(), printable(&item.config))))?;
    let described = |name: &String| {
        let location = LayerLocation::Member(ImagePath::from(name.as_str()));
        Some(DescribedLayer { location, media_type: None, annotations: Annotations::new() })
    };
    let layers = item.layers.iter().map(described).collect();
    let plan = configure(&config, digest_of(&config), None, layers, Vec::new(), limits)?;
    check_platform(&plan, choice)?;
    Ok(vec![plan])
}

fn choose<'a>(items: &'a [Item], selector: Option<&Selector>, place: &str) -> Result<&'a Item, ImageError> {
    let names = || -> String {
        let names: Vec<_> =
            items.iter().flat_map(|item| item.repo_tags.iter().flatten()).map(|name| printable(name)).collect();
        if names.is_empty() { "none with a name".to_owned() } else { names.join(", ") }
    };
    let found = match selector {
        None => match items {
            [item] => Some(item),
            [] => return Err(ImageError::invalid(format!("{place} contains no image"))),
            _ => {
                let what =
                    format!("{place} contains {} images; choose one by name or by :@INDEX: {}", items.len(), names());
                return Err(ImageError::invalid(what));
            }
        },
        Some(Selector::Index(index)) => items.get(*index),
        Some(Selector::Name(name)) => {
            items.iter().find(|item| item.repo_tags.iter().flatten().any(|tag| is_named(tag, name)))
        }
        Some(Selector::Digest(_)) => {
            return Err(ImageError::invalid(
                "an image in a docker archive cannot be chosen by digest; use a name or :@INDEX",
            ));
        }
    };
    let asked = selector.map(ToString::to_string).unwrap_or_default();
    found.ok_or_else(|| ImageError::invalid(format!("no image '{asked}' in {place}; available: {}", names())))
}

/// Matches names across writers, which store `docker.io/a/b:1`, `localhost/a/b:1` or `a/b:1`; a missing tag means
/// `latest`.
fn is_named(tag: &str, asked: &str) -> bool {
    let short = |name: &str| {
        let name = ["docker.io/library/", "docker.io/", "localhost/"]
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix))
            .unwrap_or(name);
        let has_tag = name.rsplit('/').next().is_some_and(|last| last.contains(':'));
        if has_tag { name.to_owned() } else { format!("{name}:latest") }
    };
    tag == asked || short(tag) == short(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_different_writers() {
        for (tag, asked, same) in [
            ("docker.io/a/b:1", "a/b:1", true),
            ("localhost/a/b:1", "a/b:1", true),
            ("b:latest", "b", true),
            ("b:1", "b", false),
            ("c/b:1", "b:1", false),
        ] {
            assert_eq!(is_named(tag, asked), same, "{tag} {asked}");
        }
    }
}
