//! What only a record tells of a host. What the record could not tell is unknown here, for the same reason.

mod rdma;

use crate::host::driver::Flavour;
use crate::host::{Item, Record, gpus, pci};
use crate::model::{Fact, Gap, Host, Value, Version};

use super::super::Facts;
use super::super::key::{self, Key};

/// What is concluded from the GPU.
const OF_GPU: &[&Key] = &[
    key::HOST_GPU,
    key::HOST_GPU_ARCH,
    key::HOST_GPU_CLASS,
    key::HOST_TORCH_CODE,
    key::HOST_NCCL_CODE,
    key::HOST_EXTENSIONS_WITHOUT_CODE,
];

/// What is concluded from the driver.
const OF_DRIVER: &[&Key] = &[
    key::HOST_DRIVER,
    key::HOST_CUDA,
    key::HOST_UNMET_REQUIREMENTS,
    key::HOST_COMPAT,
    key::HOST_COMPAT_REFUSED,
    key::HOST_NCCL_CUDA,
];

impl Facts {
    /// The same facts, with those about a recorded host and about the image on it. `host` is its description, in which it may
    /// have another name.
    #[must_use]
    pub fn on_recorded(&self, host: &Host, record: &Record) -> Self {
        let mut facts = self.on(host);
        gaps(record, &mut facts);
        machine(record, &mut facts);
        gpus(record, &mut facts);
        rdma::produce(record, &mut facts);
        facts
    }
}

/// What a description leaves out because the record does not know it is unknown, not unsaid.
fn gaps(record: &Record, facts: &mut Facts) {
    unknown(&record.gpu().map(|_| ()), OF_GPU, facts);
    unknown(&record.gpus.list, &[key::HOST_GPU_COUNT], facts);
    unknown(&record.driver.version, OF_DRIVER, facts);
    unknown(&record.nic(), &[key::HOST_RDMA], facts);
    unknown(&record.fabric.nvswitches, &[key::HOST_FABRIC], facts);
    unknown(&record.system.kernel, &[key::HOST_KERNEL], facts);
}

