//! Programs that start another program with the same variables, apart from those that they set by an option.

use model::is_among;
use shell::{Field, ShellKind, ShellState};

use super::super::arguments::OptionTable::{self, Valued};
use super::super::arguments::{Words, known};
use super::{Outcome, Runner, Start};

/// A program that starts the command behind its own options.
pub(super) struct Wrapper {
    pub(super) names: &'static str,
    pub(super) options: OptionTable,
    /// Words between the options and the command.
    pub(super) operands: usize,
    /// The option that names the working directory.
    pub(super) directory: &'static str,
}

const fn wrapper(names: &'static str, valued: &'static str, operands: usize) -> Wrapper {
    Wrapper { names, options: Valued(valued), operands, directory: "" }
}

/// The options are those of the programs' own manuals.
const WRAPPERS: &[Wrapper] = &[
    wrapper("tini tini-static docker-init", "-p -e", 0),
    wrapper("dumb-init", "-r --rewrite", 0),
    wrapper("catatonit", "", 0),
    wrapper("nice", "-n --adjustment", 0),
    wrapper("ionice", "-c -n --class --classdata", 0),
    wrapper("chrt", "-T -P -D", 1),
    wrapper("nohup setsid catchsegv unbuffer with-contenv", "", 0),
    wrapper("time", "-f -o --format --output", 0),
    wrapper("timeout", "-s -k --signal --kill-after", 1),
    wrapper("stdbuf", "-i -o -e --input --output --error", 0),
    wrapper("taskset", "", 1),
    wrapper("numactl", "-N -m -C -i -p -P --cpunodebind --membind --physcpubind --interleave", 0),
    wrapper("xvfb-run", "-e -f -n -p -s -w --error-file --server-num --server-args", 0),
    wrapper("flock", "-w -E --timeout", 1),
    wrapper("strace ltrace", "-e -o -s -p -u -P -E -S -a -I -b", 0),
    wrapper("ncu", "-o -k -c -s -f --set --section --metrics --launch-count --launch-skip --kernel-name", 0),
    wrapper("compute-sanitizer", "--tool --log-file --save", 0),
    Wrapper {
        names: "mpirun mpiexec mpiexec.hydra orterun prterun",
        options: Valued(
            "-n -np --np -c -x -H -host --host -hosts -hostfile --hostfile -machinefile --machinefile -f -N -npernode \
        --npernode -ppn -map-by --map-by -bind-to --bind-to -rank-by --rank-by -wdir --wdir -wd --output-filename \
        --prefix -iface -launcher --timeout --report-uri --tune --am --app -envlist -genvlist --personality -rmk \
        -path",
        ),
        operands: 0,
        directory: "-wdir --wdir -wd",
    },
    Wrapper {
        names: "srun",
        options: Valued(
            "-N -n -c -p -J -t -A -w -x -o -e -i -D -G -q -m -C -d -K --nodes --ntasks --cpus-per-task --partition \
        --job-name --time --account --nodelist --output --error --input --chdir --gpus --gres --mpi \
        --ntasks-per-node --gpus-per-node --gpus-per-task --mem --qos --constraint --export --jobid --cpu-bind \
        --gpu-bind --distribution --exclude",
        ),
        operands: 0,
        directory: "-D --chdir",
    },
    wrapper(
        "horovodrun",
        "-np -p -H -hostfile --num-proc --hosts --hostfile --ssh-port --network-interface --min-np --max-np \
        --start-timeout --output-filename",
        0,
    ),
];

/// The wrapper of this name.
pub(super) fn find(name: &str) -> Option<&'static Wrapper> {
    WRAPPERS.iter().find(|wrapper| is_among(name, wrapper.names))
}

/// Starts the command behind the options of a wrapper.
pub(super) fn run(
    runner: &mut Runner<'_>,
    wrapper: &Wrapper,
    start: &Start<'_>,
    state: &ShellState,
    rest: &[Field],
) -> Outcome {
    let mut words = Words::new(rest);
    let mut child = state.child(ShellKind::Posix, "");
    while let Some(option) = words.option(&wrapper.options)? {
        if is_among(option.name, wrapper.directory)
            && let Some(directory) = known(option.value.clone())?
        {
            child.enter(&directory);
        }
        // Open MPI: `-x NAME=VALUE`; MPICH: `-genv NAME VALUE`.
        match option.name {
            "-x" => {
                if let Some(given) = known(option.value)?
                    && let Some((name, value)) = given.split_once('=')
                {
                    child.export(name, Ok(value.to_owned()));
                }
            }
            "-genv" | "-env" => {
                let name = words.next().transpose()?.unwrap_or_default().to_owned();
                let value = words.next().transpose()?.unwrap_or_default().to_owned();
                child.export(&name, Ok(value));
            }
            "-mca" | "--mca" | "-gmca" | "--gmca" | "--prtemca" | "-omca" => {
                words.next();
                words.next();
            }
            _ => {}
        }
    }
    for _ in 0..wrapper.operands {
        words.next();
    }
    runner.rest(start, &child, words.rest())
}

const NSYS: OptionTable = Valued(
    "-t -o -s -b -d -y -c -e -x -w -f -n -p --trace --output --sample --duration --delay --capture-range \
        --env-var --force-overwrite --stats --backtrace --gpu-metrics-device --gpu-metrics-devices --nic-metrics \
        --capture-range-end --cuda-graph-trace --cudabacktrace --wait --kill --export --stop-on-exit --session-new \
        --session",
);

/// `nsys profile` and `nsys launch`.
pub(super) fn nsys(runner: &mut Runner<'_>, start: &Start<'_>, state: &ShellState, rest: &[Field]) -> Outcome {
    let mut words = Words::new(rest);
    match words.next().transpose()? {
        Some("profile" | "launch") => {
            words.skip_options(&NSYS)?;
            runner.rest(start, state, words.rest())
        }
        _ => Ok(None),
    }
}
