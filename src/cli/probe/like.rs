//! `--like`: the options of a `docker run` line, as options of the container. Launch files are read the same way.

use clap::{CommandFactory as _, Parser};

use facts::launch::{self, LaunchContainer, LaunchFile, Starter, is_computed};
use model::{Environment, is_among};
use probe::arrangement::GpuWay;

use super::super::CliError;
use super::super::args::probe::{ContainerArgs, LaunchArgs, ProcessArgs, RareLaunchArgs};

/// A run line.
#[derive(Debug)]
pub(super) struct RunLine {
    /// As a launch file.
    pub(super) file: LaunchFile,
    options: ContainerArgs,
}

/// The options of a line that a probe has too.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, args_override_self = true)]
struct LineArgs {
    #[command(flatten)]
    container: ContainerArgs,
}

/// Older and short names.
const NAMES: [(&str, &str); 6] = [
    ("-e", "--env"),
    ("-h", "--hostname"),
    ("-m", "--memory"),
    ("-u", "--user"),
    ("-v", "--volume"),
    ("--net", "--network"),
];

/// Options about the command that starts the container, of which a process in it sees nothing.
const ASIDE: &str = "--rm --interactive --tty --detach --name --cidfile --restart --quiet -q -l --label --label-file -a --attach \
    --sig-proxy --detach-keys --log-driver --log-opt --stop-signal --stop-timeout --no-healthcheck --health-cmd \
    --health-interval --health-retries --health-start-period --health-start-interval --health-timeout";

impl RunLine {
    /// Reads the value of `--like`. What it has and a probe cannot give is said on standard error.
    pub(super) fn read(text: &str, environment: &Environment) -> Result<Self, CliError> {
        let wrong = |why: &str| CliError::Usage(format!("--like: {why}"));
        let file = launch::read("--like", text).map_err(|error| CliError::Usage(error.to_string()))?;
        let container = match &*file.containers {
            [one] if one.given.starter == Starter::Docker => one,
            [_, _, ..] => return Err(wrong("it starts several containers: give the line of one")),
            _ => return Err(wrong("expected one argument like 'docker run [OPTIONS] IMAGE'")),
        };
        let (words, left_out) = translate(container, environment);
        if !left_out.is_empty() {
            super::super::say(&format!("note: --like: the probe's container is without {}", left_out.join(", ")));
        }
        let parsed = LineArgs::try_parse_from(words).map_err(|error| {
            let text = error.to_string();
            wrong(text.lines().next().unwrap_or_default().trim_start_matches("error: "))
        })?;
        Ok(Self { options: as_docker(parsed.container), file })
    }

    /// The image of the line.
    pub(super) fn image(&self) -> Result<String, CliError> {
        let named = self.file.containers.first().and_then(|container| container.image.clone());
        named
            .filter(|image| !is_computed(image))
            .ok_or_else(|| CliError::Usage("--like: a shell computes the name of the image: give IMAGE too".to_owned()))
    }

    /// The options of the line with those of the command line over them.
    pub(super) fn under(self, own: ContainerArgs) -> ContainerArgs {
        let ContainerArgs { launch: line, rare: line_rare, process: line_process, env } = self.options;
        let ContainerArgs { launch, rare, process, env: own_env } = own;
        ContainerArgs {
            launch: LaunchArgs {
                gpu_mode: launch.gpu_mode.or(if launch.gpus.is_some() { None } else { line.gpu_mode }),
                gpus: launch.gpus.or(line.gpus),
                network: launch.network.or(line.network),
                ipc: launch.ipc.or(line.ipc),
                shm_size: launch.shm_size.or(line.shm_size),
                memory: launch.memory.or(line.memory),
                pids_limit: launch.pids_limit.or(line.pids_limit),
                ulimit: Some(joined(line.ulimit.unwrap_or_default(), launch.ulimit.unwrap_or_default(), |limit| {
                    limit.name.clone()
                })),
                rdma: launch.rdma.or(line.rdma),
                volume: joined(line.volume, launch.volume, |text| text.split(':').nth(1).map(ToOwned::to_owned)),
                entrypoint: launch.entrypoint.or(line.entrypoint),
                pull: launch.pull.or(line.pull),
                dry_run: launch.dry_run,
            },
            rare: RareLaunchArgs {
                pid: rare.pid.or(line_rare.pid),
                hostname: rare.hostname.or(line_rare.hostname),
                cpus: rare.cpus.or(line_rare.cpus),
                cpuset_cpus: rare.cpuset_cpus.or(line_rare.cpuset_cpus),
                cpuset_mems: rare.cpuset_mems.or(line_rare.cpuset_mems),
                device: joined(line_rare.device, rare.device, Clone::clone),
                cap_add: joined(line_rare.cap_add, rare.cap_add, Clone::clone),
                security_opt: joined(line_rare.security_opt, rare.security_opt, |option| option.name().to_owned()),
                tmpfs: joined(line_rare.tmpfs, rare.tmpfs, |text| text.split(':').next().map(ToOwned::to_owned)),
                privileged: rare.privileged || line_rare.privileged,
                runtime: rare.runtime.or(line_rare.runtime),
            },
            process: ProcessArgs { user: process.user.or(line_process.user), ..process },
            env: joined(env, own_env, |text| text.split('=').next().map(ToOwned::to_owned)),
        }
    }
}

