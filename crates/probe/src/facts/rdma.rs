//! Facts about RDMA devices, from the container's use of them.

use facts::Facts;
use facts::key::{self, Definition};
use facts::records::ClosedDevice;
use facts::words::GpuDirect;
use model::{Fact, size};

use super::super::recording::Recording;
use super::super::wire::rdma::{GpuDirect as GpuDirectReading, GpuRegistration, RdmaBody, RdmaDevice, RdmaPort};
use super::super::wire::{Field, StepBody as _};
use super::{none_of, seen, texts, unanswered};

const KEYS: &[&Definition] = key::definitions![
    RUN_RDMA_DEVICES,
    RUN_RDMA_CLOSED,
    RUN_RDMA_PORTS_DOWN,
    RUN_RDMA_REGISTRATION,
    RUN_RDMA_GID,
    RUN_RDMA_PING,
    RUN_RDMA_GPU_DIRECT,
];

pub(super) fn produce(recording: &Recording, facts: &mut Facts) {
    let Some((step, body)) = recording.result::<RdmaBody>() else {
        return none_of(KEYS, &unanswered(recording, RdmaBody::STEP), facts);
    };
    let devices = match body.devices.known_list() {
        Ok(devices) => devices,
        Err(gap) => return none_of(KEYS, &Fact::Unknown(gap), facts),
    };
    let open: Vec<_> = devices.iter().filter(|device| device.opens.copied() == Some(true)).collect();
    let names = open.iter().filter_map(|device| device.name.text()).map(ToOwned::to_owned);
    facts.insert(key::RUN_RDMA_DEVICES, texts(step, names.collect()));
    let closed = devices.iter().filter(|device| device.opens.copied() == Some(false)).map(|device| {
        let text = |field: &Field<String>| Some(field.text().unwrap_or_default().to_owned());
        ClosedDevice {
            device: text(&device.name),
            cause: text(&device.closed_cause),
            why: text(&device.closed_because),
        }
    });
    let closed: Vec<_> = closed.collect();
    facts.insert(key::RUN_RDMA_CLOSED, if closed.is_empty() { Fact::Absent } else { seen(step, closed) });

    let ports = || {
        open.iter().flat_map(|device| {
            let name = name(device);
            device
                .ports
                .list()
                .iter()
                .map(move |port| (format!("{name}:{}", port.port.copied().unwrap_or_default()), port))
        })
    };
    let down = ports().filter_map(|(name, port)| {
        let state = verbs_state(port).or_else(|| port.state.text())?;
        (state != "ACTIVE").then(|| format!("{name} is {state}"))
    });
    facts.insert(key::RUN_RDMA_PORTS_DOWN, texts(step, down.collect()));
    let active = || ports().filter(|(_, port)| verbs_state(port) == Some("ACTIVE"));
    facts.insert(key::RUN_RDMA_GID, texts(step, active().filter_map(|(name, port)| unfit_gid(&name, port)).collect()));
    let fails = active().filter_map(|(name, port)| {
        let ping = port.ping.value()?;
        let error = ping.error.text().map(|error| format!(": {error}")).unwrap_or_default();
        Some(format!("{name} fails at {}{error}", ping.failed.text()?))
    });
    facts.insert(key::RUN_RDMA_PING, texts(step, fails.collect()));
    let regions = open.iter().flat_map(|device| {
        let name = name(device);
        let regions = device.memory_regions.list().iter();
        regions.filter(|region| region.ok.copied() == Some(false)).map(move |region| {
            let bytes = region.bytes.copied().unwrap_or_default();
            let error = region.error.text().unwrap_or_default();
            format!("{name}: {}: {error}", size(bytes.unsigned_abs()))
        })
    });
    facts.insert(key::RUN_RDMA_REGISTRATION, texts(step, regions.collect()));
    facts.insert(
        key::RUN_RDMA_GPU_DIRECT,
        body.gpu_direct.value().and_then(gpu_direct).map_or(Fact::Absent, |how| seen(step, how)),
    );
}

fn name(device: &RdmaDevice) -> &str {
    device.name.text().unwrap_or_default()
}

fn verbs_state(port: &RdmaPort) -> Option<&str> {
    port.verbs.value().and_then(|verbs| verbs.state.text())
}

