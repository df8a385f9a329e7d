//! What NCCL's lines of one process, or of all of a run, show.

use std::collections::{BTreeMap, BTreeSet};

use regex::Captures;
use serde::{Deserialize, Serialize};

use super::forms::forms_of;
use super::origin::nccl_messages;

/// Warnings, unknown lines and pairs of ranks that are kept: a job of any size has a bounded log.
const MOST: usize = 4096;

/// Content of the debug output of all ranks in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NcclLog {
    /// Version of the library that ran.
    pub version: Option<String>,
    /// CUDA release that the library was built with.
    pub cuda: Option<String>,
    /// CUDA release that the driver supports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_cuda: Option<String>,
    /// Address of each interface that the bootstrap or the socket transport used.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub addresses: BTreeMap<String, String>,
    /// Seconds that each communicator took to start, the longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest_init: Option<String>,
    /// Plugins of networks that were loaded and could not be initialized.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub uninitialized: BTreeSet<String>,
    /// Number of nodes that NCCL counted, the maximum over all communicators.
    pub nodes: Option<u32>,
    /// Number of ranks that NCCL counted, the maximum over all communicators.
    pub ranks: Option<u32>,
    /// Networks that communicators used: `IB`, `Socket`, or a plugin's name.
    pub network: BTreeSet<String>,
    /// Interfaces that the bootstrap used.
    pub bootstrap: BTreeSet<String>,
    /// Interfaces that the socket transport may use.
    pub sockets: BTreeSet<String>,
    /// RDMA devices that NCCL selected, such as `mlx5_0:1/IB`.
    pub ib_devices: BTreeSet<String>,
    /// Reasons in NCCL's words why it uses no RDMA device.
    pub ib_none: BTreeSet<String>,
    /// HCAs, each with true if GPUDirect RDMA is enabled for it.
    pub gpu_direct: BTreeMap<String, bool>,
    /// Index of the GID and MTU of RDMA connections.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub gids: BTreeSet<String>,
    /// Indices of the network's devices that carry channels, its rails.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub rails: BTreeSet<u32>,
    /// Transports between pairs of ranks, such as `P2P/CUMEM`, `SHM`, `NET/IB/GDRDMA`, `NET/Socket`.
    #[serde(with = "pairs")]
    pub pairs: BTreeMap<(u32, u32), BTreeSet<String>>,
    /// Rings as lists of ranks, each with the largest channel count of any communicator.
    pub rings: BTreeMap<String, u32>,
    /// Numbers of channels for collectives, NVLS and point-to-point calls.
    pub channels: Option<(u32, u32, u32)>,
    /// Loaded plugins, such as `AWS Libfabric (net v10)`.
    pub plugins: BTreeSet<String>,
    /// Plugins that exist but could not be used.
    pub plugin_errors: BTreeSet<String>,
    /// Files that variables name and that NCCL cannot open.
    pub unopened_files: BTreeSet<String>,
    /// Environment variables that NCCL found and read.
    pub variables: BTreeMap<String, String>,
    /// Environment variables whose value NCCL could not parse.
    pub invalid_variables: BTreeSet<String>,
    /// Warnings, each with its meaning if known.
    pub warnings: BTreeMap<String, Option<String>>,
    /// NCCL's lines without a known form.
    pub unknown: BTreeSet<String>,
    /// Number of lines that the program left out.
    pub left_out: u64,
}

