"""Steps collectives and forced-network: start one process per GPU, as training does, and measure."""
import os
import time

from ncclcheck_probe.gpu_watch import GpuWatch
from ncclcheck_probe.plan import FULL_SIZES, QUICK_SIZES
from ncclcheck_probe.supervise import Run, Supervisor
from ncclcheck_probe.unset_variables import OPERATION, measured_without, slowing_variables
from ncclcheck_probe.world import logging_variables, world_of

FULL_SECONDS, QUICK_SECONDS = 0.4, 0.1  # for the timed calls of one operation at one size
SHARE_OF_DEADLINE = 0.9  # the rest leaves time to describe a hang before the step's own deadline kills it


def probe_collectives(arguments, report):
    until = time.monotonic() + arguments["deadline"] * SHARE_OF_DEADLINE
    options = completed_options(arguments["collectives"])
    watch = GpuWatch()
    body = collectives_body(arguments, report, options, watch=watch)
    variables = slowing_variables()
    if body["local_ranks"] == body["world_size"]:  # ranks in other containers may go on using these GPUs
        body.update(gpus_during=watch.during(), gpus_after=watch.after())
        if variables and body["world_size"] > 1:
            body["without_variables"] = without_variables(arguments, options, variables, until)
    return body


def without_variables(arguments, options, variables, until):
    """The largest size that the collectives measured, without `variables`."""
    options = dict(options, operations=[OPERATION], sizes=options["sizes"][-1:], point_to_point=False)
    arguments = dict(arguments, gate=None)

    def start(replaced, seconds):
        applied = dict(rank_settings(options, {}), **replaced)
        return run_of(arguments, options, world_of(options), applied, seconds, run=1)
    return measured_without(variables, start, until)


def probe_forced_network(arguments, report):
    """Runs the collectives with P2P, shared memory and NVLS disabled, so that one machine exercises its network."""
    forced = arguments["forced_network"]
    options = dict(completed_options(arguments["collectives"]), operations=forced["operations"],
                   sizes=sorted(forced["sizes"]), point_to_point=False)
    return collectives_body(arguments, report, options, forced["env"])


def completed_options(options):
    """The options, with defaults that depend on `quick` filled in. Sizes ascend, since each predicts the next."""
    quick = options["quick"]
    return dict(options, sizes=sorted(options["sizes"] or (QUICK_SIZES if quick else FULL_SIZES)),
                seconds_per_size=options["seconds_per_size"] or (QUICK_SECONDS if quick else FULL_SECONDS))


def collectives_body(arguments, report, options, extra_env=None, watch=None):
    world = world_of(options)
    applied = rank_settings(options, extra_env or {})
    report.part(setup_part(options, world, applied))
    run = run_of(arguments, options, world, applied, arguments["deadline"] * SHARE_OF_DEADLINE)

    def forward(part):
        if watch and part["kind"] == "measurement":
            watch.look()
        report.part(part)
    results, unclean_exits = Supervisor(run, report, forward).results()
    first = results[world.offset]
    return {"world_size": world.size, "local_ranks": world.local, "left_out": first["left_out"],
            "unclean_exits": unclean_exits, "cpu_waits": [results[rank]["cpu_wait"] for rank in sorted(results)]}


def rank_settings(options, extra_env):
    """Variables that this run sets for its ranks, overriding the image's. The plan's own variables take precedence."""
    return dict(logging_variables(options["debug_subsystems"]), **dict(extra_env, **options["env"]))


def run_of(arguments, options, world, applied, seconds, run=0):
    env = {name: value for name, value in dict(os.environ, **applied).items() if value is not None}
    return Run(arguments["program"], world, env, options, seconds, options["stall_seconds"], run, arguments["gate"])


def setup_part(options, world, applied):
    """The part that describes the run, with the image's variables that it overrides."""
    replaced = {name: os.environ[name] for name in list(applied) + ["NCCL_DEBUG_FILE"]
                if name in os.environ and os.environ[name] != applied.get(name)}
    return {"kind": "setup", "backend": options["backend"], "world_size": world.size, "first_rank": world.offset,
            "local_ranks": world.local, "master_addr": world.master_addr, "master_port": world.master_port,
            "operations": options["operations"], "sizes": options["sizes"], "dtype": options["dtype"], "env": applied,
            "replaced": replaced}
