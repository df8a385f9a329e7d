//! The containers that a script of the host starts: `srun` with pyxis, Apptainer, and `docker run`.

use std::collections::BTreeMap;

use model::{ImagePath, is_among};
use shell::{FlatCommand, ParameterForm, Piece, Word};

use super::LaunchContainer;
use crate::start::is_idle;

/// A program that starts containers, and its options that take a value.
struct ContainerProgram {
    names: &'static str,
    valued: &'static str,
}

const PROGRAMS: &[ContainerProgram] = &[
    ContainerProgram {
        names: "srun",
        valued: "-N -n -c -p -J -t -A -w -x -o -e -i -D -G -q -m -C -d --nodes --ntasks --cpus-per-task --partition --job-name \
            --time --account --nodelist --output --error --input --chdir --gpus --gres --mpi --ntasks-per-node \
            --gpus-per-node --gpus-per-task --mem --qos --constraint --export --jobid --cpu-bind --gpu-bind --distribution \
            --exclude --container-image --container-mounts --container-workdir --container-name --container-save \
            --container-env --het-group",
    },
    ContainerProgram {
        names: "apptainer singularity",
        valued: "-B --bind --mount --env --env-file -H --home --pwd --cwd -W --workdir -S --scratch -o --overlay --app --dns \
            --fusemount --hostname --network --network-args --security -c-config --nvccli-path",
    },
    ContainerProgram {
        names: "docker podman nerdctl",
        valued: "-v --volume --mount -e --env --env-file -w --workdir -u --user -p --publish --name --gpus --device \
            --shm-size --ulimit --network --net --ipc --pid --entrypoint --cap-add --cap-drop --security-opt -h --hostname \
            --runtime -l --label -m --memory --cpus --cpuset-cpus --tmpfs --restart --log-driver --log-opt --add-host --dns \
            --platform --pull --userns --group-add --expose -a --attach --annotation --cidfile",
    },
];

/// The containers that a script starts, in its order.
pub(super) fn containers(text: &str) -> Vec<LaunchContainer> {
    let mut variables = BTreeMap::new();
    let mut found = Vec::new();
    let mut depth = 0_usize;
    let mut is_straight = true;
    for command in shell::commands(text, 1) {
        if let Some((comment, _)) = &command.comment
            && comment.starts_with("#SBATCH ")
            && comment.contains("--container-image")
        {
            let entrypoint = vec!["/bin/bash".to_owned(), "-c".to_owned(), text.to_owned()];
            return vec![LaunchContainer { has_gpu: true, ..started(entrypoint) }];
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
        let container = container(&words, &command);
        is_straight &= depth == 0 || container.is_none();
        found.extend(container);
    }
    if is_straight { last(found) } else { found }
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
            _ => whole += "${computed}",
        }
    }
    if is_split { whole.split_whitespace().map(ToOwned::to_owned).collect() } else { vec![whole] }
}

/// The container that a command starts. One program may start another: `srun apptainer exec …`.
fn container(words: &[String], command: &FlatCommand) -> Option<LaunchContainer> {
    let (index, program) = words.iter().enumerate().rev().find_map(|(index, word)| {
        let base = word.rsplit('/').next().unwrap_or_default();
        let program = PROGRAMS.iter().find(|program| is_among(base, program.names))?;
        let verb = words.get(index + 1).map(String::as_str);
        let is_start = match base {
            "srun" => words.iter().skip(index).any(|word| word.starts_with("--container-")),
            "apptainer" | "singularity" => matches!(verb, Some("exec" | "run")),
            _ => verb == Some("run"),
        };
        is_start.then_some((index, program))
    })?;
    let is_srun = program.names == "srun";
    let verb = if is_srun { None } else { words.get(index + 1) };
    let mut rest = words.get(index + 1 + usize::from(verb.is_some())..)?;
    let mut container = LaunchContainer { has_gpu: true, ..LaunchContainer::default() };
    let mut entrypoint = None;
    while let Some((option, after)) = rest.split_first()
        && option.starts_with('-')
    {
        rest = after;
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None if is_among(option, program.valued) => {
                let (value, after) = rest.split_first()?;
                rest = after;
                (option.as_str(), Some(value.clone()))
            }
            None => (option.as_str(), None),
        };
        match name {
            "--container-image" => container.image = value,
            "--container-workdir" | "--pwd" | "--cwd" => container.directory = value,
            "-w" | "--workdir" if program.names.starts_with("docker") => container.directory = value,
            "--entrypoint" => entrypoint = value.map(|program| vec![program]),
            _ => {}
        }
    }
    if !is_srun {
        let (image, after) = rest.split_first()?;
        container.image = Some(image.clone());
        rest = after;
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
