"""The probe's payload: runs its steps inside a container, and reports what it finds there as JSON lines.

    python3 payload.py [--plan JSON]
    python3 -c 'import sys; SOURCE = sys.stdin.read(); exec(compile(SOURCE, "ncclcheck-probe", "exec"))' < payload.py

Needs Python 3.8 or newer and only its standard library. Exit status: 0 if all steps ran, whatever their outcome; 2 if
the plan is invalid.
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
from ncclcheck_probe.environment import all_variables
from ncclcheck_probe.facts import Facts
from ncclcheck_probe.lasting_rank import run_lasting_rank
from ncclcheck_probe.orders import Orders, lines_of
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
    except ValueError as error:  # PlanError and json's errors are both ValueErrors
        where = "" if isinstance(error, PlanError) else "--plan is not JSON: "
        print("ncclcheck-probe: %s%s" % (where, error), file=sys.stderr)
        return 2
    return run_plan(plan)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="ncclcheck-probe", description="Reports the state of this container.")
    parser.add_argument("--plan", default="{}", metavar="JSON", help="what to run; {} for the defaults")
    for inner in ("--child", "--arguments"):
        parser.add_argument(inner, help=argparse.SUPPRESS)
    for inner in ("--program", "--report", "--stacks"):
        parser.add_argument(inner, type=int, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def child_main(options):
    """Runs the one task for which main started this process."""
    arguments = json.loads(options.arguments)
    for fd in (options.program, arguments["gate"], arguments["orders"]):
        if fd is not None:
            os.set_inheritable(fd, False)
    run_task(task_named(options.child), arguments, Report(options.report), options.stacks)
    return 0


def task_named(name):
    """The function of a rank or of a step. All modules are joined into one program, so a global name finds it."""
    ranks = {"rank": run_rank, "lasting-rank": run_lasting_rank}
    return ranks.get(name) or globals()["probe_" + name.replace("-", "_")]


def run_plan(plan):
    # From here on only the wire writes to the original standard output; all other output goes to stderr.
    wire = Wire(os.dup(1))
    os.dup2(2, 1)
    orders = Orders() if plan["lifeline"] else None
    runner = Runner(wire, keep_program(own_source()), plan, orders)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: leave(runner, received))
    if plan["lifeline"]:
        threading.Thread(target=follow_input, args=(orders,), daemon=True).start()
    try:
        wire.event("hello", plan=plan, **this_process())
        runner.start_ahead()
        for step in plan["steps"]:
            runner.run(step)
        wire.event("end", run=runner.counts["result"], failed=runner.counts["failed"],
                   skipped=runner.counts["skipped"])
    except BrokenPipeError:  # the reader has gone
        return 1
    return 0


def this_process():
    facts = Facts()
    facts.body.update(python=platform.python_version(), executable=sys.executable, platform=platform.platform(),
                      hostname=socket.gethostname(), pid=os.getpid(), uid=os.getuid(), gid=os.getgid(),
                      groups=os.getgroups(), environment=all_variables())
    facts.read("working_folder", os.getcwd)
    return facts.body


def follow_input(orders):
    """Takes orders from standard input. Ends this program and its children at its end: its starter holds it open."""
    for line in lines_of(0):
        orders.take(line)
    # The signal handler runs in the main thread, which would otherwise count the killed step as failed and continue.
    os.kill(os.getpid(), signal.SIGTERM)


def leave(runner, received):
    """Signal handler: kills all child processes and exits. Process 1 ignores signals that it does not handle."""
    runner.leave()
    os._exit(128 + received)


def own_source():
    """The text of the whole program: SOURCE of the start command, this file, or a standard input that is a file."""
    if "SOURCE" in globals():
        return globals()["SOURCE"]
    path = globals().get("__file__", "<stdin>")
    if path != "<stdin>":
        with open(path, "rb") as file:
            return file.read().decode("utf-8")
    try:
        return read_again().decode("utf-8")
    except OSError as error:  # ESPIPE of a pipe
        sys.exit("ncclcheck-probe: standard input cannot be read again (%s): start this program from a file, or by the "
                 "second command at its beginning" % error.strerror)


def read_again():
    """Standard input from its first byte, whatever has been read of it."""
    text = b""
    while True:
        piece = os.pread(0, 1 << 20, len(text))
        if not piece:
            return text
        text += piece


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
