"""Runs the steps in order, each in a child process with a deadline, and reports their outcomes."""
import json
import os
import time
from collections import Counter

from ncclcheck_probe.child import Child, stacks_of, watch
from ncclcheck_probe.facts import in_words
from ncclcheck_probe.gate import Gate
from ncclcheck_probe.task import failure

EXIT_GRACE = 10  # seconds for a process to end after it has sent its result
# Steps that import torch, which takes seconds, before they look at anything that another step could disturb.
STARTED_AHEAD = ("pytorch", "collectives")
ORDERED = "between-nodes"  # the step that takes orders


class ProtocolError(Exception):
    """A child wrote an invalid message."""


class Runner:
    """Runs steps and counts their outcomes."""

    def __init__(self, wire, program_fd, plan, orders=None):
        self.wire, self.program_fd, self.plan, self.orders = wire, program_fd, plan, orders
        self.child = None
        self.ahead = {}  # (process, gate) of each step that has been started before its turn
        self.counts = Counter()

    def start_ahead(self):
        """Starts the processes of later steps, which wait for their turn."""
        for step in self.plan["steps"][1:]:
            if step in STARTED_AHEAD:
                gate = None
                try:
                    gate = Gate()
                    self.ahead[step] = self.started(step, gate.far), gate
                except OSError:  # the step will try again, and report it
                    if gate:
                        gate.close()

    def started(self, step, gate=None):
        orders = self.orders if step == ORDERED else None
        arguments = dict(self.plan, deadline=self.plan["deadlines"][step], program=self.program_fd,
                         id=orders and orders.id)
        try:
            return Child(self.program_fd, step, arguments, dict(os.environ, **self.plan["env"]), gate=gate,
                         orders=orders and orders.far)
        finally:
            if orders and orders.far is not None:
                orders.hand_over()

    def run(self, step):
        deadline = self.plan["deadlines"][step]
        self.wire.event("start", step=step, deadline=deadline)
        started = time.monotonic()
        try:
            event, fields = self.outcome(step, started + deadline)
        finally:
            self.stop()
        if event != "skipped":
            fields["seconds"] = round(time.monotonic() - started, 3)
        self.counts[event] += 1
        self.wire.event(event, step=step, **fields)

    def outcome(self, step, until):
        """Starts the child, follows it to its end, and returns the event that closes the step, with its fields."""
        try:
            if step in self.ahead:
                self.child, gate = self.ahead.pop(step)
                gate.open()
            else:
                self.child = self.started(step)
        except OSError as error:  # a limit on processes, memory or descriptors
            message = "cannot start a process for the step: " + in_words(error)
            return "failed", failure("exception", message, type=type(error).__name__)
        said = None
        try:
            for message in watch([self.child]):
                if message and message.channel == "report":
                    kind, body = parsed(message.line)
                    if kind in ("part", "log"):
                        self.wire.event(kind, step=step, **({"body": body} if kind == "part" else body))
                    else:
                        said = kind, body
                        until = min(until, time.monotonic() + EXIT_GRACE)
                elif time.monotonic() > until:
                    return self.late(said)
        except ProtocolError as error:
            return "failed", failure("protocol", str(error), stderr=list(self.child.tail))
        return self.ended(said)

    def late(self, said):
        """The outcome at the deadline of the step, or of its process if the step has sent its result."""
        if said:
            return self.closing(said, "it did not end within %d seconds" % EXIT_GRACE)
        message = "not done at its deadline; the stack shows where it hangs"
        return "failed", failure("deadline", message, stacks=stacks_of([self.child]), stderr=list(self.child.tail))

    def ended(self, said):
        ending = self.child.ending()
        if said:
            clean = (ending.how, ending.code) == ("exit", 0)
            return self.closing(said, None if clean else ending.words)
        message = "the process ended by %s before the step was done" % ending.words
        how = "protocol" if ending.code == 0 else ending.how
        return "failed", failure(how, message, signal=ending.signal, code=ending.code, stderr=list(self.child.tail))

    def closing(self, said, unclean_exit):
        kind, body = said
        if kind == "result":
            return kind, {"body": body, "unclean_exit": unclean_exit}
        if kind == "failed":
            body["stderr"] = body["stderr"] or list(self.child.tail)
        return kind, body

    def stop(self):
        """Kills the step's remaining processes, and reaps orphans: as process 1, this program becomes their parent."""
        if self.child:
            self.child.kill()
            self.child.close()
            self.child = None
        if self.ahead:  # reaping would take the ending of a process that has been started ahead
            return
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass


    def leave(self):
        """Kills all processes: this program ends before its steps do."""
        ahead, self.ahead = list(self.ahead.values()), {}
        for child, _ in ahead:
            child.kill()
        self.stop()


def parsed(line):
    """(kind, body) of a child's message."""
    try:
        (kind, body), = json.loads(line).items()
        if kind in ("part", "log", "result", "failed", "skipped") and isinstance(body, dict):
            return kind, body
    except (ValueError, AttributeError):
        pass
    raise ProtocolError("the step's process wrote an invalid message: %.200r" % line)
