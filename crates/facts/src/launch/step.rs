//! The containers that a script of the host starts: `srun` with pyxis, Apptainer, and `docker run`.

use std::collections::BTreeMap;

use model::{ImagePath, StartUser, is_among};
use shell::{FlatCommand, ParameterForm, Piece, Word};

use super::LaunchContainer;
use super::details::Detail;
use super::given::{Given, Said, SharedMemory, Starter, Unread, bytes, cpus, is_computed};
use super::shell::{NESTING, REMOTE, SHELLS, reads_script};
use crate::start::is_idle;

/// A program that starts containers, and its options that take a value.
struct ContainerProgram {
    names: &'static str,
    valued: &'static str,
}

/// Engines with the command line of Docker.
const ENGINES: &str = "docker podman nerdctl";

const PROGRAMS: &[ContainerProgram] = &[
    ContainerProgram {
        names: "srun",
        valued: "-N -n -c -p -J -t -A -w -x -o -e -i -D -G -q -m -C -d --nodes --ntasks --cpus-per-task --partition --job-name \
            --time --account --nodelist --output --error --input --chdir --gpus --gres --mpi --ntasks-per-node \
            --gpus-per-node --gpus-per-task --mem --qos --constraint --export --jobid --cpu-bind --mem-bind --gpu-bind --distribution \
            --exclude --container-image --container-mounts --container-workdir --container-name --container-save \
            --container-env --het-group",
    },
    ContainerProgram {
        names: "apptainer singularity",
        valued: "-B --bind --mount --env --env-file -H --home --pwd --cwd -W --workdir -S --scratch -o --overlay --app --dns \
            --fusemount --hostname --network --network-args --security -c-config --nvccli-path",
    },
    ContainerProgram {
        names: "ch-run",
        valued: "-b --bind -c --cd -g --gid -m --mount -s --storage --unset-env -u --uid",
    },
    ContainerProgram {
        names: ENGINES,
        // docker/cli, `cli/command/container/opts.go` and `run.go`, and options that only Podman has.
        valued: "-v --volume --mount -e --env --env-file -w --workdir -u --user -p --publish --name --gpus --device \
            --shm-size --ulimit --network --net --ipc --pid --entrypoint --cap-add --cap-drop --security-opt -h --hostname \
            --runtime -l --label -m --memory --cpus --cpuset-cpus --cpuset-mems --tmpfs --restart --log-driver --log-opt --add-host --dns \
            --platform --pull --userns --group-add --expose -a --attach --annotation --cidfile --pids-limit --memory-swap \
            --memory-reservation --memory-swappiness --kernel-memory --oom-score-adj -c --cpu-shares --cpu-period --cpu-quota \
            --cpu-rt-period --cpu-rt-runtime --blkio-weight --blkio-weight-device --device-cgroup-rule --device-read-bps \
            --device-read-iops --device-write-bps --device-write-iops --cgroup-parent --cgroupns --uts --domainname --dns-opt \
            --dns-option --dns-search --ip --ip6 --link --link-local-ip --mac-address --network-alias --net-alias --label-file \
            --storage-opt --volume-driver --volumes-from --stop-signal --stop-timeout --sysctl --isolation --detach-keys \
            --health-cmd --health-interval --health-retries --health-start-period --health-start-interval --health-timeout \
            --authfile --gidmap --pod --secret --systemd --tz --uidmap --umask --unsetenv",
    },
];

/// Size of /dev/shm that Podman gives a container: 65536k, of 1000 bytes each.
const PODMAN_SHM: i64 = 65_536_000;

/// The containers that a script starts, in its order.
pub(super) fn containers(text: &str) -> Vec<LaunchContainer> {
    containers_of(text, 1, 0)
}

