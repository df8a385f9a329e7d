//! What engines say when they do not start a container, in words that tell the cause and what to do. Some texts were
//! seen on Docker 20.10 and Podman 4.3, those of NVIDIA's toolkit stand in its source (libnvidia-container, src/error.c,
//! src/nvc.c; nvidia-container-toolkit, internal/modifier).

use crate::image::daemon::{Kind, Trouble};

use super::super::ProbeError;
use super::super::arrangement::{Arrangement, GpuWay};
use super::{Offers, Pull};

/// A message that is known by words in it, all of which must be there.
struct Known {
    words: &'static [&'static str],
    cause: &'static str,
    help: &'static str,
}

/// The first that fits counts: what is special stands before what is general.
const KNOWN: &[Known] = &[
    Known {
        words: &["could not select device driver", "cdi"],
        cause: "this engine does not know the Container Device Interface, or it is switched off (Docker has it from 25 \
                on)",
        help: "set {\"features\": {\"cdi\": true}} in /etc/docker/daemon.json and restart Docker, or use --gpu-mode request",
    },
    Known {
        words: &["could not select device driver", "gpu"],
        cause: "this engine has nobody who gives GPUs: NVIDIA's container toolkit is not installed, or not on the PATH of \
                the engine",
        help: "install nvidia-container-toolkit, run nvidia-ctk runtime configure --runtime=docker, and restart Docker; \
               without GPUs the rest runs with --gpu-mode none",
    },
    Known {
        words: &["unresolvable CDI devices"],
        cause: "no specification of the Container Device Interface on the engine's machine names these devices",
        help: "write it there with nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml, and see nvidia-ctk cdi list; the \
               names change with the driver and with MIG",
    },
    Known {
        words: &["nvidia-container-cli", "unsatisfied condition"],
        cause: "the image asks for a newer driver than this machine has, by a variable NVIDIA_REQUIRE_*",
        help: "update the driver, or take an image of an older CUDA release; ncclcheck check --host driver=VERSION,gpu=MODEL \
               tells what else would fail",
    },
    Known {
        words: &["nvidia-container-cli", "driver not loaded"],
        cause: "the kernel module of the NVIDIA driver is not loaded on the engine's machine",
        help: "see there whether nvidia-smi works; after an update of the driver or of the kernel, restart the machine",
    },
    Known {
        words: &["nvidia-container-cli", "driver/library version mismatch"],
        cause: "the driver was updated while the old kernel module is still loaded",
        help: "restart the engine's machine, or unload and load the module nvidia",
    },
    Known {
        words: &["nvidia-container-cli", "libnvidia-ml.so.1"],
        cause: "the driver's libraries are not installed on the engine's machine, or it is a WSL or rootless engine that \
                does not see them",
        help: "install the NVIDIA driver there, and see that nvidia-smi works",
    },
    Known {
        words: &["nvidia-container-cli", "unknown device"],
        cause: "the engine's machine has no GPU of this index or UUID",
        help: "see nvidia-smi -L there, and ask for others with --gpus",
    },
    Known {
        words: &["nvidia-container-cli"],
        cause: "NVIDIA's container toolkit could not prepare the container",
        help: "see there whether nvidia-smi works, and what nvidia-container-cli -k -d /dev/stderr info says",
    },
    Known {
        words: &["exec format error"],
        cause: "the image is made for another architecture than the engine's machine",
        help: "fetch the other one: docker pull --platform",
    },
    Known {
        words: &["no space left on device"],
        cause: "the engine's disk is full",
        help: "make room (docker system df shows what is in use)",
    },
    Known {
        words: &["executable file not found"],
        cause: "the image has no program of this name on its PATH",
        help: "name the image's Python with --python; ncclcheck inspect shows it as python.path",
    },
    Known {
        words: &["no such file or directory", "exec:"],
        cause: "the image has no program at this path",
        help: "name the image's Python with --python; ncclcheck inspect shows it as python.path",
    },
    Known {
        words: &["controller", "is not available"],
        cause: "a rootless engine may not set limits: its user has no control groups delegated",
        help: "delegate them (systemd: Delegate=cpu cpuset io memory pids for user@.service), or leave the limits out with \
               --pids-limit 0 --memory 0",
    },
    Known {
        words: &["rlimit", "operation not permitted"],
        cause: "the engine may not raise this limit above its own, as a rootless one may not",
        help: "raise its own limit (systemd: LimitMEMLOCK=infinity), or ask for less with --ulimit",
    },
    Known {
        words: &["error gathering device information"],
        cause: "the engine's machine has no such device",
        help: "leave it out: --rdma no for /dev/infiniband",
    },
    Known {
        words: &["bind source path does not exist"],
        cause: "the engine's machine has no such file or folder",
        help: "see the paths of --volume",
    },
    Known {
        words: &["network", "not found"],
        cause: "the engine has no network of this name",
        help: "take host, bridge, none or one that docker network ls shows, with --network",
    },
    Known {
        words: &["unable to find user"],
        cause: "the image has no user of this name",
        help: "give --user a number, or a name in the image's /etc/passwd",
    },
];

