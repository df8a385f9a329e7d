"""A simulated machine with GPUs and RDMA devices: stand-ins for the driver libraries, and files like the kernel's.

The program runs as it does in a container, and loads the stand-ins by dlopen. Only the paths of the kernel's files are
replaced in its text, since no test can add a device to /sys.
"""
import atexit
import contextlib
import fcntl
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from harness import REPOSITORY, Payload, program

STAND_INS = pathlib.Path(__file__).resolve().parent / "stand_ins"
# The file name of each stand-in in drivers and distributions, and the names by which it is opened.
LIBRARIES = {
    "nvml": ("libnvidia-ml.so.580.159.04", ["libnvidia-ml.so.1"]),
    "cuda": ("libcuda.so.580.159.04", ["libcuda.so.1"]),
    "verbs": ("libibverbs.so.1.14.44.0", ["libibverbs.so.1", "libibverbs.so"]),
    "nccl": ("libnccl.so.2.28.9", ["libnccl.so.2"]),
}
KERNEL_PLACES = re.compile('"/(sys/|dev/infiniband|dev/kmsg|proc/driver/|proc/cmdline|proc/self/schedstat)')


@functools.lru_cache(maxsize=None)
def build_folder():
    """Libraries that are built once for all tests of this process."""
    folder = os.path.realpath(tempfile.mkdtemp(prefix="stand-ins-"))
    atexit.register(shutil.rmtree, folder)
    return pathlib.Path(folder)


@functools.lru_cache(maxsize=None)
def built(name, *options):
    """The stand-in as a shared library, compiled with these options."""
    handle, library = tempfile.mkstemp(suffix=".so", dir=build_folder())
    os.close(handle)
    subprocess.run(["gcc", "-Wall", "-Wextra", "-Wno-sign-compare", "-Werror", "-shared", "-fPIC", "-o", library,
                    "-I%s" % (STAND_INS / "include"), *options, str(STAND_INS / (name + ".c"))], check=True)
    return library


@functools.lru_cache(maxsize=None)
def providers(configured=(), loadable=()):
    """Compiler options that make the stand-in for libibverbs name a folder with these providers."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=build_folder()))
    if configured is not None:
        (folder / "libibverbs.d").mkdir()
        for name in configured:
            (folder / "libibverbs.d" / (name + ".driver")).write_text("driver %s\n" % name)
    for name in loadable:
        shutil.copyfile(built("nccl"), folder / ("lib%s-rdmav34.so" % name))
    return ('-DCONFIG_FOLDER="%s/libibverbs.d"' % folder, '-DLIBRARY_PATTERN="%s/lib%%s-rdmav34.so"' % folder)


def recorded_bodies(name):
    """Results of a recording as {step: body}."""
    with open(REPOSITORY / "fixtures/probe" / name) as file:
        events = [json.loads(line) for line in file]
    return {event["step"]: event["body"] for event in events if event["event"] == "result"}


class Machine(Payload):
    """Base class of tests with a machine of their own: its files are in `self.root`, its libraries in `self.lib`."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(os.path.realpath(folder.name))
        self.lib = self.root / "lib"
        self.lib.mkdir()
        for folder in ("sys", "dev", "proc"):
            (self.root / folder).mkdir()
        self.write("/proc/self/schedstat", "1000000000 0 1\n")  # no process waits for a CPU

    def install(self, name, *options):
        """Installs a stand-in where dlopen finds it, replacing an installed one."""
        file, links = LIBRARIES[name]
        self.remove(name)
        shutil.copyfile(built(name, *options), self.lib / file)
        for link in links:
            (self.lib / link).symlink_to(file)

    def install_broken(self, name):
        """Installs an unloadable library, which also hides one that the real machine may have."""
        self.remove(name)
        for link in LIBRARIES[name][1]:
            (self.lib / link).write_text("")

    def remove(self, name):
        for link in LIBRARIES[name][1]:
            with contextlib.suppress(FileNotFoundError):
                (self.lib / link).unlink()

    def delete(self, path):
        """Removes one of the kernel's files or folders."""
        place = self.root / path.lstrip("/")
        shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink()

    def write(self, path, content):
        """Writes a file, named by the absolute path that the program uses."""
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode("ascii"))

    def link(self, path, target):
        """Creates a symbolic link."""
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(self.root / target.lstrip("/"))

    def add_pci_device(self, path, **files):
        """Adds a device below /sys/devices, such as pci0000:00/0000:00:06.0, with all bridges above it."""
        parts = path.split("/")
        for depth in range(2, len(parts) + 1):
            link = "/sys/bus/pci/devices/" + parts[depth - 1]
            if not (self.root / link.lstrip("/")).is_symlink():
                self.link(link, "/sys/devices/" + "/".join(parts[:depth]))
        (self.root / "sys/devices" / path).mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            self.write("/sys/devices/%s/%s" % (path, name), content)

    def body(self, step, **more):
        """The body of the step's result."""
        event = self.step(step, **more)
        self.assertEqual(event["event"], "result", event)
        self.assertIsNone(event["unclean_exit"])
        return event["body"]

    def step(self, step, **more):
        """The event that closes the step."""
        return self.last(self.run_on_machine({"steps": [step]}, **more))

    def run_on_machine(self, plan, stand_in="", replaced=None, variables=None, **more):
        """All events of a run. `replaced` maps texts of the program to their replacements."""
        text = KERNEL_PLACES.sub(lambda place: '"%s/%s' % (self.root, place.group(1)), program())
        for old, new in (replaced or {}).items():
            self.assertIn(old, text)
            text = text.replace(old, new)
        libraries = ":".join(filter(None, [str(self.lib), os.environ.get("LD_LIBRARY_PATH")]))
        env = dict(os.environ, STAND_IN=stand_in, LD_LIBRARY_PATH=libraries, **(variables or {}))
        return self.run_plan(plan, text=text, env=env, **more)


def without_root(value, root):
    """The value with the original paths of the kernel's files."""
    return json.loads(json.dumps(value).replace(str(root), ""))


@contextlib.contextmanager
def kernel_log(path, *records):
    """A stand-in for /dev/kmsg: a pipe in packet mode, which also returns one record per read(2)."""
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(path, os.O_WRONLY)
    try:
        fcntl.fcntl(writer, fcntl.F_SETFL, fcntl.fcntl(writer, fcntl.F_GETFL) | os.O_DIRECT)
        for record in records:
            os.write(writer, record.encode("ascii"))
        yield
    finally:
        os.close(writer)
        os.close(reader)
