//! Facts that only a host record provides. Gaps in the record make them unknown, with the same reason.

mod devices;
pub(crate) mod names;
mod rdma;
mod software;
#[cfg(test)]
mod testing;

use crate::machine::Host;
use crate::machine::{Record, gpus, pci};
use crate::words::Flavour;
use model::{Fact, Version};

use super::super::Facts;
use super::super::key::{self, Definition, definitions};

/// Facts derived from the GPU.
const OF_GPU: &[&Definition] = definitions![
    HOST_GPU,
    HOST_GPU_ARCH,
    HOST_GPU_CLASS,
    HOST_TORCH_CODE,
    HOST_NCCL_CODE,
    HOST_EXTENSIONS_WITHOUT_CODE,
    HOST_IMPORTED_WITHOUT_CODE,
];

/// Facts derived from the driver.
const OF_DRIVER: &[&Definition] = definitions![
    HOST_DRIVER,
    HOST_CUDA,
    HOST_CUDA_MIN,
    HOST_UNMET_REQUIREMENTS,
    HOST_COMPAT,
    HOST_COMPAT_REFUSED,
    HOST_NCCL_CUDA,
];

impl Facts {
    /// Returns these facts with those about a recorded host and about the image on it. `host` is the description of
    /// that host, possibly under another name.
    #[must_use]
    pub fn on_recorded(&self, host: &Host, record: &Record) -> Self {
        let mut facts = self.on(host);
        gaps(record, &mut facts);
        machine(record, &mut facts);
        gpus(record, &mut facts);
        devices::produce(record, &mut facts);
        rdma::produce(record, &mut facts);
        software::produce(record, &mut facts);
        names::produce(record, &mut facts);
        facts
    }
}

/// Facts missing from the description because the record does not have them are unknown, not absent.
fn gaps(record: &Record, facts: &mut Facts) {
    unknown(&record.gpu().map(|_| ()), OF_GPU, facts);
    unknown(&record.gpus.list, definitions![HOST_GPU_COUNT], facts);
    unknown(&record.driver.version, OF_DRIVER, facts);
    unknown(&record.nic(), definitions![HOST_RDMA], facts);
    unknown(&record.fabric.nvswitches, definitions![HOST_FABRIC], facts);
    unknown(&record.system.kernel, definitions![HOST_KERNEL], facts);
}