/// A container that was not started.
pub(super) fn start(arrangement: &Arrangement, trouble: &Trouble, offers: &Offers) -> ProbeError {
    let text = &trouble.text;
    let lower = text.to_lowercase();
    let known = KNOWN.iter().find(|known| known.words.iter().all(|word| lower.contains(&word.to_lowercase())));
    let (cause, mut help) = match known {
        Some(known) => (format!("\n  cause: {}", known.cause), Some(known.help.to_owned())),
        None => (String::new(), None),
    };
    if arrangement.way == GpuWay::Request && lower.contains("device driver") && offers.cdi.is_none() && offers.is_local
    {
        let nodes = std::path::Path::new("/dev/nvidiactl").exists();
        let seen =
            if nodes { "" } else { "; this machine has no /dev/nvidiactl, so no NVIDIA driver is loaded at all" };
        help = help.map(|help| format!("{help}{seen}"));
    }
    ProbeError::Engine { what: format!("{} does not run {}: {text}{cause}", offers.engine, arrangement.image), help }
}

/// An image that is not there.
pub(super) fn image(name: &str, pull: Pull, trouble: &Trouble, engine: &str) -> ProbeError {
    let text = &trouble.text;
    let (what, help) = match (trouble.kind, pull) {
        (Kind::Missing, Pull::Never) => (
            format!("{engine} has no image {name}"),
            format!("fetch it with docker pull {name}, or allow that with --pull missing"),
        ),
        (_, Pull::Never) => (format!("{engine} does not say what it knows of {name}: {text}"), String::new()),
        _ => (
            format!("{engine} cannot fetch {name}: {text}"),
            format!(
                "if it needs credentials, or comes from a file, bring it into the engine first: docker pull {name}, or docker load"
            ),
        ),
    };
    ProbeError::Engine { what, help: Some(help).filter(|help| !help.is_empty()) }
}

/// A small request that failed.
pub(super) fn request(about: &str, trouble: &Trouble, engine: &str) -> ProbeError {
    ProbeError::Engine { what: format!("{engine} does not say {about}: {}", trouble.text), help: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What engines say, and words of what is told of it. Docker 20.10 said the texts about device drivers, limits, programs
    /// and devices; the others are made from the forms in the sources of their engines and tools.
    const SAID: &[(&str, &str)] = &[
        (r#"could not select device driver "" with capabilities: [[gpu]]"#, "nvidia-ctk runtime configure"),
        (r#"could not select device driver "cdi" with capabilities: []"#, "\"cdi\": true"),
        ("CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=9", "nvidia-ctk cdi generate"),
        (
            "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: \
             error during container init: error setting rlimits for ready process: error setting rlimit type 8: operation \
             not permitted: unknown",
            "LimitMEMLOCK",
        ),
        (
            r#"unable to start container process: exec: "nope": executable file not found in $PATH: unknown"#,
            "ncclcheck inspect shows it as python.path",
        ),
        (
            r#"error gathering device information while adding custom device "/dev/infiniband": no such file or directory"#,
            "--rdma no",
        ),
        ("OCI runtime create failed: exec /usr/bin/python3: exec format error", "made for another architecture"),
        (
            "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=13.0, please update your driver",
            "NVIDIA_REQUIRE_",
        ),
        ("nvidia-container-cli: initialization error: nvml error: driver not loaded", "kernel module"),
        ("nvidia-container-cli: device error: 9: unknown device", "nvidia-smi -L"),
        ("crun: controller `pids` is not available under /sys/fs/cgroup/user.slice", "Delegate="),
        ("write /var/lib/docker/tmp/x: no space left on device", "disk is full"),
    ];

    #[test]
    fn engines_are_explained() {
        let arrangement = super::super::super::arrangement::tests::plain();
        for (said, wanted) in SAID {
            let trouble = Trouble::new(Kind::Odd, *said);
            let text = start(&arrangement, &trouble, &Offers::default()).to_string();
            assert!(text.contains(said) && text.contains("\n  cause: ") && text.contains(wanted), "{text}");
        }
    }

    #[test]
    fn what_is_not_known_is_passed_on_alone() {
        let arrangement = super::super::super::arrangement::tests::plain();
        let error = start(&arrangement, &Trouble::new(Kind::Odd, "something new"), &Offers::default());
        assert_eq!(error.to_string(), " does not run my/image: something new");
    }
}