/// The same of a script that begins at `line`, inside `nesting` others.
fn containers_of(text: &str, line: usize, nesting: usize) -> Vec<LaunchContainer> {
    let mut variables = BTreeMap::new();
    let mut found: Vec<LaunchContainer> = Vec::new();
    let mut depth = 0_usize;
    let mut is_straight = true;
    let mut batch = Given { starter: Starter::Scheduler, has_gpu: true, ..Given::default() };
    for command in shell::commands(text, line) {
        if let Some((comment, line)) = &command.comment
            && let Some(options) = comment.strip_prefix("#SBATCH ")
        {
            directive(options, *line, &mut batch);
            if options.contains("--container-image") {
                let entrypoint = vec!["/bin/bash".to_owned(), "-c".to_owned(), text.to_owned()];
                return vec![LaunchContainer {
                    name: "sbatch".to_owned(),
                    line: 1,
                    given: batch,
                    ..started(entrypoint)
                }];
            }
        }
        let mut words = command.words.as_slice();
        if matches!(words.first().and_then(Word::plain).as_deref(), Some("export" | "declare" | "local" | "readonly")) {
            words = words.get(1..).unwrap_or_default();
        }
        for (name, value) in words.iter().map_while(Word::assignment) {
            variables.insert(name.to_owned(), expanded(&value, &variables).join(" "));
        }
        let words: Vec<String> = words.iter().flat_map(|word| expanded(word, &variables)).collect();
        match words.first().map(String::as_str) {
            Some("if" | "case" | "for" | "while" | "until" | "select") => depth += 1,
            Some("fi" | "esac" | "done") => depth = depth.saturating_sub(1),
            _ => {}
        }
        if words.iter().any(|word| restricts_devices(word)) {
            batch.restricts_devices = true;
        }
        let started = match container(&words, &command, &batch) {
            Some(container) => vec![container],
            None if nesting < NESTING => {
                let scripts = inner_scripts(&words, &command).into_iter();
                scripts.flat_map(|(text, line)| containers_of(&text, line, nesting + 1)).collect()
            }
            None => Vec::new(),
        };
        if hides_variables(&words) {
            for container in &mut found {
                container.given.hides_variables = true;
            }
        }
        is_straight &= depth == 0 || started.is_empty();
        found.extend(started);
    }
    if is_straight { last(found) } else { found }
}

/// The scripts that a command runs by a shell, here or on another node, and their lines: `ssh NODE "docker run …"`.
fn inner_scripts(words: &[String], command: &FlatCommand) -> Vec<(String, usize)> {
    let is_shell = |word: &String| {
        let name = word.rsplit('/').next().unwrap_or_default();
        is_among(name, SHELLS) || is_among(name, REMOTE)
    };
    let Some(place) = words.iter().position(is_shell) else { return Vec::new() };
    let line = command.words.first().map_or(1, |word| word.line);
    let scripts = words.iter().skip(place + 1).filter(|word| word.contains(char::is_whitespace));
    let input = command.input.clone().filter(|_| reads_script(&words.iter().map(String::as_str).collect::<Vec<_>>()));
    scripts.map(|script| (script.clone(), line)).chain(input).collect()
}

/// True for the setting by which Enroot gives a container only the device nodes that it mounts.
fn restricts_devices(word: &str) -> bool {
    let value = word.strip_prefix("ENROOT_RESTRICT_DEV=").map(str::to_ascii_lowercase);
    value.is_some_and(|value| matches!(&*value, "y" | "yes" | "true" | "1" | "on"))
}

/// Reads the options of a line `#SBATCH`, which all steps of the job have.
fn directive(options: &str, line: usize, batch: &mut Given) {
    let words = shell::commands(options, line).flat_map(|command| command.words);
    let words: Vec<String> = words.filter_map(|word| word.plain()).collect();
    for (index, word) in words.iter().enumerate() {
        let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        let value = value.or_else(|| words.get(index + 1).map(String::as_str));
        given_by_scheduler(name, value.unwrap_or_default(), line, batch);
    }
}

/// Of steps in one image, the last one that does anything: a script runs them one after another.
fn last(mut steps: Vec<LaunchContainer>) -> Vec<LaunchContainer> {
    let image = steps.first().and_then(|step| step.image.clone());
    if steps.iter().all(|step| step.image == image) {
        let is_idle = |step: &LaunchContainer| {
            let program = step.entrypoint.as_ref().and_then(|words| words.first());
            program.is_some_and(|program| is_idle(&ImagePath::from(program.as_str())))
        };
        let index = steps.iter().rposition(|step| !is_idle(step)).unwrap_or_default();
        steps = steps.into_iter().skip(index).take(1).collect();
    }
    steps
}

