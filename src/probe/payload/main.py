"""The probe's payload: runs inside a container, step by step, and tells what is true there as JSON lines.

    python3 payload.py [--plan JSON]
    python3 -c 'import sys; SOURCE = sys.stdin.read(); exec(compile(SOURCE, "ncclcheck-probe", "exec"))' < payload.py

Standard library only, Python 3.8 or newer. Exit status: 0 when all steps were gone through, whatever came of them; 2
for a plan that is wrong.
"""
import argparse
import json
import os
import platform
import signal
import socket
import sys
import threading

from ncclcheck_probe.child import keep_program
from ncclcheck_probe.plan import PlanError, complete_plan
from ncclcheck_probe.rank import run_rank
from ncclcheck_probe.runner import Runner
from ncclcheck_probe.steps import STEPS
from ncclcheck_probe.task import Report, run_task
from ncclcheck_probe.wire import Wire


def main(arguments):
    options = parse(arguments)
    if options.child:
        return child_main(options)
    try:
        plan = complete_plan(json.loads(options.plan), STEPS)
    except ValueError as error:  # PlanError is one, and so is what json raises
        where = "" if isinstance(error, PlanError) else "--plan is not JSON: "
        print("ncclcheck-probe: %s%s" % (where, error), file=sys.stderr)
        return 2
    return run_plan(plan)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="ncclcheck-probe", description="Tells what is true in this container.")
    parser.add_argument("--plan", default="{}", metavar="JSON", help="what to run; {} for the defaults")
    for inner in ("--child", "--arguments"):
        parser.add_argument(inner, help=argparse.SUPPRESS)
    for inner in ("--program", "--report", "--stacks"):
        parser.add_argument(inner, type=int, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def child_main(options):
    """A process that main started, for one task."""
    os.set_inheritable(options.program, False)
    run_task(task_named(options.child), json.loads(options.arguments), Report(options.report), options.stacks)
    return 0


def task_named(name):
    """The function of a rank, or of a step: in the one program that all modules are joined into, by its name alone."""
    return run_rank if name == "rank" else globals()["probe_" + name.replace("-", "_")]


def run_plan(plan):
    # From here on only the wire writes to what was standard output; anything else that is printed goes to stderr.
    wire = Wire(os.dup(1))
    os.dup2(2, 1)
    runner = Runner(wire, keep_program(own_source()), plan)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: leave(runner, received))
    if plan["lifeline"]:
        threading.Thread(target=await_end_of_input, daemon=True).start()
    try:
        wire.event("hello", python=platform.python_version(), executable=sys.executable, platform=platform.platform(),
                   hostname=socket.gethostname(), pid=os.getpid(), uid=os.getuid(), gid=os.getgid(),
                   groups=os.getgroups(), plan=plan)
        for step in plan["steps"]:
            runner.run(step)
        wire.event("end", run=runner.counts["result"], failed=runner.counts["failed"],
                   skipped=runner.counts["skipped"])
    except BrokenPipeError:  # nobody listens any more, so there is nothing left to do
        return 1
    return 0


def await_end_of_input():
    """Whoever started us holds our standard input open, and is gone when it ends: then nothing of ours stays behind."""
    while os.read(0, 1024):
        pass
    # The handler runs in the main thread, which would otherwise take the killed step for a failed one, and go on.
    os.kill(os.getpid(), signal.SIGTERM)


def leave(runner, received):
    """On a signal: nothing that we started stays behind. As process 1 we would otherwise not even end."""
    runner.stop()
    os._exit(128 + received)


def own_source():
    """The text of this whole program: what the start command has read, or the file that it is."""
    if "SOURCE" in globals():
        return globals()["SOURCE"]
    with open(__file__, "rb") as file:
        return file.read().decode("utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
