//! Images that are one squashfs file system: those of enroot, and those in a SIF file of Apptainer.
//!
//! They have no layers, no history and no configuration. What a container gets is in files of the image, which are read
//! as the runtime reads them.

mod apptainer;
mod enroot;
mod script;
pub(super) mod sif;
pub(super) mod sqsh;

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::source::SourceError;
use layer::scan::{LayerScan, ScanError, scan_squashfs};
use layer::squashfs::Squashfs;
use model::{Found, Gap, ImageConfig, ImagePath, Platform, open_regular};

use super::medium::Medium;
use super::plan::{ImagePlan, LayerLocation, PlannedLayer, check_platform};
use super::scanned::{ScannedLayer, ScannedLayers};
use super::{ImageError, Request, ScanContext};

/// A squashfs file system in a file.
#[derive(Debug)]
struct SquashImage {
    /// Name for reports.
    name: String,
    file: File,
    /// The place of the file system in the file.
    range: Range<u64>,
    /// Platform that the file declares.
    platform: Option<Platform>,
    notes: Vec<String>,
    /// The reason why files are unknown: another file system, which is not read, hides them.
    overlay: Option<Gap>,
    runtime: SquashRuntime,
}

/// The program that runs an image.
#[derive(Clone, Copy, Debug)]
enum SquashRuntime {
    Apptainer,
    Enroot,
}

/// Opens a file if its content is an image of this kind.
pub(super) fn detect(path: &Path, request: &Request) -> Option<Result<Box<dyn Medium>, SourceError>> {
    if sif::is_sif(path) {
        return Some(sif::open(path, request));
    }
    sqsh::is_squashfs(path).then(|| sqsh::open(path, request))
}

/// The first bytes of a file, from an offset on; `None` if it is shorter or cannot be read.
fn bytes_at<const N: usize>(path: &Path, offset: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    // Opening a pipe would wait for its writer.
    let file = path.is_file().then(|| open_regular(path)).and_then(Result::ok)?;
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}

impl SquashImage {
    fn open(&self, request: &Request) -> Result<Squashfs, ScanError> {
        let file = self.file.try_clone().map_err(ScanError::Read)?;
        Ok(Squashfs::open(file, self.range.clone(), &request.limits)?)
    }

    fn failure(&self, error: ScanError) -> ImageError {
        ImageError::Layer { layer: self.name.clone(), error }
    }
}

impl Medium for SquashImage {
    fn name(&self) -> &str {
        &self.name
    }

    fn plans(&mut self, request: &Request, _context: ScanContext<'_>) -> Result<Vec<ImagePlan>, ImageError> {
        // An image that cannot be read is refused before any work.
        self.open(request).map_err(|error| self.failure(error))?;
        let layer = PlannedLayer { location: LayerLocation::Squashfs, media_type: None, diff_id: None, history: None };
        let config = ImageConfig { platform: self.platform.clone(), ..ImageConfig::default() };
        let plan =
            ImagePlan { config: Some(config), layers: vec![layer], notes: self.notes.clone(), ..ImagePlan::default() };
        check_platform(&plan, &request.choice)?;
        Ok(vec![plan])
    }

    fn scan(&self, plan: &mut ImagePlan, request: &Request, context: ScanContext<'_>) -> ScannedLayers {
        let meter = context.progress.begin(&self.name, None);
        let mut image = self.open(request).map_err(|error| self.failure(error))?;
        let scan = scan_squashfs(&mut image, &self.name, context.tree(&*meter));
        let scan = scan.map_err(|error| self.failure(error))?;
        let files = ImageFiles { scan: &scan };
        let mut config = match self.runtime {
            SquashRuntime::Apptainer => Some(apptainer::config(&files)),
            SquashRuntime::Enroot => enroot::config(&files),
        };
        if let Some(config) = &mut config {
            config.platform = self.platform.clone().or_else(|| files.platform());
        } else {
            plan.notes.push("it has neither /etc/rc nor /etc/environment: its environment is unknown".to_owned());
        }
        plan.config = config;
        check_platform(plan, &request.choice)?;
        Ok(vec![ScannedLayer { unknown: self.overlay.clone(), ..ScannedLayer::unhashed(scan) }])
    }
}