/// What is concluded from the first of these facts is as unknown as that, unless somebody described it.
fn unknown<T>(item: &Item<T>, keys: &[&'static Key], facts: &mut Facts) {
    let is_said = |key: &&Key| *facts.get(key.name) != Fact::Absent;
    if let Item::Unknown(why) = item
        && !keys.first().is_some_and(is_said)
    {
        for key in keys {
            facts.insert::<Value>(key, Fact::Unknown(Gap::new(&*why.unknown)));
        }
    }
}

fn machine(record: &Record, facts: &mut Facts) {
    let modules = record.modules.loaded.as_ref();
    facts.insert(key::HOST_VIRTUAL_MACHINE, fact(record.system.virtual_machine.clone()));
    facts.insert(key::HOST_ARCHITECTURE, fact(record.system.architecture.clone()));
    facts.insert(key::HOST_DRIVER_FLAVOUR, fact(record.driver.flavour.as_ref().map(|flavour| flavour.name())));
    facts.insert(
        key::HOST_MODULES,
        list(modules.map(|loaded| loaded.iter().map(|module| module.name.clone()).collect())),
    );
    facts.insert(key::HOST_PEER_MEMORY, list(record.modules.peer_memory.clone()));
    facts.insert(key::HOST_PEERMEM, fact(peermem(record)));
    facts.insert(key::HOST_DMA_BUF, fact(dma_buf(record)));
    facts.insert(key::HOST_NVSWITCHES, fact(record.fabric.nvswitches.clone().map(number)));
    facts.insert(key::HOST_FABRIC_MANAGER, fact(is_there(&record.fabric.manager)));
    facts.insert(key::HOST_ENGINE_MEMLOCK, fact(record.containers.memlock().map(|limit| Value::Int(limit.soft))));
    facts.insert(key::HOST_BARE_NODES, list(bare_nodes(record)));
    let specifications = record.cdi.specifications.as_ref();
    let files = specifications.map(|all| all.iter().map(|specification| specification.file.clone()).collect());
    facts.insert(key::HOST_CDI_FILES, list(files));
    facts.insert(key::HOST_CDI_FAULTS, list(cdi_faults(record)));
}

fn gpus(record: &Record, facts: &mut Facts) {
    facts.insert(key::HOST_LIBRARY_MISMATCH, fact(record.gpus.library_mismatch.clone()));
    let ours: Item<Vec<&pci::Gpu>> = record.pci.gpus.as_ref().map(|gpus| {
        let is_ours = |gpu: &&pci::Gpu| gpu.driver.known().is_none_or(|driver| !driver.starts_with("vfio"));
        gpus.iter().filter(is_ours).collect()
    });
    let with_driver = |gpu: &&pci::Gpu| match &gpu.driver {
        Item::Known(driver) => format!("{} ({driver})", gpu.address),
        Item::Absent => format!("{} (no driver)", gpu.address),
        Item::Unknown(why) => format!("{} (driver unknown: {})", gpu.address, why.unknown),
    };
    facts.insert(key::HOST_PCI_GPUS, list(ours.as_ref().map(|gpus| gpus.iter().map(with_driver).collect())));
    let ports = ours.as_ref().and_then(|gpus| each(gpus.iter(), |gpu| gpu.redirecting_ports.clone()));
    facts.insert(key::HOST_REDIRECTING_PORTS, list(ports));
    let translated = |gpu: &pci::Gpu| {
        let is_translated = gpu.iommu.as_ref().map(|domain| domain.starts_with("DMA"));
        chosen(&is_translated, &gpu.address)
    };
    facts.insert(key::HOST_TRANSLATED_GPUS, list(ours.and_then(|gpus| each(gpus.into_iter(), translated))));
    let with = |answer: fn(&gpus::Gpu) -> Item<bool>| {
        let named = |gpu: &gpus::Gpu| gpu.address.as_ref().and_then(|address| chosen(&answer(gpu), address));
        record.gpus.list.as_ref().and_then(|gpus| each(gpus.iter(), named))
    };
    facts.insert(key::HOST_PERSISTENCE_OFF, list(with(|gpu| gpu.persistence.clone().map(|on| !on))));
    facts.insert(key::HOST_MIG, list(with(|gpu| gpu.mig.clone())));
}

/// The module has this name since driver 470, and had the other one in Mellanox's own package.
fn peermem(record: &Record) -> Item<bool> {
    match (record.modules.has("nvidia_peermem"), record.modules.has("nv_peer_mem")) {
        (Item::Known(false), older) => older,
        (newer, _) => newer,
    }
}

/// DMA-BUF needs the open modules and Linux 5.12 (GPU Operator, "GPUDirect RDMA and GPUDirect Storage").
fn dma_buf(record: &Record) -> Item<bool> {
    record.driver.flavour.as_ref().and_then(|flavour| match flavour {
        Flavour::Proprietary => Item::Known(false),
        Flavour::Open => record.system.kernel.as_ref().and_then(|kernel| has_dma_buf(kernel)),
    })
}

fn has_dma_buf(kernel: &str) -> Item<bool> {
    match (Version::parse(kernel), Version::parse("5.12")) {
        (Some(kernel), Some(first)) if kernel >= first => Item::Known(true),
        (Some(_), Some(_)) if kernel.contains(".el") => {
            Item::unknown(format!("Red Hat may have brought DMA-BUF for RDMA to its kernel {kernel}"))
        }
        (Some(_), Some(_)) => Item::Known(false),
        _ => Item::unknown(format!("which version kernel {kernel} is")),
    }
}

/// Nodes that have processors alone. Memory without processors is a GPU's or an expansion's, and is well.
fn bare_nodes(record: &Record) -> Item<Vec<String>> {
    record.memory.nodes.as_ref().and_then(|nodes| {
        each(nodes.iter().filter(|node| node.processors.known().is_some()), |node| {
            let is_bare = node.memory_kib.as_ref().map(|kib| *kib == 0);
            chosen(&is_bare, &format!("node{}", node.number))
        })
    })
}

fn cdi_faults(record: &Record) -> Item<Vec<String>> {
    record.cdi.specifications.as_ref().map(|specifications| {
        let fault = |specification: &crate::host::cdi::Specification| {
            let what = match (&specification.kind, specification.missing.as_slice()) {
                (Item::Unknown(why), _) => why.unknown.clone(),
                (_, []) => return None,
                (_, [first]) => format!("{first} is not there"),
                (_, [first, rest @ ..]) => format!("{first} and {} more are not there", rest.len()),
            };
            Some(format!("{}: {what}", specification.file))
        };
        specifications.iter().filter_map(fault).collect()
    })
}

/// What several tell together. What one of them does not tell counts where no other tells anything.
fn each<T>(all: impl Iterator<Item = T>, tell: impl Fn(T) -> Item<Vec<String>>) -> Item<Vec<String>> {
    let (mut found, mut gap) = (Vec::new(), None);
    for one in all {
        match tell(one) {
            Item::Known(texts) => found.extend(texts),
            Item::Absent => {}
            Item::Unknown(why) => gap = gap.or(Some(why)),
        }
    }
    found.sort();
    found.dedup();
    match gap {
        Some(why) if found.is_empty() => Item::Unknown(why),
        _ => Item::Known(found),
    }
}

/// A name, if the answer is yes.
fn chosen(answer: &Item<bool>, name: &str) -> Item<Vec<String>> {
    answer.as_ref().map(|yes| if *yes { vec![name.to_owned()] } else { Vec::new() })
}

fn is_there<T>(item: &Item<T>) -> Item<bool> {
    match item {
        Item::Known(_) => Item::Known(true),
        Item::Absent => Item::Known(false),
        Item::Unknown(why) => Item::Unknown(why.clone()),
    }
}

fn fact<T: Into<Value>>(item: Item<T>) -> Fact {
    match item {
        Item::Known(value) => Fact::seen(value.into(), []),
        Item::Absent => Fact::Absent,
        Item::Unknown(why) => Fact::Unknown(Gap::new(why.unknown)),
    }
}

/// A list of texts; none is absent.
fn list(item: Item<Vec<String>>) -> Fact {
    fact(item.and_then(|texts| Some(texts).filter(|texts| !texts.is_empty()).into()))
}

fn number(count: usize) -> Value {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}