/// Facts derived from an unknown item are unknown too, unless the description provides the first of them.
fn unknown<T>(item: &Fact<T>, keys: &[&'static Definition], facts: &mut Facts) {
    let is_said = |key: &&Definition| *facts.view(key) != Fact::Absent;
    if let Fact::Unknown(gap) = item
        && !keys.first().is_some_and(is_said)
    {
        for key in keys {
            facts.insert_value(key, Fact::Unknown(gap.clone()));
        }
    }
}

fn machine(record: &Record, facts: &mut Facts) {
    let modules = record.modules.loaded.as_ref();
    facts.insert(key::HOST_VIRTUAL_MACHINE, record.system.virtual_machine.clone());
    facts.insert(key::HOST_ARCHITECTURE, record.system.architecture.clone());
    facts.insert(key::HOST_DRIVER_FLAVOUR, record.driver.flavour.clone());
    facts.insert(
        key::HOST_MODULES,
        list(modules.map(|loaded| loaded.iter().map(|module| module.name.clone()).collect())),
    );
    facts.insert(key::HOST_PEER_MEMORY, list(record.modules.peer_memory.clone()));
    facts.insert(key::HOST_PEERMEM, peermem(record));
    facts.insert(key::HOST_DMA_BUF, dma_buf(record));
    facts.insert(key::HOST_NVSWITCHES, record.fabric.nvswitches.clone().map(number));
    facts.insert(key::HOST_FABRIC_MANAGER, is_there(&record.fabric.manager));
    facts.insert(key::HOST_BARE_NODES, list(bare_nodes(record)));
    let specifications = record.cdi.specifications.as_ref();
    let files = specifications.map(|all| all.iter().map(|specification| specification.file.clone()).collect());
    facts.insert(key::HOST_CDI_FILES, list(files));
    facts.insert(key::HOST_CDI_FAULTS, list(cdi_faults(record)));
}

fn gpus(record: &Record, facts: &mut Facts) {
    facts.insert(key::HOST_LIBRARY_MISMATCH, record.gpus.library_mismatch.clone());
    let ours = ours(record);
    let with_driver = |gpu: &&pci::PciGpu| match &gpu.driver {
        Fact::Seen { value: driver, .. } => format!("{} ({driver})", gpu.address),
        Fact::Absent => format!("{} (no driver)", gpu.address),
        Fact::Unknown(gap) => format!("{} (driver unknown: {})", gpu.address, gap.why),
    };
    facts.insert(key::HOST_PCI_GPUS, list(ours.as_ref().map(|gpus| gpus.iter().map(with_driver).collect())));
    let ports = ours.as_ref().and_then(|gpus, _| each(gpus.iter(), |gpu| gpu.redirecting_ports.clone()));
    facts.insert(key::HOST_REDIRECTING_PORTS, list(ports));
    let translated = |gpu: &pci::PciGpu| {
        let is_translated = gpu.iommu.as_ref().map(|domain| domain.starts_with("DMA"));
        chosen(&is_translated, &gpu.address)
    };
    facts.insert(key::HOST_TRANSLATED_GPUS, list(ours.and_then(|gpus, _| each(gpus.into_iter(), translated))));
    let with = |answer: fn(&gpus::DriverGpu) -> Fact<bool>| {
        let named = |gpu: &gpus::DriverGpu| gpu.address.as_ref().and_then(|address, _| chosen(&answer(gpu), address));
        record.gpus.list.as_ref().and_then(|gpus, _| each(gpus.iter(), named))
    };
    facts.insert(key::HOST_PERSISTENCE_OFF, list(with(|gpu| gpu.persistence.clone().map(|on| !on))));
    facts.insert(key::HOST_MIG, list(with(|gpu| gpu.mig.clone())));
}

/// GPUs on the PCI bus that are not passed through to virtual machines.
fn ours(record: &Record) -> Fact<Vec<&pci::PciGpu>> {
    record.pci.gpus.as_ref().map(|gpus| {
        let is_ours = |gpu: &&pci::PciGpu| gpu.driver.value().is_none_or(|driver| !driver.starts_with("vfio"));
        gpus.iter().filter(is_ours).collect()
    })
}

/// The module has this name since driver 470; Mellanox's own package used the other.
fn peermem(record: &Record) -> Fact<bool> {
    match (record.modules.has("nvidia_peermem"), record.modules.has("nv_peer_mem")) {
        (Fact::Seen { value: false, .. }, older) => older,
        (newer, _) => newer,
    }
}

/// DMA-BUF needs the open kernel modules and Linux 5.12 (GPU Operator, "GPUDirect RDMA and GPUDirect Storage").
fn dma_buf(record: &Record) -> Fact<bool> {
    record.driver.flavour.as_ref().and_then(|flavour, _| match flavour {
        Flavour::Proprietary => Fact::known(false),
        Flavour::Open => record.system.kernel.as_ref().and_then(|kernel, _| has_dma_buf(kernel)),
    })
}

fn has_dma_buf(kernel: &str) -> Fact<bool> {
    match (Version::parse(kernel), Version::parse("5.12")) {
        (Some(kernel), Some(first)) if kernel >= first => Fact::known(true),
        (Some(_), Some(_)) if kernel.contains(".el") => {
            Fact::unknown(format!("Red Hat may have backported DMA-BUF for RDMA to kernel {kernel}"))
        }
        (Some(_), Some(_)) => Fact::known(false),
        _ => Fact::unknown(format!("the kernel version {kernel} cannot be parsed")),
    }
}

/// NUMA nodes with processors but no memory. Nodes with memory only belong to a GPU or a memory expansion, and are
/// fine.
fn bare_nodes(record: &Record) -> Fact<Vec<String>> {
    record.memory.nodes.as_ref().and_then(|nodes, _| {
        each(nodes.iter().filter(|node| node.processors.value().is_some()), |node| {
            let is_bare = node.memory_kib.as_ref().map(|kib| *kib == 0);
            chosen(&is_bare, &format!("node{}", node.number))
        })
    })
}

fn cdi_faults(record: &Record) -> Fact<Vec<String>> {
    record.cdi.specifications.as_ref().map(|specifications| {
        let fault = |specification: &crate::machine::cdi::Specification| {
            Some(format!("{}: {}", specification.file, specification.fault(&record.driver.version)?))
        };
        specifications.iter().filter_map(fault).collect()
    })
}

/// Merges the lists of several items. A gap of one item counts only when no other item has an entry.
fn each<T>(all: impl Iterator<Item = T>, tell: impl Fn(T) -> Fact<Vec<String>>) -> Fact<Vec<String>> {
    let mut found = Vec::new();
    let mut gap = None;
    for one in all {
        match tell(one) {
            Fact::Seen { value: texts, .. } => found.extend(texts),
            Fact::Absent => {}
            Fact::Unknown(unread) => gap = gap.or(Some(unread)),
        }
    }
    found.sort();
    found.dedup();
    match gap {
        Some(gap) if found.is_empty() => Fact::Unknown(gap),
        _ => Fact::known(found),
    }
}

/// The name if the answer is yes, else nothing.
fn chosen(answer: &Fact<bool>, name: &str) -> Fact<Vec<String>> {
    answer.as_ref().map(|yes| if *yes { vec![name.to_owned()] } else { Vec::new() })
}

fn is_there<T>(item: &Fact<T>) -> Fact<bool> {
    match item {
        Fact::Seen { .. } => Fact::known(true),
        Fact::Absent => Fact::known(false),
        Fact::Unknown(gap) => Fact::Unknown(gap.clone()),
    }
}

/// A list of strings; absent when empty.
fn list(texts: Fact<Vec<String>>) -> Fact<Vec<String>> {
    texts.and_then(|texts, at| if texts.is_empty() { Fact::Absent } else { Fact::Seen { value: texts, at } })
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
