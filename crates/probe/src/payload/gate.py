"""Processes that start ahead of their step: they import torch while the steps before it run, then wait at a gate."""
import fcntl
import os
import time

LARGE_PIPE = 1 << 20  # bytes that a process can report before its turn, where the kernel permits it
F_SETPIPE_SZ = 1031  # linux/fcntl.h; Python names it from 3.10 on
# A process takes one byte each: those of a step and its ranks. PIPE_BUF (POSIX: 512 or more) bytes are written at once.
PASSES = b"." * 512


class Gate:
    """The starter's end of a gate. Processes wait at its descriptor `far` until the starter opens it; if the starter
    ends or gives up, they end too."""

    def __init__(self):
        self.far, self.near = os.pipe()

    def open(self):
        os.write(self.near, PASSES)
        self.close()

    def close(self):
        for fd in (self.far, self.near):
            os.close(fd)


def wait_at(gate):
    """Waits until the gate opens, and returns the seconds. `gate` is its descriptor in this process; None if there is
    nothing to wait for."""
    started = time.monotonic()
    if gate is not None and not os.read(gate, 1):
        os._exit(0)  # the run has ended without this step
    return time.monotonic() - started


def enlarge_pipe(fd):
    """Lets a pipe hold more than 64 KiB. Without that, its writer waits for its reader earlier."""
    try:
        fcntl.fcntl(fd, F_SETPIPE_SZ, LARGE_PIPE)
    except OSError:  # the limit of this user (pipe(7), pipe-user-pages-soft)
        pass
