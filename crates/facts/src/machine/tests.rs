use super::rdma::Device;
use super::*;
use model::Fact;
use model::document::Document;

#[path = "../../../../tests/integration/tree.rs"]
mod tree;

fn record(name: &str) -> Record {
    Record::collect(&HostTree::new(tree::host(name).path()))
}

fn parse(text: &str) -> Record {
    Record::parse(Document { name: "record", text }).unwrap_or_else(|mistake| panic!("{mistake}"))
}

fn known<T: Clone + std::fmt::Debug>(item: &Fact<T>) -> T {
    item.value().cloned().unwrap_or_else(|| panic!("{item:?}"))
}

#[test]
fn machine_with_nvswitches() {
    let record = record("dgx");
    let system = &record.system;
    assert_eq!((&*known(&system.name), &*known(&system.os)), ("dgx", "Ubuntu 22.04.4 LTS"));
    assert_eq!(known(&system.boot_parameters), ["iommu=pt"]);
    assert_eq!((&system.virtual_machine, &system.container), (&Fact::Absent, &Fact::Absent));
    assert_eq!(known(&record.driver.version), "570.124.06");
    assert_eq!(known(&record.driver.flavour), crate::words::Flavour::Open);
    let gpus = known(&record.gpus.list);
    assert_eq!((gpus.len(), &*known(&gpus[7].address)), (8, "0000:c7:00.0"));
    assert_eq!(known(&gpus[0].model), "NVIDIA H100 80GB HBM3");
    assert_eq!((known(&gpus[7].minor), known(&record.driver.nodes).len()), (7, 9));
    assert!(matches!(gpus[0].persistence, Fact::Unknown(_)));
    let on_bus = known(&record.pci.gpus);
    assert_eq!((on_bus.len(), &*known(&on_bus[0].driver), &*known(&on_bus[0].iommu)), (8, "nvidia", "identity"));
    assert_eq!(on_bus[0].redirecting_ports, Fact::known(vec![]));
    assert_eq!((known(&record.fabric.nvswitches), known(&record.fabric.manager)), (4, 4711));
    assert_eq!(record.fabric.imex, Fact::Absent);
    let nvidia = modules::Module { name: "nvidia".to_owned(), version: Fact::known("570.124.06".to_owned()) };
    assert!(known(&record.modules.loaded).contains(&nvidia));
    assert_eq!(known(&record.modules.peer_memory), ["nv_mem"]);
    assert_eq!(known(&record.memory.shm_bytes), 2_113_402_736 * 512);
    assert_eq!(known(&record.memory.nodes)[1].processors, Fact::known("10-19".to_owned()));
    let limits = &record.limits;
    assert_eq!(
        (known(&limits.memlock).soft, known(&limits.nofile).hard, known(&limits.stack).hard),
        (-1, 1_048_576, -1)
    );
    assert_eq!(known(&record.containers.docker).runtimes, ["nvidia"]);
    assert_eq!(known(&record.containers.engines["containerd"].memlock).soft, 8_388_608);
    // Docker's default limit takes precedence over that of the engine's process.
    assert_eq!(known(&record.containers.memlock()).soft, -1);
}

#[test]
fn rdma_devices_have_ports() {
    let record = record("dgx");
    let devices: Vec<Device> = known(&record.rdma.devices);
    assert_eq!((devices.len(), known(&record.rdma.nodes).len()), (9, 10));
    assert_eq!((&*known(&devices[3].driver), &*known(&devices[3].verbs)), ("mlx5_core", "uverbs3"));
    let port = &known(&devices[3].ports)[0];
    assert_eq!((&*port.number, &*known(&port.state), &*known(&port.interface)), ("1", "ACTIVE", "ib3"));
    assert_eq!((&*known(&port.rate), known(&port.gids)), ("400 Gb/sec (4X NDR)", 1));
    let interfaces = known(&record.network.interfaces);
    let interface = |name: &str| interfaces.iter().find(|interface| interface.name == name).unwrap();
    assert_eq!(
        (interface("eno3").speed.clone(), interface("ens6f0").speed.clone()),
        (Fact::known(10_000), Fact::Absent)
    );
    assert_eq!(known(&interface("ib0").kind), "InfiniBand");
}

#[test]
fn misconfigured_machine() {
    let record = record("pcie");
    assert_eq!(known(&record.driver.flavour), crate::words::Flavour::Proprietary);
    let gpus = known(&record.pci.gpus);
    assert_eq!(known(&gpus[1].redirecting_ports), ["0000:b1:00.0"]);
    assert_eq!(known(&gpus[1].iommu), "DMA-FQ");
    assert_eq!(known(&record.settings.remove_ipc), "no");
    assert_eq!(known(&record.memory.nodes)[1].memory_kib, Fact::known(0));
    let specifications = known(&record.cdi.specifications);
    let [broken, nvidia] = &*specifications else { panic!("{specifications:?}") };
    assert!(matches!(broken.kind, Fact::Unknown(_)), "{broken:?}");
    assert_eq!((&*known(&nvidia.kind), &*nvidia.devices.join(" ")), ("nvidia.com/gpu", "0 all"));
    assert_eq!(nvidia.missing, ["/usr/lib64/libcuda.so.550.54.15"]);
    assert_eq!(
        nvidia.fault(&record.driver.version).unwrap(),
        "it names libcuda.so.550.54.15, and the driver is 560.35.05"
    );
    assert_eq!(nvidia.fault(&Fact::Absent).unwrap(), "/usr/lib64/libcuda.so.550.54.15 is missing");
}

