//! Runs a container through Docker's API: what the engine offers, the image, the container from its creation to its end.
//! The client library is asynchronous; what it runs on stays in here.

mod body;
mod explain;
mod run;

use std::sync::Arc;
use std::time::Duration;

use bollard::models::{ContainerSummary, CreateImageInfo, ImageInspect, SystemInfo};
use bollard::query_parameters::{CreateImageOptionsBuilder, ListContainersOptionsBuilder};
use futures_util::TryStreamExt as _;

use crate::image::daemon::{Engine, EngineErrorKind, ask};
use crate::image::source::AccessOptions;

use super::arrangement::GpuWay;
use super::{LABEL, ProbeError};

pub use run::{Finished, Killer};

/// How long an engine may take over a small request.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long an engine may take to fetch an image.
const PULL: Duration = Duration::from_hours(2);

/// An engine that containers are run on.
#[derive(Debug)]
pub struct Launcher {
    engine: Engine,
    /// What it says of itself.
    offers: Offers,
}

/// What an engine has to offer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offers {
    /// `Docker 28.2.2 at unix:///var/run/docker.sock`.
    pub engine: String,
    /// Devices of the Container Device Interface that it has found, `nvidia.com/gpu=all`; `None` where it does not tell.
    pub cdi: Option<Vec<String>>,
    /// It runs on this machine, so that the device nodes seen here are the ones that it can give.
    pub is_local: bool,
    /// Bytes of memory of its machine.
    pub memory: Option<u64>,
}

/// When an image is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullPolicy {
    /// If the engine does not have it.
    Missing,
    /// Never.
    Never,
    /// In any case.
    Always,
}

/// An image that an engine has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Held {
    /// Its ID.
    pub id: String,
    /// Its variable `LD_LIBRARY_PATH`.
    pub library_path: Option<String>,
}

impl Launcher {
    /// The first engine that answers, and what it offers.
    pub fn connect(options: &AccessOptions) -> Result<Self, ProbeError> {
        let engine = Engine::connect(options)?;
        let info = ask(PATIENCE, engine.client().info())
            .map_err(|trouble| explain::request("what it offers", &trouble, &engine.describe()))?;
        let offers = offers(&engine, info);
        Ok(Self { engine, offers })
    }

    /// What the engine offers.
    pub const fn offers(&self) -> &Offers {
        &self.offers
    }

    /// The way by which this engine gives GPUs.
    pub fn gpu_way(&self) -> GpuWay {
        let has_cdi = |names: &Vec<String>| names.iter().any(|name| name.starts_with("nvidia.com/gpu="));
        let is_podman = self.engine.product() == "Podman";
        // Podman's API takes device requests of the driver cdi alone, and does not tell which devices it knows
        // (podman, pkg/api/handlers/compat/containers_create.go).
        if is_podman || self.offers.cdi.as_ref().is_some_and(has_cdi) { GpuWay::Cdi } else { GpuWay::Request }
    }

    /// Sees to it that the engine has an image.
    pub fn image(&self, name: &str, pull: PullPolicy) -> Result<Held, ProbeError> {
        if pull != PullPolicy::Always {
            match ask(PATIENCE, self.engine.client().inspect_image(name)) {
                Ok(image) => return Ok(held(image)),
                Err(trouble) if trouble.kind == EngineErrorKind::Missing && pull == PullPolicy::Missing => {}
                Err(trouble) => return Err(explain::image(name, pull, &trouble, &self.offers.engine)),
            }
        }
        let options = CreateImageOptionsBuilder::new().from_image(name).build();
        let fetched = self.engine.client().create_image(Some(options), None, None);
        let fetch = async { fetched.try_for_each(|_: CreateImageInfo| async { Ok(()) }).await };
        ask(PULL, fetch).map_err(|trouble| explain::image(name, pull, &trouble, &self.offers.engine))?;
        let image = ask(PATIENCE, self.engine.client().inspect_image(name));
        image.map(held).map_err(|trouble| explain::image(name, pull, &trouble, &self.offers.engine))
    }

    /// Removes containers of ours that nobody owns any more. Returns their names.
    pub fn clean(&self) -> Result<Vec<String>, ProbeError> {
        let filters = [("label".to_owned(), vec![LABEL.to_owned()])].into();
        let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
        let containers: Vec<ContainerSummary> = ask(PATIENCE, self.engine.client().list_containers(Some(options)))
            .map_err(|trouble| explain::request("which containers it has", &trouble, &self.offers.engine))?;
        let mut removed = Vec::new();
        for container in containers {
            let owner = container.labels.as_ref().and_then(|labels| labels.get(LABEL)).map(String::as_str);
            let (Some(id), true) = (container.id, owner.is_none_or(|owner| !super::owner::is_alive(owner))) else {
                continue;
            };
            let name = container.names.and_then(|names| names.into_iter().next());
            self.killer(&id).remove()?;
            removed.push(name.map_or(id, |name| name.trim_start_matches('/').to_owned()));
        }
        Ok(removed)
    }

    fn killer(&self, container: &str) -> Killer {
        Killer { docker: self.engine.client().clone(), container: container.to_owned(), created: Arc::default() }
    }
}

fn offers(engine: &Engine, info: SystemInfo) -> Offers {
    let devices = info.discovered_devices.map(|devices| devices.into_iter().filter_map(|device| device.id).collect());
    Offers {
        engine: engine.describe(),
        cdi: devices,
        is_local: engine.is_local(),
        memory: info.mem_total.and_then(|bytes| u64::try_from(bytes).ok()).filter(|bytes| *bytes > 0),
    }
}

fn held(image: ImageInspect) -> Held {
    let env = image.config.and_then(|config| config.env).unwrap_or_default();
    Held {
        id: image.id.unwrap_or_default(),
        library_path: env.iter().find_map(|pair| pair.strip_prefix("LD_LIBRARY_PATH=").map(ToOwned::to_owned)),
    }
}