/// The files of an image that were read whole.
#[derive(Debug)]
struct ImageFiles<'a> {
    scan: &'a LayerScan,
}

/// The entrypoint and the command of an image, which its start script has.
type ScriptStart = (Vec<String>, Vec<String>);

impl ImageFiles<'_> {
    /// The text of a file: `None` if it does not exist, an error if it was not read.
    fn text(&self, path: &str) -> Option<Result<String, Gap>> {
        let path = ImagePath::from(path);
        let index = self.scan.entries.iter().position(|entry| entry.path == path)?;
        self.text_of(index)
    }

    /// Sets the entrypoint and the command, if the script at this path is one of an OCI image.
    fn read_start(&self, path: &str, start: fn(&str) -> Option<ScriptStart>, config: &mut ImageConfig) {
        match self.text(path).map(|text| text.map(|text| start(&text))) {
            Some(Ok(Some((entrypoint, command)))) => (config.entrypoint, config.command) = (entrypoint, command),
            Some(Err(gap)) => config.unknown.command = Some(gap),
            Some(Ok(None)) | None => {
                let gap = Gap::new(format!("/{path} is not that of an OCI image"));
                config.unknown.command = Some(gap.settled_by("check the image that it was made of"));
            }
        }
    }

    /// The files in a folder with this suffix, sorted by name.
    fn texts_in(&self, folder: &str, suffix: &str) -> Vec<(ImagePath, Result<String, Gap>)> {
        let folder = ImagePath::from(folder);
        let entries = self.scan.entries.iter().enumerate();
        let inside = entries.filter(|(_, entry)| {
            folder.is_parent_of(&entry.path) && entry.path.file_name().ends_with(suffix.as_bytes())
        });
        let mut texts: Vec<_> =
            inside.filter_map(|(index, entry)| Some((entry.path.clone(), self.text_of(index)?))).collect();
        texts.sort_by(|(one, _), (other, _)| one.cmp(other));
        texts
    }

    fn text_of(&self, index: usize) -> Option<Result<String, Gap>> {
        let entry = self.scan.entries.get(index)?;
        let found = self.scan.found.get(&index).into_iter().flatten();
        let text = found.filter_map(|found| match found {
            Ok(Found::Text(bytes)) => Some(Ok(String::from_utf8_lossy(bytes).into_owned())),
            Ok(_) => None,
            Err(gap) => Some(Err(gap.clone())),
        });
        let empty = || match entry.kind {
            model::EntryKind::File if entry.size == 0 => Some(Ok(String::new())),
            model::EntryKind::Directory => None,
            _ => Some(Err(Gap::new(format!("{} is not a regular file", entry.path)))),
        };
        text.into_iter().next().or_else(empty)
    }

    /// The platform of the C library.
    fn platform(&self) -> Option<Platform> {
        /// `e_machine` of ELF files, and Go's names.
        const MACHINES: [(u16, &str); 4] = [(62, "amd64"), (183, "arm64"), (21, "ppc64le"), (3, "386")];
        let libraries = self.scan.found.iter().filter(|(index, _)| {
            let name = self.scan.entries.get(**index).map_or(&[][..], |entry| entry.path.file_name());
            name == b"libc.so.6" || name.starts_with(b"ld-") || name == b"dash" || name == b"bash"
        });
        let machine = libraries.flat_map(|(_, found)| found).find_map(|found| match found {
            Ok(Found::Elf(elf)) => Some(elf.machine),
            _ => None,
        })?;
        let (_, architecture) = MACHINES.into_iter().find(|(number, _)| *number == machine)?;
        format!("linux/{architecture}").parse().ok()
    }
}