fn started(entrypoint: Vec<String>) -> LaunchContainer {
    LaunchContainer { entrypoint: Some(entrypoint), arguments: Some(Vec::new()), ..LaunchContainer::default() }
}

/// A word with the variables that the script sets; `${NAME}` stands for any other.
fn expanded(word: &Word, variables: &BTreeMap<String, String>) -> Vec<String> {
    let mut whole = String::new();
    let mut is_split = false;
    for piece in &word.pieces {
        match piece {
            Piece::Text { text, .. } => whole += text,
            Piece::Parameter { parameter, is_quoted } if parameter.form == ParameterForm::Plain => {
                match variables.get(&parameter.name).filter(|_| parameter.index.is_none()) {
                    Some(value) => {
                        is_split |= !is_quoted;
                        whole += value;
                    }
                    None => whole = whole + "${" + &parameter.name + "}",
                }
            }
            // `${NAME:-WORD}`: a default without a dash shows that the variable holds a value, not options.
            Piece::Parameter { parameter, .. } => {
                let is_value = matches!(&parameter.form, ParameterForm::Conditional { sign: '-' | '=', word, .. }
                    if word.plain().is_some_and(|word| !word.is_empty() && !word.starts_with('-')));
                whole += if is_value { "${default}" } else { "${computed}" };
            }
            _ => whole += "${computed}",
        }
    }
    if is_split { whole.split_whitespace().map(ToOwned::to_owned).collect() } else { vec![whole] }
}

/// The container that a command starts. One program may start another: `srun apptainer exec …`.
fn container(words: &[String], command: &FlatCommand, batch: &Given) -> Option<LaunchContainer> {
    let (index, program) = words.iter().enumerate().rev().find_map(|(index, word)| {
        let base = word.rsplit('/').next().unwrap_or_default();
        let program = PROGRAMS.iter().find(|program| is_among(base, program.names))?;
        let verb = words.get(index + 1).map(String::as_str);
        let is_start = match base {
            "srun" => words.iter().skip(index).any(|word| word.starts_with("--container-")),
            "apptainer" | "singularity" => matches!(verb, Some("exec" | "run")),
            "ch-run" => true,
            _ => verb == Some("run"),
        };
        is_start.then_some((index, program))
    })?;
    let is_srun = program.names == "srun";
    let has_verb = !is_srun && program.names != "ch-run";
    let is_engine = program.names.starts_with("docker");
    let verb = words.get(index + 1).filter(|_| has_verb);
    let mut rest = words.get(index + 1 + usize::from(verb.is_some())..)?;
    let line = command.words.first().map_or(1, |word| word.line);
    let name = words.get(index)?.rsplit('/').next()?.to_owned();
    let shm = (name == "podman").then_some(SharedMemory::Bytes(Said { value: Some(PODMAN_SHM), line }));
    let given = if is_engine { Given { shm, ..Given::default() } } else { batch.clone() };
    let mut container = LaunchContainer { name, line, given, ..LaunchContainer::default() };
    let mut entrypoint = None;
    while let Some((option, after)) = rest.split_first()
        && (option.starts_with('-') || is_options(option, after))
    {
        rest = after;
        if !option.starts_with('-') {
            let what = "a variable holds options, and is computed when the job starts";
            container.given.unread = Some(Said::new(Unread::elsewhere(what), line));
            continue;
        }
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None if is_among(option, program.valued) => {
                let (value, after) = rest.split_first()?;
                rest = after;
                (option.as_str(), Some(value.clone()))
            }
            None => (option.as_str(), None),
        };
        let text = value.as_deref().unwrap_or("true");
        if is_engine {
            container.options.push((name.to_owned(), value.clone()));
            given_by_engine(name, text, line, &mut container.given);
        } else {
            given_by_scheduler(name, text, line, &mut container.given);
        }
        match name {
            "--container-image" => container.image = value,
            "--container-workdir" | "--pwd" | "--cwd" | "--cd" => container.directory = value,
            "-w" | "--workdir" if is_engine => container.directory = value,
            "-u" | "--user" | "--group-add" if is_engine => user(name, text, line, &mut container.user),
            "--name" if is_engine => text.clone_into(&mut container.name),
            "--entrypoint" => entrypoint = value.map(|program| vec![program]),
            _ => {}
        }
    }
    if !is_srun {
        let (image, after) = rest.split_first()?;
        container.image = Some(image.clone());
        rest = after;
    }
    let rest = if has_verb { rest } else { rest.strip_prefix(&["--".to_owned()]).unwrap_or(rest) };
    for nodes in numa_nodes(rest) {
        container.given.details.add(Detail::NumaNodes, nodes, line);
    }
    let mut command_words = rest.to_vec();
    if let ([only], Some((script, _))) = (command_words.as_slice(), &command.input)
        && is_among(only.rsplit('/').next().unwrap_or_default(), "sh bash")
    {
        command_words.extend(["-c".to_owned(), script.clone()]);
    }
    let keeps_entrypoint = verb.is_some_and(|verb| verb == "run");
    if keeps_entrypoint {
        container.arguments = (entrypoint.is_some() || !command_words.is_empty()).then_some(command_words);
        container.entrypoint = entrypoint;
        return Some(container);
    }
    (!command_words.is_empty()).then(|| LaunchContainer {
        entrypoint: Some(command_words),
        arguments: Some(Vec::new()),
        ..container
    })
}

