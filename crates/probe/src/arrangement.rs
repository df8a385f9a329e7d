//! Arrangement of the container: all parameters of `docker run` in one value. The engine's request and the equivalent
//! command line both derive from it, so that a security team reads exactly what runs.

mod gpus;
mod security;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::command::TMP;

pub use gpus::{GpuRequest, GpuSelection};
pub use security::SecurityOption;

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
    /// Capabilities of the driver, such as `utility`, in a request of [`GpuWay::Request`]; empty for those that the image names.
    pub gpu_capabilities: Vec<String>,
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
    /// Resource limits; `None` is unlimited locked memory where the engine permits it.
    pub ulimits: Option<Vec<Ulimit>>,
    /// True if the container gets /dev/infiniband; `None` passes it if this host has it.
    pub rdma: Option<bool>,
    /// Other devices of the host, as `docker run --device` takes them: `HOST[:CONTAINER[:rwm]]`, or by CDI name.
    pub devices: Vec<String>,
    /// Environment variables, which override the image's.
    pub env: Vec<(String, String)>,
    /// Mounts, as `docker run -v` takes them.
    pub volumes: Vec<String>,
    /// File systems in memory, as `docker run --tmpfs` takes them: `PATH[:OPTIONS]`.
    pub tmpfs: Vec<String>,
    /// User in the container; `None` is the image's user.
    pub user: Option<String>,
    /// Capabilities that are kept, or behind the image's entrypoint added to the engine's default ones.
    pub capabilities: Vec<String>,
    /// True for all capabilities and devices. The container is then not sealed.
    pub privileged: bool,
    /// Security options beside those of a sealed container.
    pub security: Vec<SecurityOption>,
    /// OCI runtime; `None` is the engine's default.
    pub runtime: Option<String>,
    /// Limit on the time of CPUs; `None` is unlimited.
    pub cpus: Option<Cpus>,
    /// CPUs that the container may run on, as the kernel lists them; `None` is all.
    pub cpuset_cpus: Option<String>,
    /// NUMA nodes whose memory the container may use, as the kernel lists them; `None` is all.
    pub cpuset_mems: Option<String>,
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

/// A number of CPUs, in billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpus(pub i64);

impl Arrangement {
    /// True for a container without privileges whose root file system is read-only.
    pub(super) fn is_sealed(&self) -> bool {
        self.entrypoint == EntrypointUse::Replaced && !self.privileged
    }

    /// True if something gives it GPUs: the request, its devices, or NVIDIA's runtime.
    pub(super) fn gives_gpus(&self) -> bool {
        let is_gpu = |device: &String| device.starts_with("nvidia.com/gpu=") || device.starts_with("/dev/nvidia");
        self.gpu_way != Some(GpuWay::None)
            || self.devices.iter().any(is_gpu)
            || self.runtime.as_ref().is_some_and(|runtime| runtime.starts_with("nvidia"))
    }

    /// Security options. One that was asked for takes the place of the seal's.
    pub(super) fn security_options(&self) -> Vec<SecurityOption> {
        let seal = SecurityOption::no_new_privileges();
        let adds = self.is_sealed() && self.security.iter().all(|option| option.name() != seal.name());
        adds.then_some(seal).into_iter().chain(self.security.iter().cloned()).collect()
    }

    /// File systems in memory by path, each with its options. A sealed container has /tmp, unless something else is there.
    pub(super) fn tmpfs_mounts(&self) -> BTreeMap<String, String> {
        let is_tmp = |volume: &String| volume.split(':').nth(1) == Some(TMP.0);
        let seal = (self.is_sealed() && !self.volumes.iter().any(is_tmp)).then_some(TMP);
        let own = self.tmpfs.iter().map(|text| text.split_once(':').unwrap_or((text, "")));
        seal.into_iter().chain(own).map(|(path, options)| (path.to_owned(), options.to_owned())).collect()
    }
}

impl Cpus {
    /// The number of CPUs.
    #[expect(clippy::cast_precision_loss, reason = "limits are compared by hundredths")]
    pub(super) fn count(self) -> f64 {
        self.0 as f64 / NANO as f64
    }
}

impl FromStr for Cpus {
    type Err = String;