#[test]
fn libraries_without_the_version_of_the_driver_in_their_names() {
    for (path, version) in
        [("/usr/lib/libcuda.so.580.95.05", Some("580.95.05")), ("/a/libcuda.so.1", None), ("/a/libcuda.so.1.1", None)]
    {
        let machine = tempfile::tempdir().unwrap();
        let folder = machine.path().join("etc/cdi");
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!("kind: nvidia.com/gpu\ncontainerEdits: {{mounts: [{{hostPath: {path}}}]}}\n");
        std::fs::write(folder.join("nvidia.yaml"), text).unwrap();
        let specifications = known(&cdi::Cdi::collect(&HostTree::new(machine.path())).specifications);
        assert_eq!(specifications[0].driver, version.map(ToOwned::to_owned).into());
    }
}

#[test]
fn virtual_machine_without_gpus() {
    let record = record("virtual");
    assert_eq!(known(&record.system.virtual_machine), "Google Google Compute Engine");
    assert_eq!((&record.driver.version, &record.gpus.list), (&Fact::Absent, &Fact::Absent));
    assert_eq!((&record.pci.gpus, &record.rdma.devices), (&Fact::known(vec![]), &Fact::Absent));
    assert_eq!(known(&record.memory.shm_bytes), 65_536 * 1024);
    assert_eq!(known(&record.network.interfaces)[0].speed, Fact::Absent);
    let host = record.host();
    assert_eq!((host.driver, host.gpu, host.rdma), (None, None, Some(crate::machine::Nic::Nothing)));
}

#[test]
fn other_processes_are_unknown_in_a_container() {
    let machine = tree::host("virtual");
    let namespace = machine.path().join("proc/1/ns/pid");
    std::fs::remove_file(&namespace).unwrap();
    std::os::unix::fs::symlink("pid:[4026532841]", namespace).unwrap();
    std::fs::write(machine.path().join(".dockerenv"), "").unwrap();
    let record = Record::collect(&HostTree::new(machine.path()));
    assert_eq!(known(&record.system.container), "Docker");
    let Fact::Unknown(gap) = record.fabric.manager else { panic!("{:?}", record.fabric.manager) };
    assert!(gap.why.contains("nv-fabricmanager"), "{}", gap.why);
}

#[test]
fn files_for_root_only_are_unknown() {
    let machine = tree::host("pcie");
    let port = machine.path().join("sys/devices/pci0000:40/0000:40:01.1/config");
    let public = std::fs::read(&port).unwrap()[..64].to_vec();
    std::fs::write(port, public).unwrap();
    let record = Record::collect(&HostTree::new(machine.path()));
    // The public bytes do not include the capability that distinguishes a root port from a switch port.
    let Fact::Unknown(gap) = &known(&record.pci.gpus)[0].redirecting_ports else { panic!("{:?}", record.pci) };
    assert!(gap.why.contains("only root may read all of"), "{}", gap.why);
}

#[test]
fn azure_accelerated_ethernet_is_not_a_fabric() {
    let mut record = record("dgx");
    let interface = |name: &str, driver: &str, master: Option<&str>| network::Interface {
        name: name.to_owned(),
        driver: Fact::known(driver.to_owned()),
        master: master.map(ToOwned::to_owned).into(),
        ..network::Interface::default()
    };
    record.network.interfaces =
        Fact::known(vec![interface("eth0", "hv_netvsc", None), interface("ib0", "mlx5_core", Some("eth0"))]);
    let names: Vec<_> = record.fabric_devices().map(|device| &*device.name).collect();
    assert_eq!((names.len(), names[0]), (8, "mlx5_1"));
}

#[test]
fn records_round_trip() {
    for name in ["dgx", "pcie", "rack", "virtual"] {
        let record = record(name);
        let json = serde_json::to_string(&record).unwrap();
        assert_eq!(parse(&json), record);
        assert_eq!(parse(&record.to_yaml().unwrap()), record);
    }
    let partial = parse("schema: ncclcheck-host/1\nsystem: {kernel: '6.8'}\n");
    assert_eq!(known(&partial.system.kernel), "6.8");
    assert_eq!(partial.driver.version, Fact::unknown("not in the record"));
}

#[test]
fn records_describe_their_hosts() {
    let host = record("dgx").host();
    let gpu = host.gpu.unwrap();
    assert_eq!((&*host.name, &*gpu.name, gpu.arch.to_string(), gpu.count), ("dgx", "h100", "90".to_owned(), Some(8)));
    assert_eq!((host.fabric, host.rdma), (Some(crate::machine::Fabric::NvSwitch), Some(crate::machine::Nic::Mlx5)));
    let mut mixed = record("dgx");
    if let Fact::Seen { value: gpus, .. } = &mut mixed.gpus.list {
        gpus[3].model = Fact::known("NVIDIA A100-SXM4-80GB".to_owned());
    }
    assert!(matches!(mixed.gpu(), Fact::Unknown(_)));
}
