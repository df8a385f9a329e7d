//! What NCCL's log of the tests between nodes shows of a node.

use std::collections::BTreeSet;

use facts::Facts;
use nccllog::NcclLog;
use probe::wire::between_nodes::{BETWEEN_NODES, ReadyNode};
use serde::Deserialize;

use super::compare::NodeRecord;
use super::reading::{self, Reading};
use super::table::rows;

/// What a row of the table compares in the log.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum LogPart {
    /// Networks that NCCL uses.
    Network,
    /// Plugins that NCCL loaded.
    Plugins,
}

impl LogPart {
    pub(super) fn read(self, log: &NcclLog) -> Reading {
        let (found, none) = match self {
            Self::Network => (&log.network, Err("NCCL's log of the tests between nodes names no network".to_owned())),
            Self::Plugins => (&log.plugins, Ok(reading::NONE.to_owned())),
        };
        if found.is_empty() { none } else { Ok(joined(found)) }
    }
}

impl NodeRecord {
    /// NCCL's log of the node's tests with others, as they are or confined to sockets; none if its ranks do not use NCCL.
    pub fn log_between(&self, over_sockets: bool) -> Option<NcclLog> {
        let step = self.recording.find(BETWEEN_NODES)?;
        let uses_nccl = step.parts_of::<ReadyNode>().any(|ready| ready.backend.text() == Some("nccl"));
        uses_nccl.then(|| probe::facts::log_of_run(step, u32::from(over_sockets)))
    }

    /// What the ports that NCCL used between nodes carry in one direction, in bytes per second, or why that is not known.
    ///
    /// # Errors
    /// NCCL's log does not name the ports, or their rates were not read.
    pub fn port_rate(&self, over_sockets: bool) -> Result<f64, String> {
        let log = self.log_between(over_sockets).ok_or("gloo does not name its ports")?;
        let network = joined(&log.network);
        // A device is `mlx5_0:1/RoCE`, and an interface has a name alone.
        let (row, ports, bits) = match &*network {
            "IB" => ("rdma-rate", &log.ib_devices, 1e9),
            "Socket" => ("interface-speed", &log.sockets, 1e6),
            _ => return Err(format!("the ports of the network '{network}' are not known")),
        };
        let row = rows().iter().find(|other| other.id == row).ok_or("the table lacks their rates")?;
        let rates = reading::read(row, self, &Facts::default());
        let bytes = |port: &String| {
            let port = port.split('/').next().unwrap_or_default();
            let rate = rates.get(port).and_then(|rate| rate.as_ref().ok()?.split(' ').next()?.parse::<f64>().ok());
            let known = rate.filter(|rate| *rate > 0.0).map(|rate| rate * bits / 8.0);
            known.ok_or_else(|| format!("the rate of {port} could not be read on {}", self.name))
        };
        if ports.is_empty() { Err("NCCL's log names no port".to_owned()) } else { ports.iter().map(bytes).sum() }
    }
}

fn joined(texts: &BTreeSet<String>) -> String {
    texts.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}