impl NcclLog {
    /// Reads the lines of all ranks of one run.
    pub fn read<'l>(lines: impl IntoIterator<Item = &'l str>) -> Self {
        let mut log = Self::default();
        lines.into_iter().for_each(|line| log.add_line(line));
        log
    }

    fn add_line(&mut self, line: &str) {
        let mut has_message = false;
        for message in nccl_messages(line) {
            has_message = true;
            self.add_message(message.text);
        }
        if !has_message {
            self.add_message(line);
        }
    }

    /// Adds a message from `NCCL` and its level on, or a line without NCCL's prefix.
    pub(super) fn add_message(&mut self, text: &str) {
        let mut meaning = None;
        let mut is_known = false;
        for form in forms_of(text) {
            let Some(captures) = form.regex().captures(text) else { continue };
            is_known = true;
            meaning = meaning.or(Some(&form.meaning));
            self.take(&form.id, &captures);
        }
        if let Some(warning) = text.strip_prefix("NCCL WARN ") {
            if self.warnings.len() < MOST {
                self.warnings.insert(warning.trim().to_owned(), meaning.cloned());
            }
        } else if let Some(line) = text.strip_prefix("NCCL INFO ")
            && !is_known
            && self.unknown.len() < MOST
        {
            self.unknown.insert(line.trim().to_owned());
        }
    }

    fn take(&mut self, id: &str, captures: &Captures<'_>) {
        let text = |name: &str| captures.name(name).map_or("", |found| found.as_str());
        let owned = |name: &str| text(name).trim().to_owned();
        let number = |name: &str| text(name).parse::<u32>().ok();
        match id {
            "version.bare" | "version.info" => {
                self.version = Some(owned("version"));
                self.cuda = Some(owned("cuda"));
            }
            "init.start" | "init.start.rank_first" | "init.complete" => self.ranks = self.ranks.max(number("nranks")),
            "comm.shape" => self.nodes = self.nodes.max(number("nnodes")),
            "env.int" | "env.text" => {
                self.variables.insert(owned("name"), owned("value"));
            }
            "env.hca" => {
                self.variables.insert("NCCL_IB_HCA".to_owned(), owned("value"));
            }
            "env.invalid" => {
                self.invalid_variables.insert(format!("{}={}", text("name"), text("value")));
            }
            "driver.cuda_version" => {
                self.driver_cuda =
                    number("driver_cuda").map(|number| format!("{}.{}", number / 1000, number % 1000 / 10));
            }
            "init.timings" if seconds(text("total")) > self.slowest_init.as_deref().map_or(0.0, seconds) => {
                self.slowest_init = Some(format!("{} ({})", text("total"), text("parts")));
            }
            "bootstrap.if" => {
                self.bootstrap.insert(owned("ifname"));
                self.addresses.insert(owned("ifname"), owned("addr"));
            }
            "net.using" | "net.using.ancient" => {
                self.network.insert(owned("name"));
            }
            "ib.none" => {
                self.ib_none.insert("No device found.".to_owned());
            }
            "ib.libmissing" | "ib.libmissing.230" => {
                self.ib_none.insert(format!("Failed to open {}", text("lib")));
            }
            "ib.using" => self.ib_devices.extend(devices(text("devices"))),
            "socket.using" => {
                for device in devices(text("devices")) {
                    let (interface, address) = device.split_once(':').unwrap_or((&device, ""));
                    let address = address.split('<').next().unwrap_or_default();
                    self.addresses.insert(interface.to_owned(), address.to_owned());
                    self.sockets.insert(interface.to_owned());
                }
            }
            "ib.connection" => {
                // The numbers of `ibv_mtu`: 1 is 256 bytes, and each further one doubles them.
                let bytes = number("mtu").and_then(|mtu| 128_u32.checked_shl(mtu)).unwrap_or_default();
                self.gids.insert(format!("GID index {}, MTU {bytes}", text("gid")));
            }
            "ib.gdr" => {
                self.gpu_direct.insert(owned("name"), text("state") == "Enabled");
            }
            "plugin.net_loaded" => {
                self.plugins.insert(format!("{} ({} v{})", text("name"), text("what"), text("api")));
            }
            "plugin.open_error" => {
                self.plugin_errors.insert(format!("{}: {}", text("lib"), text("error")));
            }
            "plugin.missing" => {
                // The library of a name is usually absent, and only of interest if a variable requests it.
                let variable = format!("NCCL_{}_PLUGIN", text("kind"));
                let is_meant = |value: &&String| text("libs").split(' ').any(|lib| lib == value.as_str());
                if let Some(value) = self.variables.get(&variable).filter(is_meant) {
                    self.plugin_errors.insert(format!("{variable}={value} (NCCL finds no library of this name)"));
                }
            }
            "topo.file_missing" => {
                self.unopened_files.insert(owned("file"));
            }
            "plugin.net_init_failed" => {
                self.uninitialized.insert(owned("name"));
            }
            "plugin.ext_unsupported" => {
                self.plugin_errors.insert(format!("{} has no interface version that this NCCL supports", text("lib")));
            }
            "chan.list" => {
                // Each communicator lists its channels again, and each line contains their total number.
                let channels = self.rings.entry(owned("order")).or_default();
                *channels = number("nchannels").max(Some(*channels)).unwrap_or_default();
            }
            "channels.count" => {
                let count = |name| number(name).unwrap_or_default();
                self.channels = Some((count("coll"), count("nvls"), count("p2p")));
            }
            "chan.p2p" => self.pair(captures, format!("P2P/{}", text("how"))),
            "chan.p2p.indirect" => self.pair(captures, "P2P/indirect".to_owned()),
            "chan.shm" | "chan.shm.old" => self.pair(captures, "SHM".to_owned()),
            "chan.net" => {
                let direct = if text("gdr").is_empty() { "" } else { "/GDRDMA" };
                self.rails.extend(number("net_dev"));
                self.pair(captures, format!("NET/{}{direct}", text("net")));
            }
            "chan.ring.old" => {
                // `P2P/IPC`, `direct shared memory`, `NET/IB/0/GDRDMA`.
                let how = text("how");
                let transport = if how == "direct shared memory" { "SHM".to_owned() } else { without_number(how) };
                self.pair(captures, transport);
            }
            _ => {}
        }
    }

    fn pair(&mut self, captures: &Captures<'_>, transport: String) {
        let rank = |name| captures.name(name).and_then(|found| found.as_str().parse().ok());
        if let (Some(from), Some(to)) = (rank("src"), rank("dst")) {
            self.add_pair(from, to, transport);
        }
    }

    fn add_pair(&mut self, from: u32, to: u32, transport: String) {
        if self.pairs.len() < MOST || !self.pairs.values().any(|known| known.contains(&transport)) {
            self.pairs.entry((from, to)).or_default().insert(transport);
        }
    }

    /// Adds what another process shows.
    pub(super) fn merge(&mut self, other: &Self) {
        self.version = self.version.take().or_else(|| other.version.clone());
        self.cuda = self.cuda.take().or_else(|| other.cuda.clone());
        self.driver_cuda = self.driver_cuda.take().or_else(|| other.driver_cuda.clone());
        self.nodes = self.nodes.max(other.nodes);
        self.ranks = self.ranks.max(other.ranks);
        self.channels = self.channels.or(other.channels);
        let inits = [self.slowest_init.take(), other.slowest_init.clone()];
        self.slowest_init = inits.into_iter().flatten().max_by(|one, its| seconds(one).total_cmp(&seconds(its)));
        self.left_out += other.left_out;
        for (own, its) in [
            (&mut self.network, &other.network),
            (&mut self.bootstrap, &other.bootstrap),
            (&mut self.sockets, &other.sockets),
            (&mut self.ib_devices, &other.ib_devices),
            (&mut self.ib_none, &other.ib_none),
            (&mut self.gids, &other.gids),
            (&mut self.plugins, &other.plugins),
            (&mut self.plugin_errors, &other.plugin_errors),
            (&mut self.uninitialized, &other.uninitialized),
            (&mut self.unopened_files, &other.unopened_files),
            (&mut self.invalid_variables, &other.invalid_variables),
            (&mut self.unknown, &other.unknown),
        ] {
            own.extend(its.iter().take(MOST.saturating_sub(own.len())).cloned());
        }
        self.rails.extend(&other.rails);
        self.addresses.extend(other.addresses.clone());
        self.gpu_direct.extend(other.gpu_direct.clone());
        self.variables.extend(other.variables.clone());
        self.rings.extend(other.rings.clone());
        self.warnings.extend(other.warnings.clone());
        for ((from, to), transports) in &other.pairs {
            for transport in transports {
                self.add_pair(*from, *to, transport.clone());
            }
        }
    }

    /// Number of reasons why a network is not used.
    pub(super) fn refusals(&self) -> usize {
        self.ib_none.len() + self.plugin_errors.len() + self.uninitialized.len()
    }

    /// All transports between ranks.
    pub fn transports(&self) -> BTreeSet<&str> {
        self.pairs.values().flatten().map(String::as_str).collect()
    }
}

