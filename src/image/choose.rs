//! Finds the medium that a reference means, and opens it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use crate::image::archive::Archive;
use crate::image::daemon::{Engine, Unpacked};
use crate::image::layout::{Files, Folder, Layout, blob_path};
use crate::image::reference::{Reference, Selector};
use crate::image::registry;
use crate::image::source::{Source, SourceError};
use crate::layer::scan::{LayerScan, scan_folder};
use crate::model::{ImagePath, Platform};

use super::layers;
use super::oci::Finder;
use super::plan::{ImagePlan, LayerLocation, check_platform};
use super::scanned::{ScannedLayer, verify_diff_id};
use super::soci::SociTables;
use super::stream::{self, Streamed};
use super::{ImageError, PlatformChoice, Request, ScanContext, docker_archive, unpacked};

/// An opened medium.
pub(super) struct Found {
    name: String,
    selector: Option<Selector>,
    medium: Medium,
}

enum Medium {
    /// Content by digest.
    Source(Box<dyn Source>),
    /// `docker save`, on disk.
    Docker(Archive),
    /// An archive that went by. True: it is a layout.
    Streamed(Streamed),
    /// Folders of an engine on this machine.
    Unpacked(Unpacked),
    /// An unpacked root file system.
    Folder(Arc<LayerScan>),
}

/// Opens what the reference means. A stream is read to its end here.
pub(super) fn find(request: &Request, context: ScanContext<'_>) -> Result<Found, ImageError> {
    let opener = Opener { request, context };
    match &request.reference {
        Reference::Registry(name) => Ok(opener.registry(name)?),
        Reference::Daemon(name) => opener.engine(name),
        Reference::DockerArchive(path, selector) | Reference::OciArchive(path, selector) => {
            opener.archive(path, selector.clone())
        }
        Reference::Layout(path, selector) => Ok(opener.layout(path, selector.clone())?),
        Reference::Root(path) => opener.root(path),
        Reference::Stdin => {
            let streamed = opener.stream(std::io::stdin(), None, "standard input")?;
            Ok(Found { name: "standard input".to_owned(), selector: None, medium: Medium::Streamed(streamed) })
        }
        Reference::Bare(text) => opener.bare(text),
    }
}

struct Opener<'a> {
    request: &'a Request,
    context: ScanContext<'a>,
}