/// The options that a probe has, in its words, and the names of those that it cannot give.
fn translate(container: &LaunchContainer, environment: &Environment) -> (Vec<String>, Vec<String>) {
    let program = LineArgs::command();
    let is_known = |name: &str| program.get_arguments().any(|option| option.get_long() == name.strip_prefix("--"));
    let mut words = Vec::new();
    let mut left_out = Vec::new();
    if container.given.unread.is_some() {
        left_out.push("the options that a variable holds".to_owned());
    }
    for (name, value) in &container.options {
        let name = NAMES.iter().find(|(other, _)| other == name).map_or(name.as_str(), |(_, long)| *long);
        match (name, value.as_deref()) {
            _ if is_aside(name) => {}
            (_, Some(value)) if is_computed(value) => left_out.push(format!("{name} (a shell computes its value)")),
            ("--entrypoint", _) => {
                words.push("--entrypoint=none".to_owned());
                left_out.push(name.to_owned());
            }
            ("--privileged", Some("false")) => {}
            ("--privileged", _) => words.push(name.to_owned()),
            ("--pids-limit", Some("-1")) => words.push("--pids-limit=0".to_owned()),
            // Like Docker, which passes the caller's variable, if it is set.
            ("--env", Some(variable)) if !variable.contains('=') => {
                words.extend(environment.get(variable).map(|value| format!("{name}={variable}={value}")));
            }
            ("--mount", Some(value)) => match mount(value) {
                Some(word) => words.push(word),
                None => left_out.push(format!("{name} {value}")),
            },
            (_, Some(value)) if is_known(name) => words.push(format!("{name}={value}")),
            _ => left_out.push(name.to_owned()),
        }
    }
    (words, left_out)
}

/// The value of `--mount` as `--volume` or `--tmpfs`, which have other words for the same. `None` if they cannot say it.
fn mount(value: &str) -> Option<String> {
    let mut kind = "volume";
    let mut source = None;
    let mut target = None;
    let mut options = Vec::new();
    for pair in value.split(',') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, "true"));
        match key {
            "type" => kind = value,
            "source" | "src" => source = Some(value),
            "target" | "destination" | "dst" => target = Some(value),
            "readonly" | "ro" if value == "true" => options.push("ro".to_owned()),
            "tmpfs-size" | "tmpfs-mode" => options.push(key.replace("tmpfs-", "") + "=" + value),
            _ => return None,
        }
    }
    let place = match (kind, source) {
        ("bind" | "volume", Some(source)) => format!("--volume={source}:{}", target?),
        ("tmpfs", None) => format!("--tmpfs={}", target?),
        _ => return None,
    };
    Some(if options.is_empty() { place } else { format!("{place}:{}", options.join(",")) })
}

/// True for an option about the command that starts the container, of which flags may be one word: `-it`.
fn is_aside(name: &str) -> bool {
    let flags = name.strip_prefix('-').unwrap_or_default();
    is_among(name, ASIDE) || (!flags.is_empty() && flags.chars().all(|flag| "itd".contains(flag)))
}

/// The options with what `docker run` gives where the line says nothing, in place of the defaults of a probe.
fn as_docker(mut options: ContainerArgs) -> ContainerArgs {
    let launch = &mut options.launch;
    launch.network.get_or_insert_with(|| "default".to_owned());
    launch.rdma.get_or_insert(false);
    launch.ulimit.get_or_insert_default();
    if launch.gpus.is_none() {
        launch.gpu_mode = Some(GpuWay::None);
    }
    options
}

