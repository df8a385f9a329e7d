"""Step what-if: one measurement under variants of the environment, in turns, so that a machine that slows down or
speeds up in the meantime affects all of them. This step does not decide whether a difference is significant."""
import statistics
import time

from ncclcheck_probe.collectives import SHARE_OF_DEADLINE, completed_options, rank_settings, run_of, setup_part
from ncclcheck_probe.supervise import Supervisor
from ncclcheck_probe.task import Report, Skipped, StepFailed
from ncclcheck_probe.world import world_of


def probe_what_if(arguments, report):
    asked = arguments["what_if"]
    if not asked["variants"]:
        raise Skipped("the plan names no variants: set what_if.variants to a list of maps of variables")
    options = dict(completed_options(arguments["collectives"]), operations=[asked["operation"]],
                   sizes=sorted(asked["sizes"]), point_to_point=False)
    world = world_of(options)
    report.part(setup_part(options, world, rank_settings(options, {})))
    until = time.monotonic() + arguments["deadline"] * SHARE_OF_DEADLINE
    variants = [Variant(index, env) for index, env in enumerate([{}] + asked["variants"])]
    for round_number, variant in turns(asked["rounds"], variants):
        if not variant.failed:
            variant.take_turn(arguments, options, world, until - time.monotonic(), round_number, report)
    return {"world_size": world.size, "local_ranks": world.local, "operation": asked["operation"],
            "variants": [variant.body() for variant in variants]}


def turns(rounds, variants):
    """Yields (round, variant), with the variants forward in even rounds and backward in odd ones."""
    for round_number in range(rounds):
        for variant in variants if round_number % 2 == 0 else reversed(variants):
            yield round_number, variant


class Variant:
    """One environment; index 0 is the run without changes. A variant that fails is not run again, since the failure is
    its result. A failure of the run without changes fails the step."""

    def __init__(self, index, env):
        self.index, self.env = index, env
        self.samples = {}  # by size
        self.left_out, self.unclean_exits = [], []
        self.failed = None
        self.turn_seconds = 0.0

    def take_turn(self, arguments, options, world, seconds, round_number, report):
        if self.turn_seconds > seconds:
            self.left_out.append({
                "round": round_number, "bytes": None,
                "why": "a turn takes %.0f seconds, and the step has %.0f left; raise its deadline"
                       % (self.turn_seconds, seconds)})
            return
        started = time.monotonic()
        applied = rank_settings(options, self.env)
        run = run_of(arguments, options, world, applied, seconds, self.index)

        def forward(part):
            if part["kind"] == "measurement":
                self.samples.setdefault(part["bytes"], []).extend(part["samples"])
            report.part(dict(part, variant=self.index, round=round_number))
        # The log of the first turn shows the variant's effect; later turns would repeat it.
        log = report if round_number == 0 else Silent(report.fd)
        try:
            results, unclean_exits = Supervisor(run, log, forward).results()
            self.unclean_exits += unclean_exits
            self.left_out += [{"round": round_number, "bytes": size["bytes"], "why": size["why"]}
                              for size in results[world.offset]["left_out"]]
        except StepFailed as failed:
            if self.index == 0:
                raise
            self.failed = failed.body
        self.turn_seconds = time.monotonic() - started

    def body(self):
        sizes = [{"bytes": size, "median_seconds": statistics.median(samples), "samples": samples}
                 for size, samples in sorted(self.samples.items())]
        return {"index": self.index, "env": self.env, "sizes": sizes, "failed": self.failed,
                "left_out": self.left_out, "unclean_exits": self.unclean_exits}


class Silent(Report):
    """A report without NCCL's log."""

    def log(self, run, rank, line, left_out=None):
        pass
