//! Arrangement of the container: all parameters of `docker run` in one value. The engine's request and the equivalent
//! command line both derive from it, so that a security team reads exactly what runs.

use std::fmt;
use std::str::FromStr;

/// A container's arrangement. `None` and empty fields mean the engine's default, unless the field documents another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrangement {
    /// Name or ID of the image, as the engine knows it.
    pub image: String,
    /// What the container does with the image's entrypoint.
    pub entrypoint: EntrypointUse,
    /// Words of the image's entrypoint, as the engine knows them.
    pub image_entrypoint: Vec<String>,
    /// Python interpreter in the image, by path or by name on its PATH.
    pub python: String,
    /// Arguments of the interpreter.
    pub arguments: Vec<String>,
    /// Requested GPUs.
    pub gpus: GpuSelection,
    /// Way of requesting the GPUs; `None` is the way that the engine supports.
    pub gpu_way: Option<GpuWay>,
    /// Network mode: `host`, `bridge`, `none`, a network's name.
    pub network: String,
    /// IPC mode; the engine's default is private.
    pub ipc: Option<String>,
    /// PID mode; the engine's default is private.
    pub pid: Option<String>,
    /// Host name of the container; the engine's default is on the host's network the host's name.
    pub hostname: Option<String>,
    /// Size of /dev/shm in bytes; the engine's default is 64 MiB.
    pub shm_size: Option<u64>,
    /// Resource limits; if empty, locked memory is unlimited where the engine permits it.
    pub ulimits: Vec<Ulimit>,
    /// True if the container gets /dev/infiniband; `None` passes it if this host has it.
    pub rdma: Option<bool>,
    /// Other device nodes of the host, by path.
    pub devices: Vec<String>,
    /// Environment variables, which override the image's.
    pub env: Vec<(String, String)>,
    /// Mounts, as `docker run -v` takes them.
    pub volumes: Vec<String>,
    /// User in the container; `None` is the image's user.
    pub user: Option<String>,
    /// Capabilities that are kept, or behind the image's entrypoint added to the engine's default ones.
    pub capabilities: Vec<String>,
    /// Memory limit in bytes; 0 is unlimited, `None` is three quarters of the engine's memory.
    pub memory: Option<u64>,
    /// Limit on processes and threads; 0 is unlimited.
    pub pids: u32,
    /// Policy for fetching the image.
    pub pull: PullPolicy,
    /// Labels that mark a container of ncclcheck.
    pub labels: Vec<(String, String)>,
}

/// Policy for fetching the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullPolicy {
    /// Fetch the image if the engine does not have it.
    Missing,
    /// Never fetch the image.
    Never,
    /// Always fetch the image.
    Always,
}

/// What a container does with the image's entrypoint, and so how much it may do itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EntrypointUse {
    /// The program replaces the entrypoint. It needs no privileges and writes nothing, so that the container has no
    /// capabilities and a read-only root file system.
    #[default]
    Replaced,
    /// The entrypoint starts the program, as it starts the command of a job. Entrypoints change users, modes and files,
    /// so that the container may do what the containers of `docker run` may do by default. What it writes is removed
    /// with it.
    OfImage,
}

/// A selection of GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuSelection {
    /// All GPUs of the host.
    All,
    /// The first N GPUs.
    Count(u32),
    /// GPUs by index, UUID or MIG name.
    These(Vec<String>),
}

/// A way of requesting GPUs from an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuWay {
    /// A device request with an empty driver, as `docker run --gpus` sends it; NVIDIA's container toolkit answers it.
    Request,
    /// Names of the Container Device Interface, such as `nvidia.com/gpu=all`.
    Cdi,
    /// Device nodes and mounts, listed one by one; the engine needs no GPU support.
    Devices,
    /// No GPUs.
    None,
}

/// A resource limit; -1 is unlimited (getrlimit(2)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ulimit {
    /// `memlock`, `nofile`, ...
    pub name: String,
    /// Soft limit, in the resource's unit.
    pub soft: i64,
    /// Hard limit.
    pub hard: i64,
}

impl GpuSelection {
    /// Names of the Container Device Interface for these GPUs.
    pub(super) fn cdi_names(&self) -> Vec<String> {
        let name = |which: &str| format!("nvidia.com/gpu={which}");
        match self {
            Self::All => vec![name("all")],
            Self::Count(count) => (0..*count).map(|index| name(&index.to_string())).collect(),
            Self::These(ids) => ids.iter().map(|id| name(id)).collect(),
        }
    }
}

impl FromStr for GpuSelection {
    type Err = String;

    /// Parses the syntax of `docker run --gpus`: `all`, a number, or `device=0,2`.
    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("device=")) {
            ("all", _) => Ok(Self::All),
            (_, Some(ids)) if ids.split(',').all(|id| !id.is_empty()) => {
                Ok(Self::These(ids.split(',').map(ToOwned::to_owned).collect()))
            }
            _ => match text.parse() {
                Ok(0) | Err(_) => Err("expected all, a number of at least 1, or device=ID,...".to_owned()),
                Ok(count) => Ok(Self::Count(count)),
            },
        }
    }
}

impl fmt::Display for GpuSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Count(count) => write!(f, "{count}"),
            // Docker's command line parses the value as CSV.
            Self::These(ids) => write!(f, "\"device={}\"", ids.join(",")),
        }
    }
}

