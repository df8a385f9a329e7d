//! What a launch gives a container: devices, memory, namespaces.

use std::borrow::Cow;
use std::sync::LazyLock;

use model::document::YamlNode;
use model::{Fact, Gap, Site};
use regex::Regex;

use super::details::{Detail, Details};

/// Size of /dev/shm that Docker, containerd and CRI-O give a container if nothing else is asked for.
const DEFAULT_SHM: i64 = 64 << 20;

/// What a launch file says, and its line. Two are equal if they say the same.
#[derive(Clone, Debug, Eq)]
pub struct Said<T> {
    /// The value; `None` if it is computed when the job starts, or not understood.
    pub value: Option<T>,
    /// The line, from 1.
    pub line: usize,
}

impl<T: PartialEq> PartialEq for Said<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T> Said<T> {
    pub(super) fn new(value: T, line: usize) -> Self {
        Self { value: Some(value), line }
    }

    /// The fact of a launch file. `key` names what the line sets.
    pub(super) fn fact(self, file: &str, key: &str) -> Fact<T> {
        match self.value {
            Some(value) => Fact::seen(value, [site(file, self.line, key)]),
            None => Fact::Unknown(
                Gap::new(format!("{file}:{}: {key} is computed when the job starts", self.line))
                    .settled_by("render the file, or write the value into it"),
            ),
        }
    }
}

impl Said<i64> {
    /// The number that a node says.
    pub(super) fn number(node: &YamlNode) -> Self {
        Self { value: node.as_str().and_then(|text| text.trim().parse().ok()), line: node.line }
    }
}

pub(super) fn site(file: &str, line: usize, key: &str) -> Site {
    Site::Launch { file: file.to_owned(), line: Some(line), variable: key.to_owned() }
}

/// What starts a container, which decides what it gets without being asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Starter {
    /// Docker, Podman or nerdctl, on a command line.
    #[default]
    Docker,
    /// Docker Compose or podman-compose.
    Compose,
    /// Kubernetes.
    Kubernetes,
    /// A service that gives a container what the GPU work on a whole machine needs: SkyPilot, dstack.
    Service,
    /// A program that keeps the network, the memory and the devices of the host: pyxis, Apptainer, Charliecloud.
    Scheduler,
}

impl Starter {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Compose => "compose",
            Self::Kubernetes => "kubernetes",
            Self::Service => "service",
            Self::Scheduler => "scheduler",
        }
    }

    /// True if a container shares nothing with the host unless the file says so.
    pub(super) const fn isolates(self) -> bool {
        matches!(self, Self::Docker | Self::Compose | Self::Kubernetes)
    }
}

/// The shared memory of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharedMemory {
    /// So many bytes.
    Bytes(Said<i64>),
    /// That of the host, or as much memory as the container may use.
    Large,
}

/// What may give a container more, and is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unread {
    /// What it is.
    pub what: &'static str,
    /// How its user gets the whole.
    pub help: &'static str,
}

impl Unread {
    /// What another part of the launch says.
    pub(super) const fn elsewhere(what: &'static str) -> Self {
        Self { what, help: "write what it holds into the file" }
    }
}

/// What a launch gives a container, as far as it says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// What starts the container.
    pub starter: Starter,
    /// True if it gets a GPU.
    pub has_gpu: bool,
    /// The number of its GPUs, unless it gets all.
    pub gpus: Option<Said<i64>>,
    /// Its shared memory.
    pub shm: Option<SharedMemory>,
    /// Its network: `host`, or another word for its own.
    pub network: Option<Said<String>>,
    /// True if it has more networks than its first.
    pub has_more_networks: bool,
    /// What gives it RDMA devices: a path, or the name of a resource.
    pub rdma: Vec<Said<String>>,
    /// True if it gets every device.
    pub is_privileged: bool,
    /// True if it may lock as much memory as it likes.
    pub locks_memory: bool,
    /// Most memory, in bytes.
    pub memory: Option<Said<i64>>,
    /// Most CPUs at a time, rounded up.
    pub cpus: Option<Said<i64>>,
    /// What it mounts over the image, as `SOURCE:TARGET`.
    pub mounts: Vec<Said<String>>,
    /// What may say more, and is not read.
    pub unread: Option<Said<Unread>>,
    /// How many such containers the file starts.
    pub copies: Option<Said<i64>>,
    /// How many times a scheduler starts the command on each node.
    pub tasks: Option<Said<i64>>,
    /// The number of nodes of which its command is one.
    pub nodes: Option<Said<i64>>,
    /// True if options of `docker exec` that the shell computes may pass its process variables.
    pub hides_variables: bool,
    /// True if it gets only the device nodes of the host that it mounts.
    pub restricts_devices: bool,
    /// What else the file says of it.
    pub details: Details,
}

impl Given {
    /// The size of its shared memory; absent if it is as large as its memory.
    pub(super) fn shm_bytes(&self, file: &str, line: usize) -> Fact<i64> {
        match &self.shm {
            Some(SharedMemory::Bytes(said)) => said.clone().fact(file, "the size of /dev/shm"),
            None if self.unread.is_some() => self.unknown(file),
            None if self.starter.isolates() => Fact::seen(DEFAULT_SHM, [site(file, line, "the size of /dev/shm")]),
            Some(SharedMemory::Large) | None => Fact::Absent,
        }
    }

