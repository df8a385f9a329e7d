//! Device nodes of a recorded host, through which programs reach GPUs, NICs and the memory of other machines.

use crate::machine::Record;
use model::{Fact, Gap};

use super::super::super::{Facts, key};
use super::{is_there, list, number, ours};

pub(super) fn produce(record: &Record, facts: &mut Facts) {
    facts.insert(key::HOST_HAS_GPU, has_gpu(record));
    facts.insert(key::HOST_MISSING_GPU_NODES, list(record.driver.version.as_ref().and_then(|_, _| gpu_nodes(record))));
    facts.insert(key::HOST_RDMA_WITHOUT_NODE, list(rdma_nodes(record)));
    facts.insert(key::HOST_IMEX, is_there(&record.fabric.imex));
    facts.insert(key::HOST_IMEX_CHANNELS, imex_channels(record));
}

/// GPUs on the PCI bus, or without one, as in WSL, those that the driver reports.
fn has_gpu(record: &Record) -> Fact<bool> {
    if record.gpus.list.value().is_some_and(|gpus| !gpus.is_empty()) {
        return Fact::known(true);
    }
    match ours(record) {
        Fact::Seen { value: gpus, .. } => Fact::known(!gpus.is_empty()),
        Fact::Absent => Fact::unknown("the record has no PCI bus"),
        Fact::Unknown(gap) => Fact::Unknown(gap),
    }
}

/// The nodes that CUDA opens and that do not exist: the driver's, and one per GPU.
fn gpu_nodes(record: &Record) -> Fact<Vec<String>> {
    let nodes = match record.driver.nodes.as_ref() {
        Fact::Seen { value: nodes, .. } => nodes,
        Fact::Absent => return Fact::unknown("the record has no /dev"),
        Fact::Unknown(gap) => return Fact::Unknown(gap),
    };
    let gpus = record.gpus.list.value().map(Vec::as_slice).unwrap_or_default();
    let minors: Vec<u32> = gpus.iter().filter_map(|gpu| gpu.minor.value().copied()).collect();
    let wanted = std::iter::once("nvidiactl".to_owned()).chain(minors.iter().map(|minor| format!("nvidia{minor}")));
    let missing: Vec<String> = wanted.filter(|node| !nodes.contains(node)).map(|node| format!("/dev/{node}")).collect();
    let of_gpus = nodes.iter().filter(|node| node.ends_with(|last: char| last.is_ascii_digit())).count();
    if missing.is_empty() && minors.len() < gpus.len() && of_gpus < gpus.len() {
        return Fact::unknown("the device nodes of some GPUs have unknown numbers");
    }
    visible(missing, record)
}

/// RDMA devices with a verbs interface whose node programs cannot open. rdma_without_verbs has those without one.
fn rdma_nodes(record: &Record) -> Fact<Vec<String>> {
    let with_verbs = record.rdma.devices.as_ref().map(|_| {
        let pairs = record.fabric_devices().filter_map(|device| Some((&device.name, device.verbs.value()?)));
        pairs.collect::<Vec<_>>()
    });
    with_verbs.and_then(|devices, _| {
        let nodes = match record.rdma.nodes.as_ref() {
            Fact::Seen { value: nodes, .. } => nodes.as_slice(),
            Fact::Absent => &[],
            Fact::Unknown(gap) => return Fact::Unknown(gap),
        };
        let without = devices.into_iter().filter(|(_, verbs)| !nodes.contains(verbs));
        visible(without.map(|(name, verbs)| format!("{name} (/dev/infiniband/{verbs})")).collect(), record)
    })
}

fn imex_channels(record: &Record) -> Fact<i64> {
    match &record.fabric.imex_channels {
        Fact::Seen { value: count, .. } if *count > 0 => Fact::known(number(*count)),
        Fact::Unknown(gap) => Fact::Unknown(gap.clone()),
        _ => unless_hidden(0, record),
    }
}

/// What is missing of a record's /dev.
fn visible(missing: Vec<String>, record: &Record) -> Fact<Vec<String>> {
    if missing.is_empty() { Fact::known(missing) } else { unless_hidden(missing, record) }
}

