"""The child's side: a function that runs in a process of its own and reports to the process that started it.

A step is a function `probe_NAME(plan, report)`. It returns the body of its result, sends partial ones by
`report.part(body)`, and raises Skipped where something that it needs is not there. Any other exception is its failure.
"""
import ctypes
import faulthandler
import json
import os
import signal
import sys
import traceback

from ncclcheck_probe.wire import write_all

STACK_SIGNAL = signal.SIGUSR1
PR_SET_PDEATHSIG = 1

class Skipped(Exception):
    """The step cannot run here: what is missing, and what would make it run."""


class StepFailed(Exception):
    """The step failed, and the body of its `failed` event is known already."""

    def __init__(self, body):
        Exception.__init__(self, body["message"])
        self.body = body


class Report:
    """What a child tells its parent: JSON lines of one key, the kind of message, over a pipe."""

    def __init__(self, fd):
        self.fd = fd

    def send(self, kind, body):
        write_all(self.fd, json.dumps({kind: body}, allow_nan=False).encode("ascii") + b"\n")

    def part(self, body):
        self.send("part", body)

    def log(self, run, rank, line, left_out=None):
        self.send("log", {"run": run, "rank": rank, "line": line, "left_out": left_out})

    def phase(self, number, name):
        self.send("phase", {"number": number, "name": name})


def failure(how, message, **known):
    """The body of a `failed` event: every field is there, null or empty where there is nothing to say."""
    body = {"how": how, "type": None, "message": message, "signal": None, "code": None, "rank": None, "stderr": [],
            "stacks": [], "ranks": []}
    body.update(known)
    return body


def run_task(function, arguments, report, stacks_fd):
    """Runs the function in this process, which was started for it, and reports how it went."""
    for fd in (report.fd, stacks_fd):
        os.set_inheritable(fd, False)  # or programs that the image's code starts would hold our pipes open
    die_with_parent()
    faulthandler.enable()
    faulthandler.register(STACK_SIGNAL, file=stacks_fd, all_threads=True)
    try:
        report.send("result", function(arguments, report))
    except Skipped as skipped:
        report.send("skipped", {"why": str(skipped)})
    except StepFailed as failed:
        report.send("failed", failed.body)
    except BaseException as error:  # SystemExit too: an image's code may try to leave
        traceback.print_exc(file=sys.stderr)
        report.send("failed", failure("exception", str(error) or repr(error), type=type(error).__name__))


def die_with_parent():
    """Has the kernel kill this process when its parent is gone, however that ended. Not all kernels offer it, and
    nothing else depends on it."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    except (OSError, AttributeError):
        pass
