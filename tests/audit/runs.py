"""What the scripts of this folder share: layouts, plans, workers and merged documents."""

import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass

HERE = pathlib.Path(__file__).parent
# What names a run in its document, and nothing else.
NAMES = re.compile(rb'"run":"[^"]*","created":"[^"]*",')


@dataclass
class Ended:
    """A process that ended: its exit status (negative for a signal), processor time in seconds, and largest memory in MiB."""
    status: int
    seconds: float
    memory: float
    errors: str


class Process:
    """A process whose own times and memory are known; `subprocess` knows only those of all children together."""

    def __init__(self, command, environment):
        self.command = [str(word) for word in command]
        self.errors = tempfile.TemporaryFile()
        self.child = subprocess.Popen(self.command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=self.errors)

    def kill(self):
        # Popen.kill would take the status, and with it the times, if the process has ended.
        os.kill(self.child.pid, signal.SIGKILL)

    def wait(self):
        _, status, usage = os.wait4(self.child.pid, 0)
        self.child.returncode = os.waitstatus_to_exitcode(status)
        self.errors.seek(0)
        with self.errors:
            errors = self.errors.read().decode(errors='replace')
        return Ended(self.child.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, errors)

    def finish(self):
        """Waits for its success."""
        ended = self.wait()
        if ended.status:
            fail(f'no answer: {" ".join(self.command)}: exit status {ended.status}\n{ended.errors}')
        return ended


class Audit:
    """The runs in one store. Workers see no variable of the caller but PATH, and the given ones."""

    def __init__(self, program, store, home, **variables):
        self.program, self.store = program, store
        self.environment = {'HOME': str(home), 'PATH': os.environ['PATH'], 'NO_COLOR': '1', **variables}

    def start(self, command, *words):
        return Process([self.program, 'audit', command, '--store', self.store, *words], self.environment)

    def plan(self, run, *words):
        return self.start('plan', '--no-config', '--run', run, *words).finish()

    def worker(self, run, shard='auto', *words):
        return self.start('run', '--run', run, '--shard', shard, '--jobs', '1', *words)

    def merged(self, run, *words):
        """The document of a run, which must be complete."""
        command = [self.program, 'audit', 'merge', '--store', self.store, '--run', run, '--format', 'json', *words]
        done = subprocess.run([str(word) for word in command], env=self.environment, capture_output=True, stdin=subprocess.DEVNULL)
        if done.returncode not in (0, 1, 3) or not done.stdout:
            fail(f'no answer: merge of {run}: exit status {done.returncode}\n{done.stderr.decode(errors="replace")}')
        try:
            document = Document(json.loads(done.stdout), hashlib.sha256(NAMES.sub(b'', done.stdout, count=1)).hexdigest()[:16])
        except (ValueError, KeyError) as error:
            fail(f'no answer: merge of {run} printed no document: {error!r}')
        return document


class Document:
    """A merged document, and the digest of its bytes without the name and the time of the run."""

    def __init__(self, content, digest):
        self.content, self.digest, self.counts = content, digest, content['counts']

    def require(self, images):
        """Each of this many images has one verdict."""
        ids = [image['id'] for image in self.content['images']]
        if len(ids) != images or len(set(ids)) != images:
            fail(f'{len(ids)} images, {len(set(ids))} of them distinct; expected {images}')
        of_counts = sum(self.counts[verdict] for verdict in ('pass', 'fail', 'incomplete'))
        if self.counts['images'] != images or of_counts != images:
            fail(f'not every image was judged: {self.counts}')


def fail(why):
    raise SystemExit(why)


def generate(layout, images):
    subprocess.run([HERE / 'generate', layout, '--images', str(images)], check=True)


def timed(work):
    """Does work; returns its wall time in seconds and its result."""
    begun = time.monotonic()
    result = work()
    return time.monotonic() - begun, result