    /// `host`, `bridge` or `own`.
    pub(super) fn network(&self, file: &str, line: usize) -> Fact<String> {
        let default = if self.starter == Starter::Docker { "bridge" } else { "own" };
        let word = |name: String| match name.as_str() {
            "host" => name,
            "bridge" | "default" => default.to_owned(),
            _ => "own".to_owned(),
        };
        match &self.network {
            Some(said) => said.clone().fact(file, "the network").map(word),
            None if self.unread.is_some() => self.unknown(file),
            None if self.starter.isolates() => Fact::seen(default.to_owned(), [site(file, line, "the network")]),
            None => Fact::known("host".to_owned()),
        }
    }

    /// What gives it RDMA devices; absent if nothing does. Another resource says which devices a claim brings.
    pub(super) fn rdma(&self, file: &str) -> Fact<Vec<String>> {
        let all = (!self.starter.isolates() && !self.restricts_devices).then(|| "the devices of the host".to_owned());
        let privileged = self.is_privileged.then(|| "privileged".to_owned());
        let said = self.rdma.iter().filter_map(|said| said.value.clone());
        let names: Vec<_> = said.chain(privileged).chain(all).collect();
        let sites = self.rdma.iter().map(|said| site(file, said.line, "RDMA devices"));
        match names.is_empty() {
            true if self.unread.is_some() => self.unknown(file),
            true => self.details.fact(Detail::Claims, file, "resource claims").and_then(|claims, at| {
                let place = at.first().map(ToString::to_string).unwrap_or_default();
                let why = format!("{place}: a claim may bring RDMA devices: {}", claims.join(", "));
                Fact::Unknown(Gap::new(why).settled_by("see its devices: kubectl get resourceclaimtemplates -o yaml"))
            }),
            false => Fact::seen(names, sites),
        }
    }

    /// A fact that what is not read may decide.
    fn unknown<T>(&self, file: &str) -> Fact<T> {
        let line = self.unread.as_ref().map_or(0, |said| said.line);
        let Unread { what, help } = self.unread.as_ref().and_then(|said| said.value).unwrap_or(Unread::elsewhere(""));
        Fact::Unknown(Gap::new(format!("{file}:{line}: {what}")).settled_by(help))
    }

    /// True if nothing bounds the memory that it may lock.
    pub(super) fn locks_memory(&self, file: &str) -> Fact<bool> {
        match self.locks_memory || self.is_privileged || !self.starter.isolates() {
            false if self.unread.is_some() => self.unknown(file),
            may_lock => Fact::known(may_lock),
        }
    }

    /// What else the file says of it, of one kind. Another file may have its claims.
    pub(super) fn detail(&self, detail: Detail, file: &str, what: &str) -> Fact<Vec<String>> {
        match self.details.fact(detail, file, what) {
            Fact::Absent
                if detail == Detail::Claims && self.starter == Starter::Kubernetes && self.unread.is_some() =>
            {
                self.unknown(file)
            }
            fact => fact,
        }
    }

    /// Adds a mount, and what it brings.
    pub(super) fn mount(&mut self, source: &str, target: &str, line: usize) {
        if target == "/dev/shm" {
            self.shm = Some(SharedMemory::Large);
        } else if is_rdma_path(target) {
            self.rdma.push(Said::new(target.to_owned(), line));
        } else {
            self.mounts.push(Said::new(format!("{source}:{target}"), line));
        }
    }

    /// Reads the size of /dev/shm, which counts unless the host's or another memory is mounted over it.
    pub(super) fn shm_size(&mut self, size: &str, line: usize) {
        if self.shm != Some(SharedMemory::Large) {
            self.shm = Some(SharedMemory::Bytes(Said { value: bytes(size, self.starter), line }));
        }
    }

    /// Reads the mode of a container's IPC namespace. That of another container has the /dev/shm of the other.
    pub(super) fn ipc(&mut self, mode: &str, line: usize) {
        match mode {
            "private" | "shareable" | "none" => {}
            "host" => self.shm = Some(SharedMemory::Large),
            _ => self.shm = Some(SharedMemory::Bytes(Said { value: None, line })),
        }
    }

    /// Adds a file system in memory: `TARGET`, or `TARGET:OPTIONS` with its size among them. Without a size it has half of the
    /// memory of the host.
    pub(super) fn tmpfs(&mut self, text: &str, line: usize) {
        if let Some(options) = text.strip_prefix("/dev/shm") {
            let size = options.split([':', ',']).find_map(|option| option.strip_prefix("size="));
            let bytes = |size: &str| SharedMemory::Bytes(Said { value: bytes(size, self.starter), line });
            self.shm = Some(size.map_or(SharedMemory::Large, bytes));
        }
    }

