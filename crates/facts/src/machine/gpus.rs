//! GPUs as the driver reports them: through NVML, or without it through the driver's files in /proc.

use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use serde::{Deserialize, Serialize};

use model::Fact;

use super::driver::KernelDriver;
use super::HostTree;

const GPUS: &str = "/proc/driver/nvidia/gpus";
/// Folders in which distributions and NVIDIA's installer put the driver's libraries.
const FOLDERS: &[&str] = &["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];

/// GPUs and CUDA release as the driver reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DriverGpus {
    /// The GPUs, in NVML's order; in the order of their addresses if read from the driver's files.
    pub list: Fact<Vec<DriverGpu>>,
    /// CUDA release that the driver supports.
    pub cuda: Fact<String>,
    /// True if the versions of the driver's libraries and of its kernel module differ.
    pub library_mismatch: Fact<bool>,
}

/// One GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DriverGpu {
    /// PCI address.
    pub address: Fact<String>,
    /// Product name, such as `NVIDIA H100 80GB HBM3`.
    pub model: Fact<String>,
    /// Minor number of its device node: 0 for `/dev/nvidia0`.
    pub minor: Fact<u32>,
    /// Compute capability, such as `9.0`.
    pub capability: Fact<String>,
    /// True in persistence mode: the driver keeps an unused GPU initialized.
    pub persistence: Fact<bool>,
    /// True if MIG is enabled; absent if the GPU does not support MIG.
    pub mig: Fact<bool>,
}

impl DriverGpus {
    pub(super) fn collect(tree: &HostTree) -> Self {
        const WHY: &str = "only NVML reports this, and it was not queried";
        let gpu = |address: &String| {
            let text = tree.text(&format!("{GPUS}/{address}/information"));
            let field = |name: &str| text.as_ref().and_then(|text, _| field(text, name).into());
            DriverGpu {
                address: Fact::known(address.clone()),
                model: field("Model:"),
                minor: field("Device Minor:").and_then(|minor: String, _| minor.parse().ok().into()),
                capability: Fact::unknown(WHY),
                persistence: Fact::unknown(WHY),
                mig: Fact::unknown(WHY),
            }
        };
        Self {
            list: tree.names(GPUS).map(|names| names.iter().map(gpu).collect()),
            cuda: Fact::unknown(WHY),
            library_mismatch: mismatch(tree),
        }
    }

    /// Queries NVML, which reports more than the driver's files. Without NVML the values from the files stay, and the
    /// others are unknown with NVML's error.
    pub(super) fn ask(&mut self) {
        match Nvml::init() {
            Ok(nvml) => *self = Self::of(&nvml),
            Err(NvmlError::DriverNotLoaded) => {
                *self = Self { list: Fact::Absent, cuda: Fact::Absent, library_mismatch: Fact::Absent };
            }
            Err(error) => {
                let why = format!("NVML: {}", cause(&error));
                if matches!(error, NvmlError::LibRmVersionMismatch) {
                    self.library_mismatch = Fact::known(true);
                }
                // Without a driver there is no CUDA release to report.
                self.cuda = if self.list == Fact::Absent { Fact::Absent } else { Fact::unknown(&*why) };
                if let Fact::Seen { value: gpus, .. } = &mut self.list {
                    for gpu in gpus {
                        gpu.capability = Fact::unknown(&*why);
                        (gpu.persistence, gpu.mig) = (Fact::unknown(&*why), Fact::unknown(&*why));
                    }
                }
            }
        }
    }

    fn of(nvml: &Nvml) -> Self {
        let cuda = item(nvml.sys_cuda_driver_version());
        let list = item(nvml.device_count()).and_then(|count, _| {
            let gpus = (0..count).map(|index| nvml.device_by_index(index).map(|device| gpu(&device)));
            item(gpus.collect::<Result<Vec<_>, _>>())
        });
        Self {
            list,
            // NVML reports 1000 * major + 10 * minor.
            cuda: cuda.map(|number| format!("{}.{}", number / 1000, number % 1000 / 10)),
            library_mismatch: Fact::known(false),
        }
    }
}

/// Finds a field in `Model: \t\t NVIDIA H100 80GB HBM3`.
fn field(information: &str, name: &str) -> Option<String> {
    let value = information.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.trim().to_owned())
}

/// Compares the version in the name of the file behind libnvidia-ml.so.1; absent without the library or the driver.
fn mismatch(tree: &HostTree) -> Fact<bool> {
    KernelDriver::collect(tree).version.and_then(|driver, _| {
        let library = FOLDERS.iter().find_map(|folder| {
            let file = tree.link_name(&format!("{folder}/libnvidia-ml.so.1")).value()?.clone();
            file.strip_prefix("libnvidia-ml.so.").map(ToOwned::to_owned)
        });
        library.map_or(Fact::Absent, |library| Fact::known(library != driver))
    })
}

fn gpu(device: &Device<'_>) -> DriverGpu {
    let capability = item(device.cuda_compute_capability());
    DriverGpu {
        address: item(device.pci_info()).map(|pci| address(&pci.bus_id)),
        model: item(device.name()),
        minor: item(device.minor_number()),
        capability: capability.map(|capability| format!("{}.{}", capability.major, capability.minor)),
        persistence: item(device.is_in_persistent_mode()),
        mig: item(device.mig_mode()).map(|mode| mode.current == 1),
    }
}

/// Shortens NVML's `00000000:17:00.0` to the kernel's form.
fn address(bus_id: &str) -> String {
    let short = bus_id.strip_prefix("0000").filter(|rest| rest.find(':') == Some(4));
    short.unwrap_or(bus_id).to_ascii_lowercase()
}

/// Converts an answer of NVML; what the GPU does not support is absent.
fn item<T>(answer: Result<T, NvmlError>) -> Fact<T> {
    match answer {
        Ok(value) => Fact::known(value),
        Err(NvmlError::NotSupported | NvmlError::FunctionNotFound) => Fact::Absent,
        Err(error) => Fact::unknown(format!("NVML: {}", cause(&error))),
    }
}

fn cause(error: &NvmlError) -> String {
    match error {
        // musl's own message names neither the library nor the reason.
        NvmlError::LibloadingError(_) if cfg!(target_feature = "crt-static") => {
            "this build of ncclcheck is static and can open no library; the build for glibc can".to_owned()
        }
        NvmlError::LibloadingError(error) => error.to_string(),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_the_kernels() {
        assert_eq!(address("00000000:C7:00.0"), "0000:c7:00.0");
        assert_eq!(address("00010000:00:00.0"), "00010000:00:00.0");
        assert_eq!(address("0000:17:00.0"), "0000:17:00.0");
    }
}