/// The JSON of pairs: each is `0 -> 1`, because keys in JSON are strings.
mod pairs {

    use std::collections::{BTreeMap, BTreeSet};

    use serde::{Deserialize as _, Deserializer, Serializer, de};

    type Ways = BTreeSet<String>;

    pub(super) fn serialize<S: Serializer>(
        pairs: &BTreeMap<(u32, u32), Ways>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(pairs.iter().map(|((from, to), ways)| (format!("{from} -> {to}"), ways)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<(u32, u32), Ways>, D::Error> {
        let pairs = BTreeMap::<String, Ways>::deserialize(deserializer)?;
        let pair =
            |text: &str| text.split_once(" -> ").and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
        let read = |(text, ways): (String, Ways)| match pair(&text) {
            Some(pair) => Ok((pair, ways)),
            None => Err(de::Error::custom(format!("'{text}' is not a pair of ranks"))),
        };
        pairs.into_iter().map(read).collect()
    }
}

/// The number at the start of a text.
fn seconds(text: &str) -> f64 {
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or_default()
}

/// The entries of `[0]mlx5_0:1/IB [1]mlx5_1:1/RoCE`.
fn devices(list: &str) -> impl Iterator<Item = String> {
    list.split('[').filter_map(|entry| entry.split_once(']')).map(|(_, device)| device.trim().to_owned())
}

/// `NET/IB/0/GDRDMA` without the device's number.
fn without_number(transport: &str) -> String {
    let parts = transport.split('/').filter(|part| part.parse::<u32>().is_err());
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn recorded(name: &str) -> NcclLog {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/probe/nccl-log").join(name);
        NcclLog::read(fs::read_to_string(path).unwrap().lines())
    }

    #[test]
    fn two_gpus_with_nvlink() {
        let log = recorded("nccl-2.28.9-2xH200.log");
        assert_eq!((log.version.as_deref(), log.cuda.as_deref()), (Some("2.28.9"), Some("13.0")));
        assert_eq!((log.nodes, log.ranks), (Some(1), Some(2)));
        assert_eq!(log.transports(), BTreeSet::from(["P2P/CUMEM"]));
        assert_eq!(log.pairs.keys().copied().collect::<Vec<_>>(), [(0, 1), (1, 0)]);
        assert_eq!(log.network, BTreeSet::from(["Socket".to_owned()]));
        assert_eq!(log.sockets, BTreeSet::from(["eth0".to_owned()]));
        assert_eq!(log.rings, BTreeMap::from([("0 1".to_owned(), 24)]));
        assert_eq!(log.variables, BTreeMap::from([("NCCL_NVLS_ENABLE".to_owned(), "0".to_owned())]));
        assert!(log.warnings.is_empty() && log.unknown.is_empty(), "{log:?}");
    }

    #[test]
    fn eight_gpus_over_sockets() {
        let log = recorded("forced-sockets-8xH200.log");
        assert_eq!(log.transports(), BTreeSet::from(["NET/Socket"]));
        // NCCL counts ranks that share nothing as separate nodes.
        assert_eq!((log.nodes, log.ranks), (Some(8), Some(8)));
        assert_eq!(log.ib_none, BTreeSet::from(["No device found.".to_owned()]));
    }

    #[test]
    fn a_warning_has_its_meaning() {
        let log = recorded("isolated-ipc-host-fails.log");
        let (text, meaning) = log.warnings.first_key_value().unwrap();
        assert_eq!(text, "Cuda failure 101 'invalid device ordinal'");
        assert!(meaning.is_some());
    }

    #[test]
    fn what_variables_request_and_the_image_lacks() {
        let log = NcclLog::read([
            "a:1:2 [0] NCCL INFO ENV/Plugin: Could not find: libnccl-env.so",
            "a:1:2 [0] NCCL INFO NCCL_NET_PLUGIN set by environment to none-such",
            "a:1:2 [0] NCCL INFO NET/Plugin: Could not find: none-such libnccl-net-none-such.so",
            "a:1:2 [0] NCCL INFO TUNER/Plugin: Could not find: libnccl-tuner.so",
            "a:1:2 [0] NCCL INFO Could not open XML topology file /none.xml : No such file or directory",
        ]);
        let missing = "NCCL_NET_PLUGIN=none-such (NCCL finds no library of this name)";
        assert_eq!(log.plugin_errors, BTreeSet::from([missing.to_owned()]));
        assert_eq!(log.unopened_files, BTreeSet::from(["/none.xml".to_owned()]));
        assert!(log.unknown.is_empty(), "{log:?}");
    }

    #[test]
    fn older_and_other_lines() {
        let log = NcclLog::read([
            "NCCL version 2.18.1+cuda12.1",
            "a:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:192.0.2.2<0>",
            "a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0(7)/GDRDMA",
            "a:1:2 [0] NCCL INFO Ring 00 : 0[0] -> 1[1] via direct shared memory",
            "a:1:2 [0] NCCL INFO something that no table knows",
            "what a program prints",
        ]);
        assert_eq!(log.version.as_deref(), Some("2.18.1"));
        assert_eq!(log.ib_devices, BTreeSet::from(["mlx5_0:1/IB".to_owned(), "mlx5_1:1/RoCE".to_owned()]));
        assert_eq!(log.transports(), BTreeSet::from(["NET/IB/GDRDMA", "SHM"]));
        assert_eq!(log.unknown, BTreeSet::from(["something that no table knows".to_owned()]));
    }
}
