"""Podman with the overlay driver: pulls an image, and lists what its containers would get."""
import json, pathlib

from importers import http_socket, overlay, process


class Podman:
    def __init__(self, name, work):
        self.name, self.work = name, pathlib.Path(work, name)
        self.work.mkdir()
        self.socket = self.work / "socket"
        self.daemon = process.start(
            ["podman", "--root", self.work / "root", "--runroot", self.work / "run", "--tmpdir", self.work / "tmp", "--storage-driver",
             "overlay", "--cgroup-manager", "cgroupfs", "--events-backend", "none", "system", "service", "--time=0",
             "unix://%s" % self.socket],
            self.work / "log", self.answers, TMPDIR=str(self.work))

    def answers(self):
        return self.socket.exists() and self.call("GET", "/_ping")[0] == 200

    def call(self, method, address):
        try:
            return http_socket.request(self.socket, method, address)
        except ConnectionError as error:
            return 0, str(error).encode()

    def listing(self, image):
        """(listing, None), or (None, the engine's error)."""
        status,
        body = self.call("POST", "/v4.0.0/libpod/images/pull?reference=docker://%s:latest&tlsVerify=false&quiet=true" % image.pulled)
        error = http_socket.stream_error(body) if status == 200 else body.decode("utf-8", "replace")
        if error:
            return None, error
        status, body = self.call("GET", "/v4.0.0/libpod/images/%s:latest/json" % image.pulled)
        text = overlay.of_graph(json.loads(body)["GraphDriver"]["Data"], self.work)
        self.call("DELETE", "/v4.0.0/libpod/images/%s:latest?force=true" % image.pulled)
        return text, None

    def close(self):
        process.stop(self.daemon)