/// The NUMA nodes to which numactl binds a program: options between its name and that of the program.
fn numa_nodes(words: &[String]) -> Vec<&str> {
    let begin = words.iter().position(|word| word.rsplit('/').next() == Some("numactl"));
    let mut words = words.iter().skip(begin.map_or(words.len(), |begin| begin + 1)).map(String::as_str);
    let mut found = Vec::new();
    while let Some(option) = words.next().filter(|word| word.starts_with('-')) {
        let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let names = "-N --cpunodebind -m --membind -i --interleave -p --preferred -w --weighted-interleave";
        if is_among(name, names) {
            found.extend(value.or_else(|| words.next()));
        } else if is_among(name, "-C --physcpubind") && value.is_none() {
            words.next();
        }
    }
    // `all`, `!0` and `+0` name no node of the host by its number.
    found.retain(|nodes| nodes.starts_with(|c: char| c.is_ascii_digit()));
    found
}

/// Parts of names of variables that hold options. An array stands as `computed`.
const OPTIONS: &[&str] = &["arg", "opt", "flag", "extra", "mount", "vol", "env", "device", "gpu", "computed"];

/// True for a word that a variable computes, and that holds options: its name says so, and the image follows.
fn is_options(word: &str, after: &[String]) -> bool {
    let name = word.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).filter(|_| !after.is_empty());
    let name = name.map(str::to_ascii_lowercase);
    name.is_some_and(|name| !name.contains(['$', '/', ':']) && OPTIONS.iter().any(|part| name.contains(part)))
}

/// True for `docker exec` with a variable that holds options.
fn hides_variables(words: &[String]) -> bool {
    let is_engine = |word: &str| is_among(word.rsplit('/').next().unwrap_or_default(), ENGINES);
    let is_exec = |pair: &[String]| matches!(pair, [engine, verb] if verb == "exec" && is_engine(engine));
    let Some(place) = words.windows(2).position(is_exec) else { return false };
    let options = words.get(place + 2..).unwrap_or_default();
    options.iter().enumerate().any(|(index, word)| is_options(word, options.get(index + 1..).unwrap_or_default()))
}

/// Reads an option of `docker run` about the user.
fn user(name: &str, value: &str, line: usize, user: &mut Option<Said<StartUser>>) {
    let said = user.get_or_insert_with(|| Said::new(StartUser::default(), line));
    match &mut said.value {
        known if is_computed(value) => *known = None,
        Some(known) if name == "--group-add" => known.more.push(value.to_owned()),
        Some(known) => known.name = Some(value.to_owned()),
        None => {}
    }
}