impl Opener<'_> {
    fn registry(&self, name: &oci_spec::distribution::Reference) -> Result<Found, SourceError> {
        let source = registry::open(name, &self.request.options)?;
        // A name that the registry does not know is told now, while other places may still be asked.
        source.top()?;
        Ok(Found { name: format!("docker://{name}"), selector: None, medium: Medium::Source(Box::new(source)) })
    }

    fn engine(&self, name: &str) -> Result<Found, ImageError> {
        let engine = Engine::connect(&self.request.options)?;
        if self.request.unverified {
            let medium = Medium::Unpacked(engine.unpacked(name)?);
            return Ok(Found { name: format!("docker-daemon:{name} ({})", engine.describe()), selector: None, medium });
        }
        let image = engine.find(name)?;
        let platform: Option<&Platform> = match &self.request.choice {
            PlatformChoice::One(platform) => Some(platform),
            PlatformChoice::Host | PlatformChoice::All => None,
        };
        // By its ID: a name without a tag would export every tag of the repository.
        let stream = engine.export(image.id.as_str(), platform)?;
        let streamed = self.stream(stream, image.size, &format!("{name} of {}", engine.describe()))?;
        let name = format!("docker-daemon:{name} ({})", engine.describe());
        Ok(Found { name, selector: None, medium: Medium::Streamed(streamed) })
    }

    fn stream(&self, source: impl Read + Send, size: Option<u64>, name: &str) -> Result<Streamed, ImageError> {
        stream::read(source, size, name, self.context)
    }

    fn layout(&self, path: &Path, selector: Option<Selector>) -> Result<Found, SourceError> {
        let layout = Layout::open(Folder::new(path), &self.request.limits)?;
        Ok(Found { name: format!("oci:{}", path.display()), selector, medium: Medium::Source(Box::new(layout)) })
    }

    /// A file: compressed ones go by once, others are indexed.
    fn archive(&self, path: &Path, selector: Option<Selector>) -> Result<Found, ImageError> {
        let io = |error| SourceError::io(format!("reading {}", path.display()), error);
        let mut file =
            File::open(path).map_err(|error| SourceError::io(format!("opening {}", path.display()), error))?;
        let mut head = [0; 4];
        let metadata = file.metadata().map_err(io)?;
        if metadata.is_dir() {
            let what = format!("{} is a folder, not an archive: write oci:{0} for an image layout", path.display());
            return Err(ImageError::invalid(what));
        }
        let have = file.by_ref().take(4).read(&mut head).map_err(io)?;
        if have == 0 {
            return Err(ImageError::invalid(format!("{} is empty", path.display())));
        }
        if matches!(head, [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd]) {
            let file = File::open(path).map_err(io)?;
            let streamed = self.stream(file, Some(metadata.len()), &path.display().to_string())?;
            let name = format!("docker-archive:{}", path.display());
            return Ok(Found { name, selector, medium: Medium::Streamed(streamed) });
        }
        let archive = Archive::index(path, &self.request.limits)?;
        if archive.contains("manifest.json") {
            return Ok(Found {
                name: format!("docker-archive:{}", path.display()),
                selector,
                medium: Medium::Docker(archive),
            });
        }
        let layout = Layout::open(archive, &self.request.limits).map_err(|_layout| {
            ImageError::invalid(format!(
                "{} is no image archive: it has neither manifest.json nor index.json",
                path.display()
            ))
        })?;
        Ok(Found {
            name: format!("oci-archive:{}", path.display()),
            selector,
            medium: Medium::Source(Box::new(layout)),
        })
    }

    fn root(&self, path: &Path) -> Result<Found, ImageError> {
        let name = format!("root:{}", path.display());
        if !path.is_dir() {
            return Err(ImageError::invalid(format!("{} is no folder", path.display())));
        }
        let meter = self.context.progress.begin(&name, None);
        let scan = scan_folder(path, &self.request.limits, &*meter, self.context.cancel)
            .map_err(|error| ImageError::Layer { layer: name.clone(), error })?;
        Ok(Found { name, selector: None, medium: Medium::Folder(Arc::new(scan)) })
    }

    /// A path that exists is recognised by what is in it.
    fn path(&self, path: &Path, metadata: &fs::Metadata) -> Result<Found, ImageError> {
        if metadata.is_file() {
            return self.archive(path, None);
        }
        if path.join("index.json").exists() || path.join("oci-layout").exists() {
            return Ok(self.layout(path, None)?);
        }
        if ["etc", "usr", "bin"].iter().any(|name| path.join(name).is_dir()) {
            return self.root(path);
        }
        Err(ImageError::invalid(format!(
            "{} is a folder with neither an image layout (index.json) nor a root file system (etc, usr) in it",
            path.display()
        )))
    }

    /// What a name alone means: a path if there is one, else an image of the engine, else one of a registry.
    fn bare(&self, text: &str) -> Result<Found, ImageError> {
        let path = Path::new(text);
        let missing = match fs::metadata(path) {
            Ok(metadata) => return self.path(path, &metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => "there is no such file or folder".to_owned(),
            Err(error) => error.to_string(),
        };
        let mut places = vec![("path".to_owned(), SourceError::NotFound(missing))];
        if text.starts_with(['/', '.', '~']) {
            return Err(ImageError::Nowhere { name: text.to_owned(), places });
        }
        match self.engine(text) {
            Ok(found) => return Ok(found),
            // Only who does not have it is passed over: an image that is there and broken is an answer.
            Err(ImageError::Source(
                error @ (SourceError::NotFound(_) | SourceError::Unreachable { .. } | SourceError::Denied { .. }),
            )) => places.push(("engine".to_owned(), error)),
            Err(error) => return Err(error),
        }
        let name: oci_spec::distribution::Reference = text.parse().map_err(|error| {
            ImageError::invalid(format!(
                "'{}' is neither a path that exists nor the name of an image: {error}",
                crate::model::printable(text)
            ))
        })?;
        match self.registry(&name) {
            Ok(found) => Ok(found),
            Err(error) => {
                places.push((format!("registry docker://{name}"), error));
                Err(ImageError::Nowhere { name: text.to_owned(), places })
            }
        }
    }
}

