//! The `docker run` command line that is equivalent to the launch.

use std::fmt;

use model::shell_word;

use super::arrangement::{Arrangement, EntrypointUse, GpuRequest, GpuWay};

/// `docker run …`, quoted for a POSIX shell. The program is read from the file `payload`.
pub(super) fn docker_run(arrangement: &Arrangement, payload: &str) -> String {
    let mut line = CommandLine("docker run --rm --interactive".to_owned());
    match arrangement.gpu_way {
        Some(GpuWay::Request) => {
            let (gpus, capabilities) = (arrangement.gpus.clone(), arrangement.gpu_capabilities.clone());
            line.option("--gpus", GpuRequest { gpus, capabilities });
        }
        Some(GpuWay::Cdi) => line.options("--device", arrangement.gpus.cdi_names()),
        Some(GpuWay::Devices | GpuWay::None) | None => {}
    }
    line.options("--device", &arrangement.devices);
    line.option("--network", &arrangement.network);
    line.options("--ipc", &arrangement.ipc);
    line.options("--pid", &arrangement.pid);
    line.options("--hostname", &arrangement.hostname);
    line.options("--shm-size", arrangement.shm_size);
    line.options("--ulimit", arrangement.ulimits.iter().flatten());
    line.options("--runtime", &arrangement.runtime);
    line.options("--cpus", arrangement.cpus);
    line.options("--cpuset-cpus", &arrangement.cpuset_cpus);
    line.options("--cpuset-mems", &arrangement.cpuset_mems);
    line.options("--memory", arrangement.memory);
    line.option("--pids-limit", arrangement.pids);
    if arrangement.is_sealed() {
        line.option("--cap-drop", "ALL");
        line.word("--read-only");
    }
    if arrangement.privileged {
        line.word("--privileged");
    }
    line.options("--security-opt", arrangement.security_options());
    line.options("--tmpfs", arrangement.tmpfs_mounts().iter().map(|(path, options)| tmpfs(path, options)));
    line.options("--cap-add", &arrangement.capabilities);
    line.option("--log-driver", "none");
    line.options("--user", &arrangement.user);
    line.options("--volume", &arrangement.volumes);
    line.options("--env", arrangement.env.iter().map(|(name, value)| format!("{name}={value}")));
    line.options("--label", arrangement.labels.iter().map(|(name, value)| format!("{name}={value}")));
    match arrangement.entrypoint {
        EntrypointUse::Replaced => {
            line.option("--entrypoint", &arrangement.python);
            line.word(&arrangement.image);
        }
        EntrypointUse::OfImage => {
            line.word(&arrangement.image);
            line.word(&arrangement.python);
        }
    }
    arrangement.arguments.iter().for_each(|argument| line.word(argument));
    format!("{} < {}", line.0, shell_word(payload))
}

fn tmpfs(path: &str, options: &str) -> String {
    if options.is_empty() { path.to_owned() } else { format!("{path}:{options}") }
}

/// A command line under construction.
struct CommandLine(String);

impl CommandLine {
    fn word(&mut self, word: &str) {
        self.0.push(' ');
        self.0.push_str(&shell_word(word));
    }

    fn option(&mut self, name: &str, value: impl fmt::Display) {
        self.word(name);
        self.word(&value.to_string());
    }

    fn options<T: fmt::Display>(&mut self, name: &str, values: impl IntoIterator<Item = T>) {
        values.into_iter().for_each(|value| self.option(name, value));
    }
}

/// Path and mount options of the only writable place, apart from /dev/shm, in a container whose root file system is
/// read-only.
pub(super) const TMP: (&str, &str) = ("/tmp", "rw,nosuid,nodev,mode=1777");

#[cfg(test)]
mod tests {
    use super::super::arrangement::GpuSelection;
    use super::super::arrangement::tests::plain;
    use super::*;

    #[test]
    fn the_command_line_has_every_option_of_the_launch() {
        insta::assert_snapshot!(docker_run(&plain(), "payload.py"), @r#"docker run --rm --interactive --gpus '"device=0,2"' --device /dev/infiniband --network host --ipc host --shm-size 8589934592 --ulimit memlock=-1:-1 --runtime runc --cpus 1.5 --cpuset-cpus 0-1 --cpuset-mems 0 --memory 1073741824 --pids-limit 4096 --cap-drop ALL --read-only --security-opt no-new-privileges --security-opt seccomp=unconfined --tmpfs /scratch:size=1g --tmpfs /tmp:rw,nosuid,nodev,mode=1777 --cap-add IPC_LOCK --log-driver none --user 1000 --volume /data:/data:ro --env NCCL_DEBUG=WARN --label io.ncclcheck.owner=x --entrypoint python3 my/image -c 'print('\''it'\'')' < payload.py"#);
    }

    #[test]
    fn an_entrypoint_gets_the_program_as_its_arguments_and_the_engines_default_privileges() {
        let line = docker_run(&Arrangement { entrypoint: EntrypointUse::OfImage, ..plain() }, "payload.py");
        assert!(line.ends_with(r"my/image python3 -c 'print('\''it'\'')' < payload.py"), "{line}");
        for sealed in ["--entrypoint", "--cap-drop", "no-new-privileges", "--read-only", "/tmp"] {
            assert!(!line.contains(sealed), "{line}");
        }
        assert!(line.contains("--tmpfs /scratch:size=1g --cap-add IPC_LOCK --log-driver none --user 1000"), "{line}");
    }

    #[test]
    fn gpus_by_cdi_name() {
        let cdi = Arrangement { gpu_way: Some(GpuWay::Cdi), gpus: GpuSelection::Count(2), ..plain() };
        let line = docker_run(&cdi, "a file");
        assert!(line.contains("--device nvidia.com/gpu=0 --device nvidia.com/gpu=1 ") && line.ends_with("< 'a file'"));
        assert!(!docker_run(&Arrangement { gpu_way: Some(GpuWay::None), ..plain() }, "p").contains("gpu"));
    }
}