/// Reads an option of `docker run`.
fn given_by_engine(name: &str, value: &str, line: usize, given: &mut Given) {
    match name {
        "--gpus" => {
            given.has_gpu = true;
            given.gpus = gpus(value).map(|count| Said { value: count, line });
        }
        "--runtime" => {
            given.has_gpu |= value == "nvidia";
            given.details.add(Detail::Runtime, value, line);
        }
        "--shm-size" => given.shm_size(value, line),
        "--ipc" => given.ipc(value, line),
        "--network" | "--net" => {
            let network = (!is_computed(value)).then(|| value.to_owned());
            given.network = Some(Said { value: network, line });
        }
        "--device" => given.device(value, line),
        "--privileged" => given.is_privileged = value != "false",
        "--cap-add" => given.capability(value, line),
        "--cpus" => given.cpus = Some(Said { value: cpus(value), line }),
        "--security-opt" => given.details.add(Detail::Security, value, line),
        "--hostname" | "-h" => given.details.add(Detail::HostName, value, line),
        "--workdir" | "-w" => given.details.add(Detail::Directory, value, line),
        "--cpuset-cpus" => given.details.add(Detail::CpuSet, value, line),
        "--cpuset-mems" => given.details.add(Detail::NumaNodes, value, line),
        "--ulimit" => given.locks_memory |= value.strip_prefix("memlock=").is_some_and(|limit| limit.starts_with("-1")),
        "-m" | "--memory" => given.memory = Some(Said { value: bytes(value, Starter::Docker), line }),
        "-v" | "--volume" => {
            if let Some((source, rest)) = value.split_once(':') {
                given.mount(source, rest.split(':').next().unwrap_or(rest), line);
            }
        }
        "--tmpfs" => given.tmpfs(value, line),
        "--mount" => {
            let part = |keys: &str| {
                let mut parts = value.split(',').filter_map(|part| part.split_once('='));
                parts.find_map(|(key, value)| is_among(key, keys).then_some(value))
            };
            if let Some(target) = part("target dst destination") {
                given.mount(part("source src").unwrap_or_default(), target, line);
            }
        }
        _ => {}
    }
}

/// Reads an option of srun, sbatch or Apptainer.
fn given_by_scheduler(name: &str, value: &str, line: usize, given: &mut Given) {
    let number = || Some(Said { value: value.parse().ok(), line });
    match name {
        "-N" | "--nodes" => given.nodes = number(),
        "--ntasks-per-node" => given.tasks = number(),
        "--gpus-per-node" | "--gres" => {
            let count = value.rsplit(':').next().and_then(|count| count.parse().ok());
            given.gpus = Some(Said { value: count, line });
        }
        "--cpu-bind" | "--mem-bind" => {
            // `map_ldom:0,1` and `map_mem:0,1`, one node for each task; masks and CPUs have other forms.
            if let Some((_, nodes)) = value.split_once("map_ldom:").or_else(|| value.split_once("map_mem:")) {
                given.details.add(Detail::NumaNodes, nodes, line);
            }
        }
        "--container-workdir" | "--pwd" | "--cwd" | "--cd" => given.details.add(Detail::Directory, value, line),
        "--container-mounts" | "-B" | "-b" | "--bind" => {
            for mount in value.split(',') {
                let (source, rest) = mount.split_once(':').unwrap_or((mount, mount));
                given.mount(source, rest.split(':').next().unwrap_or(rest), line);
            }
        }
        _ => {}
    }
}

/// The GPUs of `--gpus`: `Some(None)` for a number that is computed, and `None` for all.
#[expect(clippy::option_option, reason = "`all` is not a number, and a computed number is unknown")]
fn gpus(value: &str) -> Option<Option<i64>> {
    let value = value.trim_matches(['"', '\'']);
    if value.split(',').next() == Some("all") {
        return None;
    }
    match value.strip_prefix("device=") {
        Some(devices) => Some(i64::try_from(devices.split(',').count()).ok()),
        None => Some(value.trim_start_matches("count=").parse().ok()),
    }
}
