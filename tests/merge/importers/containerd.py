"""containerd with the overlayfs snapshotter: pulls an image with `ctr`, and lists what its containers would get."""
import os, pathlib, subprocess, tempfile

import listing
from importers import overlay, process

CONFIG = """version = 2
root = "%(work)s/root"
state = "%(work)s/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "%(work)s/socket"
[plugins."io.containerd.internal.v1.opt"]
  path = "%(work)s/opt"
"""


class Containerd:
    def __init__(self, name, work, binaries=None):
        self.name, self.work = name, pathlib.Path(work, name)
        self.work.mkdir()
        self.ctr = str(pathlib.Path(binaries, "ctr")) if binaries else "ctr"
        (self.work / "config.toml").write_text(CONFIG % {"work": self.work})
        self.daemon = process.start([str(pathlib.Path(binaries, "containerd")) if binaries else "containerd", "--config",
                                     self.work / "config.toml"], self.work / "log", self.answers)

    def answers(self):
        return (self.work / "socket").exists() and self.call("version").returncode == 0

    def call(self, *arguments):
        return subprocess.run([self.ctr, "-a", self.work / "socket", "-n", "test", *arguments], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")

    def listing(self, image):
        """(listing, None), or (None, the engine's error)."""
        name = image.pulled + ":latest"
        pulled = self.call("images", "pull", "--plain-http", "--snapshotter", "overlayfs", *PLATFORM, name)
        if pulled.returncode:
            return None, pulled.stdout.splitlines()[-1]
        root = tempfile.mkdtemp(dir=self.work)
        # Writable, as a container's: a read-only mount of one layer is not an overlay, and shows its attributes and devices.
        mounted = self.call("images", "mount", "--rw", "--snapshotter", "overlayfs", name, root)
        if mounted.returncode:
            return None, mounted.stdout.splitlines()[-1]
        try:
            return listing.of_folder(root), None
        finally:
            overlay.unmount(root)
            os.rmdir(root)

    def close(self):
        process.stop(self.daemon)


PLATFORM = ("--platform", "linux/amd64")
