//! Passes GPUs to a container of an engine without GPU support: their device nodes, and the driver libraries of this
//! host, each mounted by name. NVIDIA's toolkit does this and more (libnvidia-container, src/nvc_info.c).

use std::path::{Path, PathBuf};

use super::arrangement::{Arrangement, GpuSelection};

/// Folder of the libraries in the container; NVIDIA's base images have it on the loader's search path.
const INSIDE: &str = "/usr/local/nvidia/lib64";
/// Folders in which distributions and NVIDIA's own installer put the driver's libraries.
const FOLDERS: &[&str] =
    &["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/nvidia/lib64"];
/// Libraries that CUDA and NVML load: the driver, its compilers, and their dependencies.
const LIBRARIES: &[&str] = &[
    "libcuda.so.1",
    "libnvidia-ml.so.1",
    "libnvidia-ptxjitcompiler.so.1",
    "libnvidia-nvvm.so.4",
    "libnvidia-cfg.so.1",
];

/// Prefix of another such library, whose name ends with the driver's release.
const VERSIONED: &str = "libnvidia-gpucomp.so.";

/// Adds this host's GPUs to an arrangement. `library_path` is the image's `LD_LIBRARY_PATH`.
pub(super) fn add(arrangement: &mut Arrangement, library_path: Option<&str>) -> Result<(), String> {
    let nodes = nodes(Path::new("/dev"), &arrangement.gpus);
    if !nodes.iter().any(|node| node == "/dev/nvidiactl") {
        return Err("this host has no /dev/nvidiactl: no NVIDIA driver is loaded".to_owned());
    }
    let folder = FOLDERS.iter().map(Path::new).find(|folder| folder.join("libcuda.so.1").exists());
    let folder = folder.ok_or_else(|| format!("libcuda.so.1 not found in {}", FOLDERS.join(", ")))?;
    arrangement.devices.extend(nodes);
    for (name, file) in libraries(folder) {
        arrangement.volumes.push(format!("{}:{INSIDE}/{name}:ro", file.display()));
    }
    let path = match library_path {
        Some(path) if path.split(':').any(|folder| folder == INSIDE) => path.to_owned(),
        Some(path) if !path.is_empty() => format!("{path}:{INSIDE}"),
        _ => INSIDE.to_owned(),
    };
    arrangement.env.push(("LD_LIBRARY_PATH".to_owned(), path));
    Ok(())
}

/// Device nodes of the driver and of the requested GPUs.
fn nodes(folder: &Path, gpus: &GpuSelection) -> Vec<String> {
    let names = folder.read_dir().into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let is_wanted = |name: &str| match name.strip_prefix("nvidia") {
        None | Some("-modeset" | "-caps") => false,
        Some(rest) => match (rest.parse::<u32>(), gpus) {
            (Err(_), _) => ["ctl", "-uvm", "-uvm-tools"].contains(&rest),
            (Ok(_), GpuSelection::All) => true,
            (Ok(index), GpuSelection::Count(count)) => index < *count,
            (Ok(index), GpuSelection::These(ids)) => ids.contains(&index.to_string()),
        },
    };
    let mut nodes: Vec<_> = names.filter(|name| is_wanted(name)).map(|name| format!("/dev/{name}")).collect();
    nodes.sort();
    nodes
}

/// Sonames and files of the driver's libraries in a folder.
fn libraries(folder: &Path) -> Vec<(String, PathBuf)> {
    let names = folder.read_dir().into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let wanted = names.filter(|name| LIBRARIES.contains(&name.as_str()) || name.starts_with(VERSIONED));
    // The mount follows symlinks.
    let mut found: Vec<_> = wanted.map(|name| (name.clone(), folder.join(name))).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn nodes_of_some_gpus() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm", "nvidia-modeset", "null"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let of = |gpus: &GpuSelection| nodes(folder.path(), gpus).join(" ");
        let common = "/dev/nvidia-uvm";
        assert_eq!(of(&GpuSelection::All), format!("{common} /dev/nvidia0 /dev/nvidia1 /dev/nvidia10 /dev/nvidiactl"));
        assert_eq!(of(&GpuSelection::Count(1)), format!("{common} /dev/nvidia0 /dev/nvidiactl"));
        assert_eq!(of(&GpuSelection::These(vec!["10".to_owned()])), format!("{common} /dev/nvidia10 /dev/nvidiactl"));
    }
}