impl FromStr for Ulimit {
    type Err = String;

    /// Parses `NAME=SOFT[:HARD]`, the syntax of `docker run --ulimit`.
    fn from_str(text: &str) -> Result<Self, String> {
        let usage = || "expected NAME=SOFT[:HARD], such as memlock=-1".to_owned();
        let (name, values) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(usage)?;
        let (soft, hard) = values.split_once(':').unwrap_or((values, values));
        let number = |text: &str| text.parse::<i64>().ok().filter(|number| *number >= -1).ok_or_else(usage);
        Ok(Self { name: name.to_owned(), soft: number(soft)?, hard: number(hard)? })
    }
}

impl fmt::Display for Ulimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}:{}", self.name, self.soft, self.hard)
    }
}

/// Parses a number of bytes in the syntax of Docker's command line: `64m`, `1g`, `8GiB`, `1048576`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text.get(digits.len()..).unwrap_or_default().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1_u64 << 40,
        _ => return Err("expected bytes, optionally with the suffix k, m, g or t (powers of 1024)".to_owned()),
    };
    let number: Option<u64> = digits.parse().ok();
    number.and_then(|number| number.checked_mul(factor)).ok_or_else(|| "expected bytes, such as 512m or 16g".to_owned())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An arrangement that sets most fields.
    pub(in super::super) fn plain() -> Arrangement {
        Arrangement {
            image: "my/image".to_owned(),
            entrypoint: EntrypointUse::Replaced,
            image_entrypoint: vec!["/entry.sh".to_owned()],
            python: "python3".to_owned(),
            arguments: vec!["-c".to_owned(), "print('it')".to_owned()],
            gpus: GpuSelection::These(vec!["0".to_owned(), "2".to_owned()]),
            gpu_way: Some(GpuWay::Request),
            network: "host".to_owned(),
            ipc: Some("host".to_owned()),
            pid: None,
            hostname: None,
            shm_size: Some(8 << 30),
            ulimits: vec!["memlock=-1".parse().unwrap()],
            rdma: None,
            devices: vec!["/dev/infiniband".to_owned()],
            env: vec![("NCCL_DEBUG".to_owned(), "WARN".to_owned())],
            volumes: vec!["/data:/data:ro".to_owned()],
            user: Some("1000".to_owned()),
            capabilities: vec!["IPC_LOCK".to_owned()],
            memory: Some(1 << 30),
            pids: 4096,
            pull: PullPolicy::Missing,
            labels: vec![("io.ncclcheck.owner".to_owned(), "x".to_owned())],
        }
    }

    #[test]
    fn gpu_selections_have_dockers_syntax() {
        let these = |ids: &[&str]| Ok(GpuSelection::These(ids.iter().map(|id| (*id).to_owned()).collect()));
        assert_eq!("all".parse(), Ok(GpuSelection::All));
        assert_eq!("2".parse(), Ok(GpuSelection::Count(2)));
        assert_eq!("device=0,GPU-1a".parse(), these(&["0", "GPU-1a"]));
        assert_eq!("device=1".parse::<GpuSelection>().unwrap().to_string(), "\"device=1\"");
        assert_eq!(GpuSelection::Count(2).cdi_names(), ["nvidia.com/gpu=0", "nvidia.com/gpu=1"]);
        assert_eq!(GpuSelection::All.cdi_names(), ["nvidia.com/gpu=all"]);
        assert_eq!(GpuSelection::These(vec!["GPU-1a".to_owned()]).cdi_names(), ["nvidia.com/gpu=GPU-1a"]);
        assert_eq!([GpuSelection::All, GpuSelection::Count(2)].map(|gpus| gpus.to_string()), ["all", "2"]);
        assert_eq!("1".parse(), Ok(GpuSelection::Count(1)));
        for odd in ["", "0", "none", "device=", "device=0,", "-1"] {
            assert!(odd.parse::<GpuSelection>().is_err(), "{odd}");
        }
    }

    #[test]
    fn limits_and_sizes_have_dockers_syntax() {
        assert_eq!("memlock=-1".parse::<Ulimit>().unwrap().to_string(), "memlock=-1:-1");
        assert_eq!("nofile=1024:4096".parse::<Ulimit>().unwrap().to_string(), "nofile=1024:4096");
        for odd in ["memlock", "=1", "memlock=x", "memlock=-2", "memlock=1:", "memlock=1=2"] {
            assert!(odd.parse::<Ulimit>().is_err(), "{odd}");
        }
        for odd in ["memlock=-1:x", "memlock=1:-2", "memlock"] {
            assert!(odd.parse::<Ulimit>().unwrap_err().contains("NAME=SOFT[:HARD]"), "{odd}");
        }
        let powers = [("", 0), ("k", 10), ("m", 20), ("g", 30), ("t", 40)];
        for (unit, power) in powers {
            for suffix in [unit.to_owned(), format!("{unit}b"), format!("{unit}ib").to_uppercase()] {
                let suffix = if suffix == "IB" { "B".to_owned() } else { suffix };
                assert_eq!(bytes(&format!("3{suffix}")), Ok(3 << power), "3{suffix}");
            }
        }
        assert!(bytes("1x").is_err() && bytes("").is_err() && bytes("99999999999t").is_err());
    }
}
