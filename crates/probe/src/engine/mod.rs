//! Runs a container through Docker's API: the engine's properties, the image, and the container from creation to
//! removal. The client library is asynchronous; callers of this module see blocking functions only.

mod body;
mod explain;
mod output;
mod run;

use std::sync::Arc;
use std::time::Duration;

use bollard::models::{ContainerSummary, CreateImageInfo, ImageInspect, SystemInfo};
use bollard::query_parameters::{CreateImageOptionsBuilder, ListContainersOptionsBuilder};
use futures_util::TryStreamExt as _;

use image::daemon::{Engine, ask};
use image::source::{AccessOptions, SourceErrorKind};

use super::arrangement::{GpuWay, PullPolicy};
use super::{LABEL, ProbeError};

pub(super) use body::requested;
pub use explain::{KnownMessage, known_messages, table_of_messages};
pub use run::{Finished, Killer};

/// Time limit of a small request to the engine.
const PATIENCE: Duration = Duration::from_mins(2);
/// Time limit of an image pull.
const PULL: Duration = Duration::from_hours(2);

/// An engine that runs containers.
#[derive(Debug)]
pub struct Launcher {
    engine: Engine,
    /// Properties that the engine reports.
    offers: Offers,
}

/// Properties of an engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// Product, version and address, such as `Docker 28.2.2 at unix:///var/run/docker.sock`.
    pub engine: String,
    /// Devices of the Container Device Interface that the engine found, such as `nvidia.com/gpu=all`; `None` if it does not
    /// report them.
    pub cdi: Option<Vec<String>>,
    /// True if the engine runs on this machine, so that it can pass the device nodes seen here.
    pub is_local: bool,
    /// Memory of the engine's machine, in bytes.
    pub memory: Option<u64>,
}

impl Offers {
    /// The way of requesting GPUs that the engine supports; `docker run --gpus` if it is not known.
    pub fn gpu_way(&self) -> GpuWay {
        let has_cdi = |names: &Vec<String>| names.iter().any(|name| name.starts_with("nvidia.com/gpu="));
        // Podman's API accepts device requests of the driver cdi only, and does not list the devices that it knows
        // (podman, pkg/api/handlers/compat/containers_create.go).
        let is_podman = self.engine.starts_with("Podman");
        if is_podman || self.cdi.as_ref().is_some_and(has_cdi) { GpuWay::Cdi } else { GpuWay::Request }
    }
}

/// An image in the engine's store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// ID of the image.
    pub id: String,
    /// Value of the image's variable `LD_LIBRARY_PATH`.
    pub library_path: Option<String>,
    /// Words of its entrypoint.
    pub entrypoint: Vec<String>,
}

impl Launcher {
    /// Connects to the first engine that answers and reads its properties.
    pub fn connect(options: &AccessOptions) -> Result<Self, ProbeError> {
        let engine = Engine::connect(options)?;
        let info = ask(PATIENCE, engine.client().info())
            .map_err(|trouble| explain::request("its properties", &trouble, &engine.describe()))?;
        let offers = offers(&engine, info);
        Ok(Self { engine, offers })
    }

    /// Properties of the engine.
    pub const fn offers(&self) -> &Offers {
        &self.offers
    }

    /// Ensures that the engine has an image, fetching it as `pull` requires.
    pub fn image(&self, name: &str, pull: PullPolicy) -> Result<Held, ProbeError> {
        if pull != PullPolicy::Always {
            match ask(PATIENCE, self.engine.client().inspect_image(name)) {
                Ok(image) => return Ok(held(image)),
                Err(trouble) if trouble.kind == SourceErrorKind::NotFound && pull == PullPolicy::Missing => {}
                Err(trouble) => return Err(explain::image(name, pull, &trouble, &self.offers.engine)),
            }
        }
        let options = CreateImageOptionsBuilder::new().from_image(name).build();
        let fetched = self.engine.streaming().and_then(|streaming| {
            let lines = streaming.docker.create_image(Some(options), None, None);
            let pull = lines.try_for_each(|_: CreateImageInfo| {
                streaming.renew();
                async { Ok(()) }
            });
            ask(PULL, pull)
        });
        fetched.map_err(|trouble| explain::image(name, pull, &trouble, &self.offers.engine))?;
        let image = ask(PATIENCE, self.engine.client().inspect_image(name));
        image.map(held).map_err(|trouble| explain::image(name, pull, &trouble, &self.offers.engine))
    }

    /// Removes containers that an ended ncclcheck process left behind. Returns their names.
    pub fn clean(&self) -> Result<Vec<String>, ProbeError> {
        let mut removed = Vec::new();
        for container in self.containers(LABEL.to_owned())? {
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

    /// Removes the containers of an owner.
    pub(super) fn clean_of(&self, owner: &str) -> Result<(), ProbeError> {
        let containers = self.containers(format!("{LABEL}={owner}"))?;
        containers.into_iter().filter_map(|container| container.id).try_for_each(|id| self.killer(&id).remove())
    }

    /// The containers with this label, running or not.
    fn containers(&self, label: String) -> Result<Vec<ContainerSummary>, ProbeError> {
        let filters = [("label".to_owned(), vec![label])].into();
        let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
        ask(PATIENCE, self.engine.client().list_containers(Some(options)))
            .map_err(|trouble| explain::request("its containers", &trouble, &self.offers.engine))
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
    let config = image.config.unwrap_or_default();
    let env = config.env.unwrap_or_default();
    Held {
        id: image.id.unwrap_or_default(),
        entrypoint: config.entrypoint.unwrap_or_default(),
        library_path: env.iter().find_map(|pair| pair.strip_prefix("LD_LIBRARY_PATH=").map(ToOwned::to_owned)),
    }
}
