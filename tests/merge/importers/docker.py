"""Docker with the overlay2 driver: pulls an image, and lists what its containers would get."""
import json, os, pathlib

from importers import http_socket, overlay, process


class Docker:
    def __init__(self, name, work, binaries=None):
        self.name, self.work = name, pathlib.Path(work, name)
        self.work.mkdir()
        self.socket = self.work / "socket"
        (self.work / "config.json").write_text("{}")
        path = os.environ["PATH"] + ":/usr/sbin:/sbin"
        dockerd = "dockerd"
        if binaries:
            path, dockerd = "%s:%s" % (binaries, path), str(pathlib.Path(binaries, "dockerd"))
        self.daemon = process.start(
            [dockerd, "--config-file", self.work / "config.json", "--data-root", self.work / "data", "--exec-root", self.work / "exec",
             "--pidfile", self.work / "pid", "-H", "unix://%s" % self.socket, "--storage-driver", "overlay2", "--iptables=false",
             "--ip6tables=false", "--ip-forward=false", "--ip-masq=false", "--bridge=none"],
            self.work / "log", self.answers, PATH=path)

    def answers(self):
        return self.socket.exists() and self.call("GET", "/_ping")[0] == 200

    def call(self, method, address):
        try:
            return http_socket.request(self.socket, method, address)
        except ConnectionError as error:
            return 0, str(error).encode()

    def listing(self, image):
        """(listing, None), or (None, the engine's error)."""
        status, body = self.call("POST", "/images/create?fromImage=%s&tag=latest" % image.pulled)
        error = http_socket.stream_error(body) if status == 200 else body.decode("utf-8", "replace")
        if error:
            return None, error
        status, body = self.call("GET", "/images/%s/json" % image.pulled)
        text = overlay.of_graph(json.loads(body)["GraphDriver"]["Data"], self.work)
        self.call("DELETE", "/images/%s" % image.pulled)
        return text, None

    def close(self):
        process.stop(self.daemon)
