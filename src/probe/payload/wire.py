"""The protocol, version 1: one JSON object a line on standard output, written by the parent process alone.

Every line is ASCII, shorter than LINE_LIMIT bytes, flushed at once, and has
    ncclcheck   the version of this protocol, 1
    event       what the line is, one of those below
    at          seconds since the program started

    hello    python, executable, platform, hostname, pid, uid, gid, groups, plan: who speaks, and the plan with its
             defaults filled in
    start    step, deadline (seconds): the step begins
    part     step, body: one partial result, sent as soon as it is known
    log      step, run, rank, line, left_out: one line of NCCL's own debug output. `run` tells the runs of one step
             apart (the variant's index in what-if, else 0). `left_out` is null but in a rank's last line, where it
             counts the lines that were too many
    result   step, seconds, body, unclean_exit: the step is done. `unclean_exit` is null, or says how the process
             ended after it had delivered ("signal SIGSEGV"): a training job would have ended so too
    failed   step, seconds, how, type, message, signal, code, rank, stderr, stacks, ranks: the step is lost
             how      exception | signal | exit | deadline | protocol
             type     the exception's type, else null
             message  what is wrong, in words
             signal   the signal's name, else null; code: the exit status, else null
             rank     the rank to blame: whose process died, or that failed first, or that is behind; else null
             stderr   the last lines of that process's output
             stacks   of processes that hung: [{process, state, stack}], Python stacks by faulthandler, and the
                      kernel's state of the process
             ranks    [{rank, phase, number, state, error}] where ranks were running: which phase each had
                      entered (phases have the same numbers on all ranks) and what became of it
    skipped  step, why: what is missing, and what would make it run
    end      run, failed, skipped: how many steps; nothing follows

A body never invents: a value that could not be read is null, and "unread" in the same object maps its name to the
reason. Units are in the names. An event that would be too long carries its longest texts and lists shortened, and
`shortened` then maps where they are to how long they were.
"""
import json
import os
import time

PROTOCOL = 1
LINE_LIMIT = 64 * 1024


class Wire:
    """The one writer of events."""

    def __init__(self, fd):
        self.fd = fd
        self.started = time.monotonic()

    def event(self, name, **fields):
        event = {"ncclcheck": PROTOCOL, "event": name, "at": round(time.monotonic() - self.started, 3)}
        event.update(fields)
        write_all(self.fd, fitted(printable(event), LINE_LIMIT - 1))


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data):]


def printable(value):
    """A copy of the value whose texts are valid Unicode: names from the kernel may be any bytes, which Python keeps
    as lone surrogates and JSON parsers refuse."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {printable(str(key)): printable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [printable(item) for item in value]
    return value


def encode(event):
    return json.dumps(event, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"


def fitted(event, limit):
    """The event's line. Where it is longer than the limit, the longest text or list loses its second half, again and
    again until it fits."""
    line = encode(event)
    while len(line) > limit:
        place, holder, key = longest(event, "")
        event.setdefault("shortened", {}).setdefault(place, len(holder[key]))
        holder[key] = holder[key][:len(holder[key]) // 2]
        line = encode(event)
    return line


def longest(value, place):
    """(place, holder, key) of the text or list whose cut is the least loss: the one that takes the most bytes, where
    a list's largest item is not counted, so that one long text is cut and not the list around it."""
    best, best_size = None, -1
    waiting = [(value, place)]
    while waiting:
        holder, place = waiting.pop()
        for key, item in holder.items() if isinstance(holder, dict) else enumerate(holder):
            inside = "%s.%s" % (place, key) if place else str(key)
            if isinstance(item, (dict, list)):
                waiting.append((item, inside))
            if isinstance(item, (str, list)) and len(item) > 1:
                size = len(item) if isinstance(item, str) else sum(sorted(len(encode(part)) for part in item)[:-1])
                if size > best_size:
                    best, best_size = (inside, holder, key), size
    return best
