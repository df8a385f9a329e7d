"""The child's side: a function that runs in its own process and reports to the process that started it.

A step is a function `probe_NAME(plan, report)`. It returns the body of its result, sends partial results by
`report.part(body)`, and raises Skipped if something that it needs is missing. Any other exception fails the step.
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
    """The step cannot run here. The text names the missing thing and the remedy."""


class StepFailed(Exception):
    """The step failed, with a complete body for its `failed` event."""

    def __init__(self, body):
        Exception.__init__(self, body["message"])
        self.body = body


class Report:
    """A child's messages to its parent: JSON lines over a pipe, each with one key, the kind of message."""

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
    """The body of a `failed` event, with every field present; those without a value are null or empty."""
    body = {"how": how, "type": None, "message": message, "signal": None, "code": None, "rank": None, "stderr": [],
            "stacks": [], "ranks": []}
    body.update(known)
    return body


def run_task(function, arguments, report, stacks_fd):
    """Runs the function in this process, which was started for it, and reports the outcome."""
    for fd in (report.fd, stacks_fd):
        os.set_inheritable(fd, False)  # programs that the image's code starts must not hold these pipes open
    die_with_parent()
    faulthandler.enable()
    faulthandler.register(STACK_SIGNAL, file=stacks_fd, all_threads=True)
    try:
        report.send("result", function(arguments, report))
    except Skipped as skipped:
        report.send("skipped", {"why": str(skipped)})
    except StepFailed as failed:
        report.send("failed", failed.body)
    except BaseException as error:  # SystemExit too: the image's code may try to exit
        traceback.print_exc(file=sys.stderr)
        report.send("failed", failure("exception", str(error) or repr(error), type=type(error).__name__))


def die_with_parent():
    """Makes the kernel kill this process when its parent ends for any reason. Not all kernels support this, and nothing
    else depends on it."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    except (OSError, AttributeError):
        pass
