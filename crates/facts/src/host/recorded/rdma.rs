//! RDMA devices and ports of a recorded host.

use crate::machine::Record;
use crate::machine::rdma::{Device, Port};
use model::Fact;

use super::super::super::{Facts, key};
use super::{each, list};

/// Smallest interface MTU, in bytes, that allows the largest RoCE MTU, 4096: the kernel reserves 96 bytes for the RoCE
/// headers (`iboe_get_mtu`, include/rdma/ib_addr.h).
const ROCE_MTU: u32 = 4096 + 96;

pub(super) fn produce(record: &Record, facts: &mut Facts) {
    let devices: Fact<Vec<&Device>> = record.rdma.devices.as_ref().map(|_| record.fabric_devices().collect());
    let names = |wanted: fn(&Device) -> bool| {
        list(
            devices
                .as_ref()
                .map(|all| all.iter().filter(|device| wanted(device)).map(|device| device.name.clone()).collect()),
        )
    };
    facts.insert(key::HOST_RDMA_DEVICES, names(|_| true));
    facts.insert(key::HOST_RDMA_WITHOUT_VERBS, names(|device| device.verbs == Fact::Absent));
    let ports = |wanted: &dyn Fn(&Device, &Port) -> Fact<bool>| {
        list(devices.as_ref().and_then(|all, _| each(all.iter(), |device| of_device(device, wanted))))
    };
    facts.insert(key::HOST_RDMA_ACTIVE_PORTS, ports(&|_, port| is_active(port)));
    facts.insert(key::HOST_ROCE_PORTS, ports(&is_roce));
    let is_low = |device: &Device, port: &Port| match is_roce(device, port) {
        Fact::Seen { value: true, .. } => mtu(record, port).map(|mtu| mtu < ROCE_MTU),
        other => other,
    };
    facts.insert(key::HOST_ROCE_LOW_MTU, ports(&is_low));
}

/// Selected ports of a device, such as `mlx5_0:1 (InfiniBand, 400 Gb/sec (4X NDR))`.
fn of_device(device: &Device, wanted: &dyn Fn(&Device, &Port) -> Fact<bool>) -> Fact<Vec<String>> {
    device.ports.as_ref().and_then(|ports, _| {
        each(ports.iter(), |port| {
            let of = [&port.link_layer, &port.rate].into_iter().filter_map(Fact::value).cloned().collect::<Vec<_>>();
            let name = format!("{}:{} ({})", device.name, port.number, of.join(", "));
            super::chosen(&wanted(device, port), &name)
        })
    })
}

fn is_active(port: &Port) -> Fact<bool> {
    port.state.as_ref().map(|state| state == "ACTIVE")
}

/// Returns true for an active RoCE port of a hardware device; software devices are for tests.
fn is_roce(device: &Device, port: &Port) -> Fact<bool> {
    let is_ethernet = port.link_layer.as_ref().map(|layer| layer == "Ethernet");
    match (is_active(port), is_ethernet, device.driver.value()) {
        (Fact::Seen { value: true, .. }, ethernet, Some(_)) => ethernet,
        (Fact::Unknown(gap), _, _) => Fact::Unknown(gap),
        _ => Fact::known(false),
    }
}

fn mtu(record: &Record, port: &Port) -> Fact<u32> {
    let interfaces = record.network.interfaces.value().map(Vec::as_slice).unwrap_or_default();
    port.interface.as_ref().and_then(|name, _| {
        let interface = interfaces.iter().find(|interface| interface.name == *name);
        interface.map_or_else(
            || Fact::unknown(format!("the interface {name} is in another network namespace")),
            |interface| interface.mtu.clone(),
        )
    })
}
