"""The protocol, version 1: one JSON object per line on standard output, written by the parent process alone.

Every line is ASCII, shorter than LINE_LIMIT bytes, flushed at once, and has
    ncclcheck   the version of this protocol, 1
    event       kind of the line, one of those below
    at          seconds since the program started

    hello    python, executable, platform, hostname, pid, uid, gid, groups, working_folder, environment, plan: this
             process, and the plan with its defaults filled in. `environment` has the names of all variables, with null
             for the values of those that may be secrets
    start    step, deadline (seconds): the step begins
    part     step, body: one partial result, sent as soon as it is known
    log      step, run, rank, line, left_out: one line of NCCL's own debug output. `run` numbers the runs of one step
             (the variant's index in what-if, else 0). `left_out` is null, except in a rank's last line if lines were
             dropped, where it is their number
    result   step, seconds, body, unclean_exit: the step is done. `unclean_exit` is null, or the ending of a process
             that failed after it had sent its result ("signal SIGSEGV"): a training job would have ended so too
    failed   step, seconds, how, type, message, signal, code, rank, stderr, stacks, ranks: the step failed
             how      exception | signal | exit | deadline | protocol
             type     the exception's type, else null
             message  the error, in words
             signal   the signal's name, else null; code: the exit status, else null
             rank     the culprit: the rank whose process died, that failed first, or that is behind; else null
             stderr   the last lines of that process's output
             stacks   [{process, state, stack}] of hung processes: Python stacks by faulthandler, and the kernel's
                      state of the process
             ranks    [{rank, phase, number, state, error}] if ranks were running: the phase that each had entered
                      (phases have the same numbers on all ranks) and its outcome
    skipped  step, why: the missing thing, and the remedy
    end      run, failed, skipped: numbers of steps; no line follows

A body never invents a value: one that could not be read is null, and "unread" in the same object maps its name to the
reason. Names include units. An event that would be too long has its longest texts and lists shortened, and `shortened`
maps their paths to their original lengths.
"""
import json
import os
import time

PROTOCOL = 1
LINE_LIMIT = 64 * 1024


class Wire:
    """The only writer of events."""

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
    """A copy of the value whose texts are valid Unicode. Names from the kernel may contain any bytes, which Python
    keeps as lone surrogates and JSON parsers reject."""
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
    """The event's line. While it exceeds the limit, the longest text or list loses its second half."""
    line = encode(event)
    while len(line) > limit:
        place, holder, key = longest(event, "")
        event.setdefault("shortened", {}).setdefault(place, len(holder[key]))
        holder[key] = holder[key][:len(holder[key]) // 2]
        line = encode(event)
    return line


def longest(value, place):
    """(place, holder, key) of the text or list to shorten: the one that takes the most bytes. A list's largest item
    does not count towards its size, so that one long text is shortened and not the list around it."""
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
