"""The parent's side: a new interpreter that runs one task of this program, with its pipes, stacks and exit."""
import collections
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time

from ncclcheck_probe.facts import in_words, read_text
from ncclcheck_probe.gate import enlarge_pipe
from ncclcheck_probe.task import STACK_SIGNAL

OUTPUT_LINES, OUTPUT_COLUMNS = 40, 500
REPORT_LIMIT = 4 << 20  # bytes of one message between our own processes
TICK = 0.05  # seconds between checks for ended processes
STACK_PATIENCE = 1.0  # seconds for hung processes to print their stacks

Message = collections.namedtuple("Message", "child channel line")
Ending = collections.namedtuple("Ending", "how signal code words")


def keep_program(source):
    """Writes the program's text to an anonymous file and returns its descriptor. Children read the program from it, so
    no writable file system is needed."""
    try:
        fd = os.memfd_create("ncclcheck-probe")
    except (AttributeError, OSError):  # the kernel lacks memfd_create, or a seccomp profile denies it
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    with open(fd, "wb", closefd=False) as file:
        file.write(source.encode("utf-8"))
    return fd


def interpreter_command(program_fd):
    """Command line of a new interpreter that runs the program. It uses -c and not the file's path, because Python puts
    a script's folder first in sys.path and nothing can be imported from /proc/self/fd; with -c the working directory
    comes first, as for `python -m`. Without PATH, Python does not know its own executable, so the kernel's link is
    used."""
    program = 'exec(compile(open("/proc/self/fd/%d", "rb").read(), "ncclcheck-probe", "exec"))' % program_fd
    return [sys.executable or os.readlink("/proc/self/exe"), "-c", program]


class Channel:
    """The read end of a pipe, split into lines. Bytes of a line beyond the limit are dropped."""

    def __init__(self, fd, limit):
        os.set_blocking(fd, False)
        self.fd, self.limit = fd, limit
        self.rest = b""
        self.open = True

    def lines(self):
        """The lines received so far. At end of file, also a last line that has no newline."""
        found = []
        while self.open:
            try:
                data = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                break
            pieces = (self.rest + data).split(b"\n")
            self.rest = pieces.pop()[:self.limit]
            found += [piece[:self.limit] for piece in pieces]
            if not data:
                found += [self.rest] if self.rest else []
                self.close()
        return [line.decode("utf-8", "replace") for line in found]

    def close(self):
        if self.open:
            os.close(self.fd)
            self.open = False


class Child:
    """One process that runs a task. Channels: `report` (its messages), `stacks` (faulthandler), `output` (everything
    that it and the image's code print) and, on request, `log` (a file for NCCL to write to). With a `gate`, the task
    waits there once it has prepared its work. `orders` is a descriptor from which it reads what to do."""

    def __init__(self, program_fd, task, arguments, env, leads_group=True, with_log=False, name=None, gate=None,
                 orders=None):
        self.name, self.leads_group = name or task, leads_group
        self.tail = collections.deque(maxlen=OUTPUT_LINES)
        self.channels, theirs = {}, {}
        try:
            for channel in ["report", "stacks", "output"] + (["log"] if with_log else []):
                ours, theirs[channel] = os.pipe()
                self.channels[channel] = Channel(ours, REPORT_LIMIT if channel == "report" else 8192)
            if gate is not None:
                enlarge_pipe(theirs["report"])
            if with_log:
                env = dict(env, NCCL_DEBUG_FILE="/proc/self/fd/%d" % theirs["log"])
            command = interpreter_command(program_fd) + [
                "--child", task, "--program", str(program_fd), "--report", str(theirs["report"]),
                "--stacks", str(theirs["stacks"]), "--arguments", json.dumps(dict(arguments, gate=gate, orders=orders))]
            inherited = [program_fd] + [fd for channel, fd in theirs.items() if channel != "output"]
            self.process = subprocess.Popen(
                command, env=env, stdin=subprocess.DEVNULL, stdout=theirs["output"], stderr=theirs["output"],
                pass_fds=inherited + [fd for fd in (gate, orders) if fd is not None], start_new_session=leads_group)
        except OSError:
            self.close()
            raise
        finally:
            for fd in theirs.values():
                os.close(fd)

    def ending(self):
        """The Ending of the process; None while it runs."""
        status = self.process.poll()
        if status is None:
            return None
        if status < 0:
            name = signal_name(-status)
            return Ending("signal", name, None, "signal " + name)
        return Ending("exit", None, status, "exit status %d" % status)

    def kill(self):
        """Kills the process, and its whole group if it leads one. Waits for the process, unless the kernel holds it."""
        try:
            if self.leads_group:
                os.killpg(self.process.pid, signal.SIGKILL)  # the group may outlive the process
            else:
                self.process.kill()
        except ProcessLookupError:
            pass
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            pass  # stuck in the kernel; it dies when it leaves

    def close(self):
        for channel in self.channels.values():
            channel.close()


def signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return "SIG%d" % number


def watch(children):
    """Yields the lines of all channels as Messages as they arrive, a Message of channel "end" for each child that has
    ended and whose channels were read to the end, and None at least every TICK, so that the caller can check the
    clock. Returns after the last child. Output is kept in the child's tail and not yielded."""
    running = list(children)
    with selectors.DefaultSelector() as selector:
        for child in running:
            for name, channel in child.channels.items():
                if name != "stacks":
                    selector.register(channel.fd, selectors.EVENT_READ, (child, name))
        while running:
            for key, _ in selector.select(TICK):
                child, name = key.data
                yield from arrived(child, name)
                if not child.channels[name].open:
                    selector.unregister(key.fd)
            for child in [child for child in running if child.ending()]:
                running.remove(child)
                for name, channel in child.channels.items():
                    if name != "stacks":
                        yield from arrived(child, name)
                        if channel.open:  # a process that the child left behind still holds the write end
                            selector.unregister(channel.fd)
                            channel.close()
                yield Message(child, "end", None)
            yield None


def arrived(child, name):
    for line in child.channels[name].lines():
        if name == "output":
            child.tail.append(line[:OUTPUT_COLUMNS])
        else:
            yield Message(child, name, line)


def stacks_of(children):
    """Stacks of hung processes: [{process, state, stack}]. The signal may end a process that is still starting, which
    does no harm because the caller kills them all next."""
    hung = [child for child in children if not child.ending()]
    found = [{"process": child.name, "state": process_state(child.process.pid), "stack": []} for child in hung]
    for child in hung:
        child.process.send_signal(STACK_SIGNAL)
    until = time.monotonic() + STACK_PATIENCE
    while time.monotonic() < until:
        time.sleep(TICK)
        for child, entry in zip(hung, found):
            entry["stack"] += child.channels["stacks"].lines()
            for _ in arrived(child, "output"):
                pass
    return found


def process_state(pid):
    """The kernel's state of the process, such as "S (sleeping)". D is a wait that no signal interrupts."""
    try:
        status = read_text("/proc/%d/status" % pid)
    except OSError as error:
        return in_words(error)
    return next((line.split(":", 1)[1].strip() for line in status.splitlines() if line.startswith("State:")), "")