impl Found {
    /// For reports: where the image was found.
    pub(super) fn name(&self) -> String {
        self.name.clone()
    }

    /// The images in it that are wanted.
    pub(super) fn plans(&self, request: &Request) -> Result<Vec<ImagePlan>, ImageError> {
        let selector = self.selector.as_ref();
        match &self.medium {
            Medium::Source(source) => Finder::plans(&**source, selector, &request.choice, &request.limits),
            Medium::Docker(files) => docker_archive::plans(files, selector, &request.choice, &request.limits),
            Medium::Streamed(files) => {
                let has = |name| files.open(&ImagePath::from(name)).is_ok_and(|found| found.is_some());
                if has("index.json") && !has("manifest.json") {
                    let layout = Layout::open(files, &request.limits)?;
                    return Finder::plans(&layout, selector, &request.choice, &request.limits);
                }
                docker_archive::plans(files, selector, &request.choice, &request.limits)
            }
            Medium::Unpacked(image) => {
                let plan = unpacked::plan(image);
                check_platform(&plan, &request.choice)?;
                Ok(vec![plan])
            }
            Medium::Folder(_) => Ok(Vec::new()),
        }
    }

    /// The layers of an image. What there is to tell of all of them becomes a note of the plan.
    pub(super) fn scan(
        &self,
        plan: &mut ImagePlan,
        request: &Request,
        context: ScanContext<'_>,
    ) -> Result<Vec<ScannedLayer>, ImageError> {
        match &self.medium {
            Medium::Source(source) => {
                let tables = SociTables::new(&**source, plan, request.unverified, &request.limits);
                let open = |place: &LayerLocation| match place.blob() {
                    Some(blob) => Ok((source.open(&blob)?, Some(blob.size))),
                    None => Err(SourceError::invalid("a layer without a digest")),
                };
                let scanned = layers::scan(plan, &open, Some(&tables).filter(|_| !request.whole), context)?;
                let note = tables.note();
                plan.notes.extend(note);
                Ok(scanned)
            }
            Medium::Docker(files) => {
                let open = |place: &LayerLocation| {
                    let LayerLocation::Member(path) = place else {
                        return Err(SourceError::invalid("a layer without a name"));
                    };
                    let missing = || {
                        SourceError::invalid(format!(
                            "{} has no member {path}, which is a layer of the image",
                            files.place()
                        ))
                    };
                    files.open(path)?.map(|(reader, size)| (reader, Some(size))).ok_or_else(missing)
                };
                layers::scan(plan, &open, None, context)
            }
            Medium::Streamed(files) => plan
                .layers
                .iter()
                .enumerate()
                .map(|(index, layer)| {
                    let path = match &layer.location {
                        LayerLocation::Member(path) => path.clone(),
                        LayerLocation::Blob { .. } => {
                            layer.location.blob().map(|blob| blob_path(&blob.digest)).unwrap_or_default()
                        }
                    };
                    let what = layers::describe(index, plan.layers.len(), layer);
                    let scanned = files.layer(&path).ok_or_else(|| {
                        ImageError::invalid(format!("{} has no member {path}, which is {what}", files.place()))
                    })?;
                    verify_diff_id(scanned, &layer.diff_id, &what)?;
                    Ok(scanned.clone())
                })
                .collect(),
            Medium::Unpacked(image) => unpacked::scan(image, plan, context),
            Medium::Folder(_) => Ok(Vec::new()),
        }
    }

    /// The pseudo-layer of an unpacked root file system, with its name.
    pub(super) fn folder(self) -> Option<(Arc<LayerScan>, String)> {
        match self.medium {
            Medium::Folder(scan) => Some((scan, self.name)),
            Medium::Source(_) | Medium::Docker(_) | Medium::Streamed(_) | Medium::Unpacked(_) => None,
        }
    }
}
