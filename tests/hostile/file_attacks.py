"""Other things than files where a file is expected: FIFOs, devices, links, sockets, holes."""
import json, os, socket

from attack import Run, attack, check
from made import ROOT, Layout

GOOD = ROOT / "fixtures/images/good.oci.tar"
BAD = ["fifo", "socket", "zero", "folder", "loop", "hole"]


def special(path, kind):
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        # A socket's path has at most 108 bytes, and a cache entry lies deep.
        folder = os.open(os.path.dirname(path), os.O_PATH)
        socket.socket(socket.AF_UNIX).bind("/proc/self/fd/%d/%s" % (folder, os.path.basename(path)))
        os.close(folder)
    elif kind == "zero":
        os.symlink("/dev/zero", path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        os.symlink(path.name, path)
    else:
        with open(path, "wb") as file:
            file.truncate(1 << 42)


@attack(quick={"kind": "fifo", "part": "layer"}, kind=BAD, part=["layer", "config", "manifest", "index.json", "oci-layout"])
def files_of_a_layout(folder, kind, part):
    image = Layout(folder)
    entry = image.manifest()
    image.finish([entry])
    digest = {"layer": image.layers[-1], "config": json.loads(image.read(entry))["config"], "manifest": entry}.get(part)
    path = image.blobs / digest["digest"].split(":")[1] if digest else image.folder / part
    path.unlink()
    special(path, kind)
    return check("oci:%s" % image.folder, exits=(0, 2) if part == "oci-layout" else (2,))


@attack(quick={"kind": "zero"}, kind=BAD)
def archives(folder, kind):
    special(folder / "image.tar", kind)
    return check("oci-archive:image.tar", exits=(2,))


OPTIONS = {"--config": [], "--launch": [], "--host": [], "--baseline": [], "--authfile": [], "--dockerfile": [], "--list": [], "--expect": []}


@attack(quick={"kind": "fifo", "option": "--config"}, kind=BAD, option=sorted(OPTIONS))
def files_of_options(folder, kind, option):
    special(folder / "x", kind)
    words = ["probe", option, "x"] if option == "--expect" else ["check", "--cache", "off", option, "x"]
    image = "docker://127.0.0.1:1/x" if option == "--authfile" else str(GOOD)
    if option == "--host":
        words[-1] = "./x"
    return Run(words + [image], exits=(2,), environment={"DOCKER_HOST": "unix:///nonexistent"})


@attack(quick={"kind": "fifo"}, kind=BAD)
def cache_entries(folder, kind):
    """The whole cache, where each entry is something else. `run` fills the cache first."""
    return Run(["check", "--no-config", str(GOOD)], exits=(0,), environment={"XDG_CACHE_HOME": str(folder / "cache"), "SPECIAL": kind})


@attack(quick={"path": "etc/nccl.conf", "size": 1 << 42}, path=["etc/nccl.conf", "etc/passwd", "usr/lib/libtorch_cpu.so", "data.bin"],
        size=[1 << 24, 100 << 30, 1 << 42])
def holes_of_a_root(folder, path, size):
    target = folder / "root" / path
    target.parent.mkdir(parents=True)
    (folder / "root/etc").mkdir(exist_ok=True)
    with open(target, "wb") as file:
        file.write(b"\x7fELF\2\1\1" + bytes(100) if path.endswith(".so") else b"NCCL_DEBUG=INFO\n")
        file.truncate(size)
    return check("root:root")


@attack(quick={"kind": "fifo"}, kind=BAD)
def entries_of_a_root(folder, kind):
    (folder / "root/etc").mkdir(parents=True)
    special(folder / "root/etc/nccl.conf", kind)
    return check("root:root")
