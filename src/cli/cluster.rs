//! `ncclcheck cluster`.

use std::fmt::Display;
use std::path::Path;

use cluster::{
    ClusterRun, Fate, Launch, LaunchWay, Network, NodeRun, RunLimits, Stopper, host_names, leaves, node_names,
    topology_of_slurm,
};
use image::source::read_bounded;
use judge::rules::Rule;
use model::{Environment, cause, open_named, printable};
use probe::ProbePlan;
use probe::recording::Recording;
use probe::wire::between_nodes::BETWEEN_NODES;

use super::args::cluster::ClusterArgs;
use super::interrupt::on_interrupt;
use super::output::{CLUSTER_FORMATS, Outputs};
use super::output_file::OutputFile;
use super::progress::Terminal;
use super::verbosity::Verbosity;
use super::{CliError, ExitStatus};
use crate::check::Check;
use crate::nodes;

/// Most bytes of a record: 2 MB a node, and a thousand nodes.
const LARGEST: u64 = 4 << 30;

/// What stands for a node in `--launch`.
const NODE: &str = "{node}";

/// Probes all nodes of a job, or reads the record of such a run, and names the nodes that differ.
pub(super) fn cluster(asked: &ClusterArgs, environment: &Environment) -> Result<ExitStatus, CliError> {
    let rulebook = asked.rulebook.open(environment)?.only(Rule::is_of_probe);
    let targets = super::plan::outputs(&asked.output.format, &super::plan::named(CLUSTER_FORMATS))?;
    let outputs = Outputs::open(&targets)?;
    let exclude = asked.exclude.as_deref().map(OutputFile::create).transpose()?;
    let mut run = match &*asked.from {
        [] => run(asked, environment)?,
        [record] => wrong(record, ClusterRun::read(&text(record, "--from")?))?,
        recordings => ClusterRun {
            nodes: recordings.iter().map(|file| recorded(file)).collect::<Result<_, _>>()?,
            ..ClusterRun::default()
        },
    };
    run.network.expected = asked.expect.or(run.network.expected);
    let fail_on = rulebook.fail_on(asked.fail_on.fail_on);
    let check = Check::new(&rulebook).fail_on(asked.fail_on.fail_on);
    let report = nodes::judge(&run, &check, fail_on);
    let style = super::plan::style(&asked.output.look, environment);
    if let Some(mut file) = exclude {
        file.write(|out| writeln!(out, "{}", report.excluded()))?;
        file.keep()?;
    }
    outputs.cluster(&report, &style)?;
    Ok(asked.incomplete.status(report.outcome()))
}

/// Runs the probe on the nodes, with progress on standard error.
fn run(asked: &ClusterArgs, environment: &Environment) -> Result<ClusterRun, CliError> {
    let terminal = Terminal::new(Verbosity::of(&asked.output, environment));
    let launch = launch(asked, environment)?;
    let mut plan = ProbePlan::new(&asked.only).map_err(|why| CliError::Usage(format!("--steps: {why}")))?;
    if asked.only.is_empty() && !asked.quick {
        plan = plan.and(BETWEEN_NODES);
        plan.deadlines.insert(BETWEEN_NODES.to_owned(), asked.budget.as_secs());
    }
    let network = Network { expected: asked.expect, ..network(asked, &launch.nodes)? };
    // It is the nodes that are compared, not the sizes.
    plan.collectives.quick = true;
    let file = asked.record.as_deref().map(OutputFile::create).transpose()?;
    let limits = RunLimits { budget: asked.budget, ..RunLimits::default() };
    let stopper = Stopper::default();
    let ended = stopper.clone();
    on_interrupt(move || ended.end());
    let mut note = |text: &str| {
        if terminal.verbosity() != Verbosity::Quiet {
            terminal.say(&printable(text));
        }
    };
    let run = cluster::run(&launch, plan, network, &limits, &stopper, &mut note)?;
    if let Some(mut file) = file {
        file.write(|out| run.write(out))?;
        file.keep()?;
    }
    Ok(run)
}

/// The leaves of the nodes, if they are given.
fn network(asked: &ClusterArgs, nodes: &[String]) -> Result<Network, CliError> {
    let Some(file) = &asked.topology else { return Ok(Network::default()) };
    let failed = |why: String| CliError::Usage(format!("--topology {}: {why}", file.display()));
    let text = match file.to_str() {
        Some("slurm") => topology_of_slurm()?,
        _ => String::from_utf8_lossy(&text(file, "--topology")?).into_owned(),
    };
    leaves(&text, nodes).map_err(failed)
}

/// How the nodes are reached.
fn launch(asked: &ClusterArgs, environment: &Environment) -> Result<Launch, CliError> {
    let python = asked.python.clone();
    let reaches = asked.launch.as_deref().is_some_and(|command| command.contains(NODE));
    let nodes = match (&asked.nodes, environment.get("SLURM_JOB_NODELIST")) {
        (Some(list), _) if reaches => node_names(list).map_err(|error| CliError::Usage(format!("--nodes: {error}")))?,
        (Some(_), _) => {
            let why = "does not reach a node: write {node} where the command names it";
            return Err(CliError::Usage(format!("--launch {}: {why}", asked.launch.as_deref().unwrap_or_default())));
        }
        (None, Some(list)) => host_names(list)?,
        (None, None) => {
            let why = "no nodes: this shell is not in an allocation of Slurm\n  help: name them, and the command that reaches them: --nodes a,b \
                       --launch 'ssh {node} docker run --rm -i IMAGE'";
            return Err(CliError::Usage(why.to_owned()));
        }
    };
    let way = match &asked.launch {
        Some(command) if reaches => LaunchWay::Each(command.clone()),
        inside => LaunchWay::Step { image: asked.image.clone(), inside: inside.clone() },
    };
    Ok(Launch { nodes, way, python })
}

/// Reads the recording of one node.
fn recorded(file: &Path) -> Result<NodeRun, CliError> {
    let text = text(file, "--from")?;
    let recording = wrong(file, Recording::replay(&text))?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(NodeRun { name, text, fate: recording.broken.map_or(Fate::Ended, Fate::Failed) })
}

/// The content of the file or of the standard input that an option names.
fn text(file: &Path, option: &str) -> Result<Vec<u8>, CliError> {
    let name = file.display().to_string();
    let read = if name == "-" {
        read_bounded(std::io::stdin().lock(), LARGEST, &name)
    } else {
        let opened =
            open_named(file).map_err(|error| CliError::Usage(format!("{option} {name}: {}", cause(&error))))?;
        read_bounded(opened, LARGEST, &name)
    };
    read.map_err(|error| CliError::Usage(format!("{option} {error}")))
}

/// Adds the file to an error.
fn wrong<T, E: Display>(file: &Path, result: Result<T, E>) -> Result<T, CliError> {
    result.map_err(|why| CliError::Usage(format!("--from {}: {why}", file.display())))
}