    /// Parses a decimal number of CPUs, such as `8` or `1.5`.
    fn from_str(text: &str) -> Result<Self, String> {
        let usage = || "expected a number of CPUs, such as 8 or 1.5".to_owned();
        let (whole, parts) = text.split_once('.').unwrap_or((text, ""));
        let digits = format!("{whole}{parts:0<9}");
        if parts.len() > 9 || matches!(text, "" | ".") || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(usage());
        }
        digits.parse().ok().map(Self).ok_or_else(usage)
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:09}", self.0 / NANO, self.0 % NANO);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

const NANO: i64 = 1_000_000_000;

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
            gpu_capabilities: Vec::new(),
            gpu_way: Some(GpuWay::Request),
            network: "host".to_owned(),
            ipc: Some("host".to_owned()),
            pid: None,
            hostname: None,
            shm_size: Some(8 << 30),
            ulimits: Some(vec!["memlock=-1".parse().unwrap()]),
            rdma: None,
            devices: vec!["/dev/infiniband".to_owned()],
            env: vec![("NCCL_DEBUG".to_owned(), "WARN".to_owned())],
            volumes: vec!["/data:/data:ro".to_owned()],
            tmpfs: vec!["/scratch:size=1g".to_owned()],
            user: Some("1000".to_owned()),
            capabilities: vec!["IPC_LOCK".to_owned()],
            privileged: false,
            security: vec![SecurityOption::read("seccomp=unconfined").unwrap()],
            runtime: Some("runc".to_owned()),
            cpus: Some(Cpus(1_500_000_000)),
            cpuset_cpus: Some("0-1".to_owned()),
            cpuset_mems: Some("0".to_owned()),
            memory: Some(1 << 30),
            pids: 4096,
            pull: PullPolicy::Missing,
            labels: vec![("io.ncclcheck.owner".to_owned(), "x".to_owned())],
        }
    }

    #[test]
    fn numbers_of_cpus_have_dockers_syntax() {
        for (text, nano, shown) in
            [("8", 8_000_000_000, "8"), ("1.50", 1_500_000_000, "1.5"), (".5", 500_000_000, "0.5"), ("0", 0, "0")]
        {
            assert_eq!(text.parse(), Ok(Cpus(nano)), "{text}");
            assert_eq!(Cpus(nano).to_string(), shown);
        }
        for odd in ["", ".", "-1", "x", "1.5.2", "1.0000000001", "99999999999999999999999", "+1"] {
            assert!(odd.parse::<Cpus>().is_err(), "{odd}");
        }
    }

    #[test]
    fn what_was_asked_for_takes_the_place_of_the_seal() {
        let texts = |arrangement: &Arrangement| {
            arrangement.security_options().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(texts(&plain()), ["no-new-privileges", "seccomp=unconfined"]);
        let own = SecurityOption::read("no-new-privileges:false").unwrap();
        assert_eq!(texts(&Arrangement { security: vec![own], ..plain() }), ["no-new-privileges:false"]);
        assert_eq!(texts(&Arrangement { privileged: true, ..plain() }), ["seccomp=unconfined"]);
        let paths = |arrangement: &Arrangement| arrangement.tmpfs_mounts().into_keys().collect::<Vec<_>>();
        assert_eq!(paths(&plain()), ["/scratch", "/tmp"]);
        assert_eq!(paths(&Arrangement { volumes: vec!["/x:/tmp".to_owned()], ..plain() }), ["/scratch"]);
        assert_eq!(paths(&Arrangement { privileged: true, ..plain() }), ["/scratch"]);
        let own = Arrangement { tmpfs: vec!["/tmp".to_owned()], ..plain() };
        assert_eq!(own.tmpfs_mounts(), [("/tmp".to_owned(), String::new())].into());
    }

    #[test]
    fn gpus_come_in_several_ways() {
        let none = Arrangement { gpu_way: Some(GpuWay::None), ..plain() };
        assert!(plain().gives_gpus() && !none.gives_gpus());
        assert!(Arrangement { runtime: Some("nvidia".to_owned()), ..none.clone() }.gives_gpus());
        assert!(Arrangement { devices: vec!["nvidia.com/gpu=all".to_owned()], ..none }.gives_gpus());
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
