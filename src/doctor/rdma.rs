//! RDMA devices, and what jobs need to open them.

use super::Offer;
use facts::machine::Record;
use facts::machine::rdma::Device;
use model::Fact;

const AREA: &str = "rdma";

pub(super) fn offers(record: &Record) -> Vec<Offer> {
    let devices = match &record.rdma.devices {
        Fact::Seen { value, .. } if !value.is_empty() => value,
        Fact::Unknown(gap) => return vec![Offer::unknown(AREA, "devices", gap.to_string())],
        Fact::Seen { .. } | Fact::Absent => return vec![Offer::absent(AREA, "devices", "the kernel lists none")],
    };
    devices.iter().map(device).chain([nodes(record)]).collect()
}

fn device(device: &Device) -> Offer {
    let ports = device.ports.value().into_iter().flatten();
    let states: Vec<_> = ports.filter_map(|port| port.state.value()).map(String::as_str).collect();
    if states.contains(&"ACTIVE") {
        return Offer::works(AREA, &device.name, format!("ports: {}", states.join(", ")));
    }
    let about =
        if states.is_empty() { "no port".to_owned() } else { format!("no port is ACTIVE: {}", states.join(", ")) };
    Offer::broken(AREA, &device.name, about, "check the cable, the switch and the subnet manager: ibstat, or rdma link")
}

fn nodes(record: &Record) -> Offer {
    const NAME: &str = "/dev/infiniband";
    match &record.rdma.nodes {
        Fact::Seen { value, .. } if value.iter().any(|node| node.starts_with("uverbs")) => {
            Offer::works(AREA, NAME, value.join(", "))
        }
        Fact::Unknown(gap) => Offer::unknown(AREA, NAME, gap.to_string()),
        Fact::Seen { .. } | Fact::Absent => {
            Offer::broken(AREA, NAME, "there is no uverbs node, so no job can open a device", "sudo modprobe ib_uverbs")
        }
    }
}