/// The items of a line, without those that the command line replaces, and then those of the command line.
fn joined<T, K: PartialEq>(mut line: Vec<T>, own: Vec<T>, key: impl Fn(&T) -> K) -> Vec<T> {
    line.retain(|item| own.iter().all(|other| key(other) != key(item)));
    line.extend(own);
    line
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::plan;
    use super::*;

    fn container(line: &str, own: &[&str]) -> probe::arrangement::Arrangement {
        let environment: Environment = [("FROM_HERE".to_owned(), "7".to_owned())].into_iter().collect();
        let line = RunLine::read(line, &environment).unwrap();
        let image = line.image().unwrap();
        let own = LineArgs::try_parse_from(own).unwrap().container;
        plan::container(&image, &line.under(own)).unwrap()
    }

    #[test]
    fn a_line_sets_the_options_of_the_container() {
        let line = "docker run --rm -it --gpus '\"device=0,1\"' --net host -m 16g -v /a:/b:ro -e A=1 -e FROM_HERE -e NOT_SET \
            --cpus 1.5 --cpuset-cpus=0-1 --cpuset-mems 0 --security-opt seccomp=unconfined --tmpfs /x:size=1m -h node \
            --privileged --runtime runc --ulimit memlock=-1 --pids-limit -1 --ipc=host -u 1000 my/image:1 python3 train.py";
        let found = container(line, &[]);
        insta::assert_debug_snapshot!(found);
    }

    #[test]
    fn options_take_precedence_over_the_line() {
        let line = "docker run --gpus 1 --ipc host -e A=1 -e B=1 --ulimit memlock=1 -v /a:/b -v /c:/d --cpus 1 x";
        let own = ["--ipc=private", "--env=A=2", "--ulimit=memlock=2", "--volume=/e:/b", "--cpus=2"];
        let found = container(line, &own);
        assert_eq!(found.ipc.as_deref(), Some("private"));
        assert_eq!(found.env, [("B", "1"), ("A", "2")].map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(found.ulimits, Some(vec!["memlock=2".parse().unwrap()]));
        assert_eq!(found.volumes, ["/c:/d", "/e:/b"]);
        assert_eq!(found.cpus.map(|cpus| cpus.to_string()).as_deref(), Some("2"));
    }

    #[test]
    fn a_line_gives_what_docker_gives() {
        let bare = container("docker run x", &[]);
        assert_eq!((bare.gpu_way, &*bare.network, bare.rdma), (Some(GpuWay::None), "default", Some(false)));
        assert_eq!(bare.ulimits, Some(Vec::new()));
        assert_eq!(container("docker run x", &["--gpus=2"]).gpu_way, None);
    }

    #[test]
    fn what_a_probe_cannot_give_is_named() {
        let line = "docker run --rm -itd --name a --init --sysctl a=b -w /w -v $HOME:/h --entrypoint bash -e TOKEN=x --cpus 2 x";
        let file = launch::read("--like", line).unwrap();
        let (words, left_out) = translate(&file.containers[0], &Environment::default());
        assert_eq!(words, ["--entrypoint=none", "--env=TOKEN=x", "--cpus=2"]);
        assert_eq!(left_out, ["--init", "--sysctl", "-w", "--volume (a shell computes its value)", "--entrypoint"]);
    }

    #[test]
    fn mounts_are_volumes_or_temporary_file_systems() {
        for (value, expected) in [
            ("type=bind,source=/a,target=/b,readonly", Some("--volume=/a:/b:ro")),
            ("src=data,dst=/d", Some("--volume=data:/d")),
            ("type=tmpfs,destination=/x,tmpfs-size=1g,tmpfs-mode=1777", Some("--tmpfs=/x:size=1g,mode=1777")),
            ("type=tmpfs,dst=/x", Some("--tmpfs=/x")),
            ("type=bind,src=/a,dst=/b,bind-propagation=shared", None),
            ("type=image,src=a,dst=/b", None),
            ("dst=/b", None),
            ("type=bind,src=/a", None),
        ] {
            assert_eq!(mount(value).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn other_lines_are_refused() {
        for (line, why) in [
            ("python3 train.py", "expected one argument"),
            ("docker run", "expected one argument"),
            ("srun --container-image=x python3 a.py", "expected one argument"),
            ("if true; then docker run a; else docker run b; fi", "several containers"),
            ("docker run --gpus gpu=1 x", "use count="),
        ] {
            let error = RunLine::read(line, &Environment::default()).unwrap_err().to_string();
            assert!(error.starts_with("--like: ") && error.contains(why), "{line}: {error}");
        }
        let computed = RunLine::read("docker run $IMAGE", &Environment::default()).unwrap();
        assert!(computed.image().unwrap_err().to_string().contains("give IMAGE too"));
    }
}
