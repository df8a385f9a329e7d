"""How long a rank had no CPU while it measured, which delays every collective."""
import time

from ncclcheck_probe.facts import Facts, read_text
from ncclcheck_probe.readings import Unread


class CpuWait(Facts):
    """The time since its creation, and how much of it this process could have run and had no CPU."""

    def __init__(self):
        super().__init__()
        self.began = time.monotonic()
        self.read("waited_seconds", cpu_delay)

    def until_now(self):
        """{seconds, waited_seconds}"""
        self.body["seconds"] = time.monotonic() - self.began
        before = self.body["waited_seconds"]
        if before is not None:
            self.read("waited_seconds", lambda: cpu_delay() - before)
        return self.body


def cpu_delay():
    """Seconds for which the first thread of this process, which launches the kernels, had to wait for a CPU. The
    kernel also counts the time for which a CPU quota stops it."""
    ran, waited = read_text("/proc/self/schedstat").split()[:2]
    if ran == "0":
        raise Unread("/proc/self/schedstat: the kernel does not record how long a process waits for a CPU")
    return int(waited) / 1e9
