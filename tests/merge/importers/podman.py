"""Podman with the driver overlay."""
from importers import api


class Podman(api.Engine):
    pull = "/v4.0.0/libpod/images/pull?reference=docker://%s:latest&tlsVerify=false&quiet=true"
    image, removal = "/v4.0.0/libpod/images/%s:latest/json", "/v4.0.0/libpod/images/%s:latest?force=true"

    def __init__(self, name, work):
        super().__init__(name, work)
        self.start(
            ["podman", "--root", self.work / "root", "--runroot", self.work / "run", "--tmpdir", self.work / "tmp",
             "--storage-driver", "overlay", "--cgroup-manager", "cgroupfs", "--events-backend", "none",
             "system", "service", "--time=0", "unix://%s" % self.socket], TMPDIR=str(self.work))
