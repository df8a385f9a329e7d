"""Docker with the driver overlay2."""
import os, pathlib

from importers import api


class Docker(api.Engine):
    pull, image, removal = "/images/create?fromImage=%s&tag=latest", "/images/%s/json", "/images/%s"

    def __init__(self, name, work, binaries=None):
        """With `binaries`, those of this folder instead of the machine's."""
        super().__init__(name, work)
        (self.work / "config.json").write_text("{}")
        path = ":".join(([str(binaries)] if binaries else []) + [os.environ["PATH"], "/usr/sbin", "/sbin"])
        self.start(
            [pathlib.Path(binaries, "dockerd") if binaries else "dockerd", "--config-file", self.work / "config.json",
             "--data-root", self.work / "data", "--exec-root", self.work / "exec", "--pidfile", self.work / "pid",
             "-H", "unix://%s" % self.socket, "--storage-driver", "overlay2", "--iptables=false", "--ip6tables=false",
             "--ip-forward=false", "--ip-masq=false", "--bridge=none"], PATH=path)