/// Describes a GID that NCCL selects and that does not suit RoCE. Only RoCE v2 is routable; InfiniBand addresses by
/// LID. The last choice is that of current NCCL releases.
fn unfit_gid(name: &str, port: &RdmaPort) -> Option<String> {
    if port.link_layer.text() != Some("Ethernet") {
        return None;
    }
    let choice = port.nccl_gid.list().last()?;
    let because = choice.because.text().unwrap_or_default();
    let Some(index) = choice.index.copied() else {
        return Some(format!("{name}: NCCL finds no GID: {because}"));
    };
    let gid = port.gids.list().iter().find(|gid| gid.index.copied() == Some(index));
    match gid {
        None => Some(format!("{name}: NCCL takes GID {index} ({because}), which is empty")),
        Some(gid) if gid.kind.text() != Some("RoCE v2") => Some(format!(
            "{name}: NCCL takes GID {index} ({because}), which is {}",
            gid.kind.text().unwrap_or("of unknown type")
        )),
        Some(gid) if gid.gid.text().is_some_and(|gid| gid.starts_with("fe80:")) => {
            Some(format!("{name}: NCCL takes GID {index} ({because}), which is link-local: it reaches no other subnet"))
        }
        Some(_) => None,
    }
}

/// The path of GPUDirect RDMA, from the registrations that were tried with each GPU and device.
fn gpu_direct(body: &GpuDirectReading) -> Option<GpuDirect> {
    let tries: Vec<_> = body.gpus.list().iter().flat_map(|gpu| gpu.registrations.list()).collect();
    if tries.is_empty() {
        return None;
    }
    let is_ok =
        |way: &Field<GpuRegistration>| way.value().is_some_and(|registration| registration.ok.copied() == Some(true));
    Some(if tries.iter().all(|registration| is_ok(&registration.dmabuf)) {
        GpuDirect::DmaBuf
    } else if tries.iter().all(|registration| is_ok(&registration.peermem)) {
        GpuDirect::Peermem
    } else {
        GpuDirect::None
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Facts of a recorded body.
    fn facts(name: &str) -> Facts {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/probe/soft-roce").join(format!("{name}.json"));
        let body: serde_json::Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        let line = format!(r#"{{"ncclcheck":1,"event":"result","step":"rdma","seconds":1.0,"body":{body}}}"#);
        let mut facts = Facts::default();
        produce(&Recording::read(line.as_bytes()), &mut facts);
        facts
    }

    fn shown(facts: &Facts, key: &Definition) -> String {
        facts.view(key).value().map(ToString::to_string).unwrap_or_default()
    }

    #[test]
    fn containers_with_everything_that_rdma_needs() {
        for name in ["host-network", "bridge", "user", "memlock-64k-ipc-lock"] {
            let facts = facts(name);
            assert_eq!(shown(&facts, &key::RUN_RDMA_DEVICES), "rxe0", "{name}");
            for key in key::definitions![RUN_RDMA_CLOSED, RUN_RDMA_REGISTRATION, RUN_RDMA_GID, RUN_RDMA_PING] {
                assert_eq!(facts.view(key), &Fact::Absent, "{name}: {}", key.name);
            }
        }
    }

    #[test]
    fn containers_that_cannot_open_the_device() {
        for (name, cause) in [
            ("no-device", "no_device_node"),
            ("rdma-cm-only", "no_device_node"),
            ("device-denied", "device_node_denied"),
            ("no-libibverbs", "no_libibverbs"),
            ("no-providers", "no_provider_config"),
            ("no-provider-libraries", "no_provider_loads"),
            ("no-rxe-config", "provider_not_configured"),
            ("no-rxe-library", "provider_not_loaded"),
        ] {
            let facts = facts(name);
            assert_eq!(facts.get(key::RUN_RDMA_DEVICES), &Fact::Absent, "{name}");
            assert!(shown(&facts, &key::RUN_RDMA_CLOSED).contains(&format!("cause={cause}, device=rxe0")), "{name}");
        }
    }

    #[test]
    fn limits_and_gids() {
        let small = shown(&facts("memlock-64k"), &key::RUN_RDMA_REGISTRATION);
        assert_eq!(small, "rxe0: 1 MiB: ENOMEM, rxe0: 64 MiB: ENOMEM");
        assert_eq!(shown(&facts("memlock-8m"), &key::RUN_RDMA_REGISTRATION), "rxe0: 64 MiB: ENOMEM");
        let empty = facts("gid-index-empty");
        assert!(shown(&empty, &key::RUN_RDMA_GID).contains("which is empty"));
        assert!(shown(&empty, &key::RUN_RDMA_PING).starts_with("rxe0:1 fails at rtr"));
        assert!(shown(&facts("gid-index-link-local"), &key::RUN_RDMA_GID).contains("link-local"));
    }
}