    /// Adds a device of the host, by its path or by its CDI name.
    pub(super) fn device(&mut self, name: &str, line: usize) {
        let mut parts = name.split(':');
        let source = parts.next().unwrap_or(name);
        let path = parts.next().filter(|target| target.starts_with('/')).unwrap_or(source);
        self.has_gpu |= name.contains("nvidia");
        if is_rdma_path(path) {
            self.rdma.push(Said::new(path.to_owned(), line));
        }
    }

    /// Adds a Linux capability.
    pub(super) fn capability(&mut self, name: &str, line: usize) {
        let name = name.to_ascii_uppercase();
        let name = name.trim_start_matches("CAP_");
        self.details.add(Detail::Capabilities, name, line);
        self.locks_memory |= matches!(name, "IPC_LOCK" | "ALL");
    }
}

/// True for the device nodes of RDMA, which are in one folder.
fn is_rdma_path(path: &str) -> bool {
    path == "/dev" || path.starts_with("/dev/infiniband")
}

/// True if a resource of Kubernetes is an RDMA device: `rdma/hca_shared_devices_a`, `vpc.amazonaws.com/efa`.
pub(super) fn is_rdma_resource(name: &str) -> bool {
    let words = ["rdma", "/efa", "infiniband", "hostdev", "sriov", "mlnx", "roce", "/ib", "/hca"];
    name.contains('/') && words.iter().any(|word| name.to_ascii_lowercase().contains(word))
}

/// True if a text has a value that is known only when the job starts, or when its template is rendered.
pub fn is_computed(text: &str) -> bool {
    text.contains("${") || text.contains("$(") || is_template(text)
}

/// True if a text is part of a template, or has a placeholder.
pub(super) fn is_template(text: &str) -> bool {
    ["{{", "{%", "<%"].iter().any(|mark| text.contains(mark)) || PLACEHOLDER.is_match(text)
}

/// A placeholder of documentation, such as `<image>` or `<your account>`. The shell would read it as two redirections.
#[expect(clippy::expect_used, reason = "a constant pattern, which a test compiles")]
static PLACEHOLDER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?P<before>^|[^<])<[A-Za-z](?:[\w -]*[\w-])?>").expect("a pattern that parses"));

/// A script with a variable that nothing sets in the place of each placeholder, since the value of both is unknown.
pub(super) fn without_placeholders(script: &str) -> Cow<'_, str> {
    PLACEHOLDER.replace_all(script, "${before}$${PLACEHOLDER}")
}

/// A number of CPUs, rounded up: `8`, `1.5`, or in Kubernetes `500m`.
pub(super) fn cpus(text: &str) -> Option<i64> {
    let (number, unit) = match text.trim().strip_suffix('m') {
        Some(number) => (number, 1000.0),
        None => (text.trim(), 1.0),
    };
    let cpus: f64 = number.parse().ok()?;
    #[expect(clippy::cast_possible_truncation, reason = "a float that does not fit saturates")]
    Some((cpus / unit).ceil() as i64)
}

/// A number of bytes as Docker writes it, in which every unit is a power of 1024, or as Kubernetes writes it.
pub(super) fn bytes(text: &str, starter: Starter) -> Option<i64> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    let is_decimal = starter == Starter::Kubernetes && !unit.ends_with('i');
    let base: f64 = if is_decimal { 1000.0 } else { 1024.0 };
    let power = match unit.trim().trim_end_matches(['b', 'B']).trim_end_matches('i').to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 1,
        "m" if starter == Starter::Kubernetes && unit == "m" => return None,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    let bytes = number * base.powi(power);
    #[expect(clippy::cast_possible_truncation, reason = "a float that does not fit saturates")]
    Some(bytes as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_docker_and_of_kubernetes() {
        for (text, starter, expected) in [
            ("16g", Starter::Docker, Some(16 << 30)),
            ("1.5gb", Starter::Compose, Some(3 << 29)),
            ("64m", Starter::Docker, Some(64 << 20)),
            ("1024", Starter::Docker, Some(1024)),
            ("16Gi", Starter::Kubernetes, Some(16 << 30)),
            ("8000M", Starter::Kubernetes, Some(8_000_000_000)),
            ("8G", Starter::Kubernetes, Some(8_000_000_000)),
            ("100m", Starter::Kubernetes, None),
            ("${SHM}", Starter::Docker, None),
        ] {
            assert_eq!(bytes(text, starter), expected, "{text}");
        }
    }

    #[test]
    fn numbers_of_cpus() {
        for (text, expected) in
            [("8", Some(8)), ("1.5", Some(2)), ("500m", Some(1)), ("64000m", Some(64)), ("${N}", None), ("m", None)]
        {
            assert_eq!(cpus(text), expected, "{text}");
        }
    }

    #[test]
    fn resources_of_rdma() {
        for name in
            ["rdma/hca_shared_devices_a", "vpc.amazonaws.com/efa", "nvidia.com/mlnxnics", "openshift.io/mlx-sriov"]
        {
            assert!(is_rdma_resource(name), "{name}");
        }
        assert!(!is_rdma_resource("nvidia.com/gpu") && !is_rdma_resource("memory"));
    }
}
