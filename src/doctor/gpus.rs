//! NVIDIA's driver, the GPUs, and what passes them to containers.

use super::Offer;
use facts::machine::Record;
use model::Fact;

const AREA: &str = "gpus";

pub(super) fn offers(record: &Record) -> Vec<Offer> {
    let has_driver = record.driver.version.value().is_some();
    let mut offers = vec![driver(record)];
    if has_driver {
        offers.extend([gpus(record), nodes(record), libraries(record)]);
    }
    offers.push(toolkit(record, has_driver));
    offers.extend(specifications(record));
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
    specifications.any(|one| one.kind.value().is_some_and(|kind| kind == "nvidia.com/gpu") && one.missing.is_empty())
}

/// A CDI specification that names files that are gone comes from an earlier driver.
fn specifications(record: &Record) -> Vec<Offer> {
    let specifications = record.cdi.specifications.value().into_iter().flatten();
    let offer = |specification: &facts::machine::cdi::Specification| {
        let name = format!("CDI {}", specification.file);
        match (&specification.kind, specification.missing.first()) {
            (Fact::Unknown(gap), _) => Offer::broken(
                AREA,
                name,
                gap.to_string(),
                format!("remove {} or generate it again", specification.file),
            ),
            (_, Some(missing)) => Offer::broken(
                AREA,
                name,
                format!("it names {missing}, which does not exist"),
                format!("sudo nvidia-ctk cdi generate --output={}", specification.file),
            ),
            (kind, None) => {
                let kind = kind.value().map_or("no kind", |kind| kind);
                Offer::works(AREA, name, format!("{kind}: {}", specification.devices.join(", ")))
            }
        }
    };
    specifications.map(offer).collect()
}
