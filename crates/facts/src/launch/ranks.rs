//! How many processes a command starts on a node, and on how many nodes, as the options of launchers say.

use super::given::Said;

/// A launcher, with its options for the processes of a node, and for the number of nodes.
struct Launcher {
    /// Names of the program, or of the module that `python -m` runs.
    names: &'static [&'static str],
    processes: &'static [&'static str],
    nodes: &'static [&'static str],
    /// True if the processes are those of all nodes.
    is_total: bool,
}

const LAUNCHERS: &[Launcher] = &[
    Launcher {
        names: &["torchrun", "torch.distributed.run", "torch.distributed.launch"],
        processes: &["--nproc_per_node", "--nproc-per-node"],
        nodes: &["--nnodes"],
        is_total: false,
    },
    Launcher {
        names: &["accelerate"],
        processes: &["--num_processes", "--num-processes"],
        nodes: &["--num_machines", "--num-machines"],
        is_total: true,
    },
    Launcher {
        names: &["deepspeed"],
        processes: &["--num_gpus", "--num-gpus"],
        nodes: &["--num_nodes", "--num-nodes"],
        is_total: false,
    },
];

/// What the options of a launcher say.
#[derive(Debug, Default)]
pub(super) struct Ranks {
    /// The processes on each node.
    pub(super) processes: Option<Said<i64>>,
    /// The nodes.
    pub(super) nodes: Option<Said<i64>>,
}

/// What the launcher in a command says, whose first line is `line`; `None` without a launcher.
pub(super) fn of_command(words: &[String], line: usize) -> Option<Ranks> {
    let has_script = words.iter().any(|word| word.contains(char::is_whitespace));
    let words: Vec<(String, usize)> = if has_script {
        let inner = words.iter().flat_map(|word| shell::commands(word, line));
        let words = inner.flat_map(|command| command.words);
        words.map(|word| (word.plain().unwrap_or_else(|| "$".to_owned()), word.line)).collect()
    } else {
        words.iter().map(|word| (word.clone(), line)).collect()
    };
    let start = words.iter().enumerate().find_map(|(index, (word, _))| {
        let name = word.rsplit('/').next().unwrap_or_default();
        Some((index, LAUNCHERS.iter().find(|launcher| launcher.names.contains(&name))?))
    });
    let (index, launcher) = start?;
    let options = words.get(index..).unwrap_or_default();
    let nodes = option(options, launcher.nodes);
    let processes = option(options, launcher.processes);
    if !launcher.is_total {
        return Some(Ranks { processes, nodes });
    }
    let on_each = |total: Said<i64>| {
        let nodes = nodes.as_ref().map_or(Some(1), |nodes| nodes.value);
        Said { value: total.value.zip(nodes).and_then(|(total, nodes)| total.checked_div(nodes)), ..total }
    };
    Some(Ranks { processes: processes.map(on_each), nodes })
}

/// The value of the first of these options: `--option N` or `--option=N`.
fn option(words: &[(String, usize)], names: &[&str]) -> Option<Said<i64>> {
    let mut words = words.iter();
    while let Some((word, line)) = words.next() {
        let (name, value) = word.split_once('=').map_or((&**word, None), |(name, value)| (name, Some(value)));
        if names.contains(&name) {
            let value = value.or_else(|| words.next().map(|(next, _)| &**next))?;
            // torchrun counts the GPUs itself if it is given a word.
            let is_word = matches!(value, "gpu" | "auto" | "cpu");
            return (!is_word).then(|| Said { value: value.parse().ok(), line: *line });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_say_how_many_processes_they_start() {
        let number = |said: Option<Said<i64>>| said.map(|said| said.value);
        for (words, processes, nodes) in [
            ("torchrun|--nproc_per_node=8|--nnodes|2|a.py|--nnodes=9", Some(Some(8)), Some(Some(2))),
            ("python3|-m|torch.distributed.run|--nproc-per-node|gpu|a.py", None, None),
            ("bash|-c|cd /w && /v/bin/torchrun --nproc_per_node $N --nnodes 1:4 a.py", Some(None), Some(None)),
            ("accelerate|launch|--num_processes=16|--num_machines|2|a.py", Some(Some(8)), Some(Some(2))),
            ("deepspeed|--num_gpus|4|a.py", Some(Some(4)), None),
            ("python3|a.py|--nnodes=2", None, None),
        ] {
            let words: Vec<String> = words.split('|').map(ToOwned::to_owned).collect();
            let ranks = of_command(&words, 1).unwrap_or_default();
            assert_eq!((number(ranks.processes), number(ranks.nodes)), (processes, nodes), "{words:?}");
        }
    }
}