/// An answer that follows from a missing node; unknown in a container, whose nodes the engine chose.
fn unless_hidden<T>(answer: T, record: &Record) -> Fact<T> {
    match &record.system.container {
        Fact::Seen { value: engine, .. } => Fact::Unknown(
            Gap::new(format!("the record was made in a container ({engine}), whose /dev is not the host's"))
                .settled_by("run `ncclcheck host` on the host itself"),
        ),
        _ => Fact::known(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{record, said};
    use super::*;

    #[test]
    fn a_gpu_on_the_bus_or_in_the_driver_counts() {
        for (text, expected) in [
            ("pci: {gpus: [{address: '0000:17:00.0', driver: nvidia}]}\ngpus: {list: null}", "true"),
            ("pci: {gpus: [{address: '0000:17:00.0', driver: nouveau}]}\ngpus: {list: null}", "true"),
            ("pci: {gpus: [{address: '0000:17:00.0', driver: vfio-pci}]}\ngpus: {list: null}", "false"),
            ("pci: {gpus: []}\ngpus: {list: null}", "false"),
            ("pci: {gpus: []}\ngpus: {list: [{model: NVIDIA RTX 4090}]}", "true"),
            ("pci: {gpus: null}\ngpus: {list: null}", "unknown: the record has no PCI bus"),
            ("gpus: {list: null}", "unknown: not in the record"),
        ] {
            assert_eq!(said(has_gpu(&record(text))), expected, "{text}");
        }
    }

    #[test]
    fn device_nodes_of_gpus() {
        let two = "gpus: {list: [{minor: 0}, {minor: 1}]}";
        let host = "system: {container: null}";
        let missing = |gpus: &str, nodes: &str, system: &str| {
            said(gpu_nodes(&record(&format!("{gpus}\ndriver: {{version: '570.1', nodes: {nodes}}}\n{system}"))))
        };
        assert_eq!(missing(two, "[nvidia0, nvidia1, nvidiactl]", host), "[]");
        assert_eq!(missing(two, "[nvidia0, nvidiactl]", host), r#"["/dev/nvidia1"]"#);
        assert_eq!(missing(two, "[]", host), r#"["/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia1"]"#);
        assert_eq!(missing(two, "null", host), "unknown: the record has no /dev");
        // Without numbers the count decides.
        let unnumbered = "gpus: {list: [{minor: null}, {minor: null}]}";
        assert_eq!(missing(unnumbered, "[nvidia0, nvidia1, nvidiactl]", host), "[]");
        assert!(
            missing(unnumbered, "[nvidia0, nvidiactl]", host).starts_with("unknown: the device nodes of some GPUs")
        );
        // An engine decides which nodes a container has.
        assert!(
            missing(two, "[]", "system: {container: Docker}")
                .starts_with("unknown: the record was made in a container (Docker)")
        );
        assert_eq!(missing(two, "[nvidia0, nvidia1, nvidiactl]", "system: {container: Docker}"), "[]");
    }

    #[test]
    fn device_nodes_of_rdma_devices() {
        let devices = "network: {interfaces: []}\nrdma: {devices: [{name: mlx5_0, verbs: uverbs0, ports: []}, {name: mlx5_1, verbs: null, ports: []}]";
        let missing = |nodes: &str, container: &str| {
            said(rdma_nodes(&record(&format!("{devices}, nodes: {nodes}}}\nsystem: {{container: {container}}}"))))
        };
        assert_eq!(missing("[rdma_cm, uverbs0]", "null"), "[]");
        assert_eq!(missing("[rdma_cm]", "null"), r#"["mlx5_0 (/dev/infiniband/uverbs0)"]"#);
        assert_eq!(missing("null", "null"), r#"["mlx5_0 (/dev/infiniband/uverbs0)"]"#);
        assert!(missing("null", "Podman").starts_with("unknown: the record was made in a container (Podman)"));
    }

    #[test]
    fn channels_of_imex() {
        for (text, expected) in [
            ("fabric: {imex_channels: 2}\nsystem: {container: Docker}", "2"),
            ("fabric: {imex_channels: 0}\nsystem: {container: null}", "0"),
            ("fabric: {imex_channels: null}\nsystem: {container: null}", "0"),
            ("system: {container: null}", "unknown: not in the record"),
        ] {
            assert_eq!(said(imex_channels(&record(text))), expected, "{text}");
        }
        let hidden = said(imex_channels(&record("fabric: {imex_channels: null}\nsystem: {container: Docker}")));
        assert!(hidden.starts_with("unknown: the record was made in a container"), "{hidden}");
    }
}
