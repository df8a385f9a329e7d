//! NVIDIA's driver, the GPUs, and what passes them to containers.

use super::{Offer, is_in_path};
use facts::machine::Record;
use facts::machine::cdi::Specification;
use model::{Environment, Fact, shell_word};

const AREA: &str = "gpus";

pub(super) fn offers(record: &Record, environment: &Environment) -> Vec<Offer> {
    let has_driver = record.driver.version.value().is_some();
    let mut offers = vec![driver(record)];
    if has_driver {
        offers.extend([gpus(record), nodes(record), libraries(record)]);
    }
    offers.push(toolkit(record, has_driver));
    offers.extend(specifications(record));
    offers.extend(has_driver.then(|| missing_specification(record, environment)).flatten());
    offers
}

fn driver(record: &Record) -> Offer {
    match &record.driver.version {
        Fact::Seen { value, .. } => {
            let cuda = record.gpus.cuda.value().map(|cuda| format!(", CUDA {cuda}")).unwrap_or_default();
            Offer::works(AREA, "driver", format!("NVIDIA {value}{cuda}"))
        }
        Fact::Unknown(gap) => Offer::unknown(AREA, "driver", gap.to_string()),
        Fact::Absent if record.pci.gpus.value().is_some_and(|gpus| !gpus.is_empty()) => Offer::broken(
            AREA,
            "driver",
            "there are NVIDIA GPUs on the PCI bus, and no driver is loaded",
            "sudo modprobe nvidia; if there is no such module, install the driver",
        ),
        Fact::Absent => {
            Offer::absent(AREA, "driver", "no NVIDIA driver is loaded, and no NVIDIA GPU is on the PCI bus")
        }
    }
}

fn gpus(record: &Record) -> Offer {
    match &record.gpus.list {
        Fact::Seen { value, .. } if !value.is_empty() => {
            let model = value.first().and_then(|gpu| gpu.model.value()).map_or("GPU", |model| model);
            Offer::works(AREA, "GPUs", format!("{} × {model}", value.len()))
        }
        Fact::Unknown(gap) => Offer::unknown(AREA, "GPUs", gap.to_string()),
        Fact::Seen { .. } | Fact::Absent => {
            Offer::broken(AREA, "GPUs", "the driver is loaded and lists no GPU", "sudo dmesg | grep -i -e NVRM -e Xid")
        }
    }
}

fn nodes(record: &Record) -> Offer {
    match &record.driver.nodes {
        Fact::Seen { value, .. } if !value.is_empty() => Offer::works(AREA, "device nodes", value.join(", ")),
        Fact::Unknown(gap) => Offer::unknown(AREA, "device nodes", gap.to_string()),
        Fact::Seen { .. } | Fact::Absent => {
            Offer::broken(AREA, "device nodes", "/dev has no nvidia0 and no nvidiactl", "sudo nvidia-modprobe -c 0 -u")
        }
    }
}

fn libraries(record: &Record) -> Offer {
    match &record.gpus.library_mismatch {
        Fact::Seen { value: true, .. } => Offer::broken(
            AREA,
            "libraries",
            "the driver's libraries and its kernel module have different versions",
            "restart the machine, or unload and load the module",
        ),
        Fact::Seen { value: false, .. } => Offer::works(AREA, "libraries", "those of the loaded kernel module"),
        Fact::Absent => Offer::absent(AREA, "libraries", "libnvidia-ml.so.1 was not found"),
        Fact::Unknown(gap) => Offer::unknown(AREA, "libraries", gap.to_string()),
    }
}

fn toolkit(record: &Record, has_driver: bool) -> Offer {
    const NAME: &str = "container toolkit";
    match &record.containers.nvidia_runtime {
        Fact::Seen { value: true, .. } => Offer::works(AREA, NAME, "installed"),
        Fact::Unknown(gap) => Offer::unknown(AREA, NAME, gap.to_string()),
        Fact::Seen { .. } | Fact::Absent if has_specification(record) => {
            Offer::absent(AREA, NAME, "not installed: Docker from 25 on and Podman pass GPUs by the CDI specification")
        }
        Fact::Seen { .. } | Fact::Absent if has_driver => Offer::broken(
            AREA,
            NAME,
            "not installed, and there is no CDI specification: containers get no GPUs",
            "install nvidia-container-toolkit, then: sudo nvidia-ctk runtime configure --runtime=docker && sudo \
             systemctl restart docker",
        ),
        Fact::Seen { .. } | Fact::Absent => Offer::absent(AREA, NAME, "not installed"),
    }
}

/// Returns true if a CDI specification passes GPUs to containers.
fn has_specification(record: &Record) -> bool {
    let mut specifications = record.cdi.specifications.value().into_iter().flatten();
    specifications.any(|one| is_of_gpus(one) && one.fault(&record.driver.version).is_none())
}

fn is_of_gpus(specification: &Specification) -> bool {
    specification.kind.value().is_some_and(|kind| kind == "nvidia.com/gpu")
}

/// The toolkit without a CDI specification, which it writes on demand. Docker passes GPUs by the toolkit's hook, too; Podman does not.
fn missing_specification(record: &Record, environment: &Environment) -> Option<Offer> {
    const NAME: &str = "CDI specification";
    const FIX: &str = "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml";
    let has_toolkit = record.containers.nvidia_runtime.value() == Some(&true);
    let specifications = match &record.cdi.specifications {
        Fact::Unknown(gap) => return has_toolkit.then(|| Offer::unknown(AREA, NAME, gap.to_string())),
        found => found.value().into_iter().flatten(),
    };
    if !has_toolkit || specifications.into_iter().any(|one| is_of_gpus(one) || matches!(one.kind, Fact::Unknown(_))) {
        return None;
    }
    let none = "there is none for GPUs in /etc/cdi or /run/cdi";
    Some(if is_in_path("podman", environment) {
        Offer::broken(AREA, NAME, format!("{none}: containers of Podman get no GPUs"), FIX)
    } else if is_in_path("docker", environment) {
        // Docker starts the toolkit's hook, which needs neither a specification nor the nvidia runtime.
        Offer::absent(AREA, NAME, format!("{none}: Docker passes GPUs by --gpus without one"))
    } else {
        Offer::absent(AREA, NAME, format!("{none}, and neither docker nor podman is installed"))
    })
}

/// CDI specifications, of which those of an earlier driver do not work.
fn specifications(record: &Record) -> Vec<Offer> {
    let specifications = record.cdi.specifications.value().into_iter().flatten();
    let offer = |specification: &Specification| {
        let name = format!("CDI {}", specification.file);
        match (specification.fault(&record.driver.version), specification.kind.value()) {
            (Some(fault), None) => {
                Offer::broken(AREA, name, fault, format!("remove {} or generate it again", specification.file))
            }
            (Some(fault), Some(_)) => {
                let help = format!("sudo nvidia-ctk cdi generate --output={}", shell_word(&specification.file));
                Offer::broken(AREA, name, fault, help)
            }
            (None, kind) => {
                let kind = kind.map_or("no kind", |kind| kind);
                Offer::works(AREA, name, format!("{kind}: {}", specification.devices.join(", ")))
            }
        }
    };
    specifications.map(offer).collect()
}
