//! How the program is started on the nodes.

use std::process::Command;

use model::shell_word;
use probe::{ProbePlan, payload};

use super::{ClusterError, slurm};

/// The nodes, and the command that reaches them.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Names of the nodes, each once.
    pub nodes: Vec<String>,
    /// How they are reached.
    pub way: LaunchWay,
    /// Python interpreter in the image.
    pub python: String,
}

/// The command that reaches nodes.
#[derive(Clone, Debug)]
pub enum LaunchWay {
    /// One step of a Slurm allocation, with one task on each node.
    Step {
        /// Value of srun's option `--container-image`.
        image: Option<String>,
        /// Command of a shell that starts the words behind it on a node, such as `apptainer exec --nv IMAGE`.
        inside: Option<String>,
    },
    /// One command of a shell for each node, such as `kubectl exec -i {node} --`.
    Each(String),
}

/// What stands for the name of a node in a command.
pub(super) const NODE: &str = "{node}";

/// Programs that pass their words on as one text, which a shell on the node splits again.
const FAR_SHELLS: &[&str] = &["ssh", "rsh"];

/// The names in a comma-separated list.
///
/// # Errors
/// A name is missing, repeated, or not one of a node.
pub fn node_names(list: &str) -> Result<Vec<String>, ClusterError> {
    let mut names: Vec<String> = Vec::new();
    for name in list.split(',').map(str::trim) {
        let is_safe = |letter: char| letter.is_ascii_alphanumeric() || "._-:@/".contains(letter);
        // It becomes a word of a command.
        if name.is_empty() || name.starts_with('-') || !name.chars().all(is_safe) {
            return Err(ClusterError::Nodes(format!("'{name}' is not the name of a node")));
        }
        if names.iter().any(|other| other == name) {
            return Err(ClusterError::Nodes(format!("the node {name} is named twice")));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

impl Launch {
    /// The commands for these nodes, each with the nodes that it reaches: one in a Slurm allocation, otherwise one a node.
    pub(super) fn commands(&self, nodes: &[usize], program: &str, plan: &ProbePlan) -> Vec<(Vec<usize>, Command)> {
        let mut words = vec![self.python.clone(), "-u".to_owned()];
        words.extend(payload::start(program, &plan.json()));
        let names = || nodes.iter().filter_map(|node| self.nodes.get(*node).map(String::as_str));
        match &self.way {
            LaunchWay::Step { image, inside } => {
                let names: Vec<_> = names().collect();
                let mut arguments = slurm::arguments(&names, image.as_deref());
                arguments.extend(inside.iter().flat_map(|inside| shell(inside)));
                arguments.extend(words);
                let mut command = command("srun", &arguments);
                for name in slurm::REQUESTS {
                    command.env_remove(name);
                }
                vec![(nodes.to_vec(), command)]
            }
            LaunchWay::Each(text) => {
                let words: Vec<_> =
                    if reaches_a_shell(text) { words.iter().map(|word| shell_word(word)).collect() } else { words };
                let of_node = |(node, name): (&usize, &str)| {
                    let [first, rest @ ..] = shell(&text.replace(NODE, name));
                    (vec![*node], command(&first, &[&rest[..], &words[..]].concat()))
                };
                nodes.iter().zip(names()).map(of_node).collect()
            }
        }
    }
}

/// Words that make a shell start the words behind them by a command.
fn shell(text: &str) -> [String; 4] {
    ["sh", "-c", &format!("{text} \"$@\""), "ncclcheck"].map(ToOwned::to_owned)
}

/// Returns true if the words behind this command pass through a shell on the node.
fn reaches_a_shell(text: &str) -> bool {
    let before = text.split(NODE).next().unwrap_or_default();
    before.split_whitespace().any(|word| word.rsplit('/').next().is_some_and(|name| FAR_SHELLS.contains(&name)))
}

fn command(program: &str, arguments: &[String]) -> Command {
    #[expect(clippy::disallowed_methods, reason = "the user names the command that reaches the nodes")]
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(way: LaunchWay) -> Vec<Vec<String>> {
        let nodes = vec!["a".to_owned(), "b".to_owned()];
        let launch = Launch { nodes, way, python: "python3".to_owned() };
        let commands = launch.commands(&[0, 1], "x", &ProbePlan::default());
        let words = |(_, command): &(Vec<usize>, Command)| {
            let arguments = command.get_args().map(|word| word.to_string_lossy().into_owned());
            std::iter::once(command.get_program().to_string_lossy().into_owned()).chain(arguments).collect()
        };
        commands.iter().map(words).collect()
    }

    #[test]
    fn names_of_nodes_are_words_of_a_command() {
        assert_eq!(node_names("a1,user@b.example:22, pod/c").unwrap(), ["a1", "user@b.example:22", "pod/c"]);
        for (list, why) in [("a,,b", "''"), ("-a", "'-a'"), ("a;b", "'a;b'"), ("a,a", "named twice")] {
            assert!(node_names(list).unwrap_err().to_string().contains(why), "{list}");
        }
    }

    #[test]
    fn a_shell_on_the_node_gets_quoted_words() {
        let raw = words(LaunchWay::Each("kubectl exec -i {node} --".to_owned()));
        assert_eq!(raw.len(), 2);
        assert_eq!(raw[1][..4], ["sh", "-c", "kubectl exec -i b -- \"$@\"", "ncclcheck"]);
        assert_eq!(raw[1][4..7], ["python3", "-u", "-c"]);
        assert!(raw[1][7].starts_with("import sys; "));
        for (text, is_quoted) in [
            ("ssh {node} docker run -i train", true),
            ("/usr/bin/ssh -p 22 {node}", true),
            ("env {node} ssh", false),
            ("./ssh-like {node}", false),
        ] {
            assert_eq!(words(LaunchWay::Each(text.to_owned()))[0][7].starts_with('\''), is_quoted, "{text}");
        }
    }

    #[test]
    fn a_step_of_slurm_has_a_task_on_each_node() {
        let step = words(LaunchWay::Step { image: Some("train".to_owned()), inside: Some("ch-run /x --".to_owned()) });
        let [step] = &*step else { panic!("{step:?}") };
        for word in ["srun", "--nodelist=a,b", "--ntasks=2", "--container-image=train", "ch-run /x -- \"$@\""] {
            assert!(step.iter().any(|other| other == word), "{word}: {step:?}");
        }
        let way = LaunchWay::Step { image: None, inside: None };
        let launch = Launch { nodes: vec!["a".to_owned()], way, python: "python3".to_owned() };
        let commands = launch.commands(&[0], "x", &ProbePlan::default());
        let removed = |name: &str| commands[0].1.get_envs().any(|(other, value)| other == name && value.is_none());
        assert!(removed("SLURM_GPUS_PER_TASK") && removed("SRUN_CPUS_PER_TASK"), "{commands:?}");
    }
}
