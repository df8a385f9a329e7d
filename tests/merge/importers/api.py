"""An engine that serves an API on a Unix socket: Docker, and Podman."""
import http.client, json, pathlib, socket

from importers import overlay, process


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=120)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


class Engine:
    """`pull`, `image` and `removal` are addresses of the API, with %s for the name of an image without its tag."""
    pull = image = removal = None

    def __init__(self, name, work):
        self.name, self.work = name, pathlib.Path(work, name)
        self.work.mkdir()
        self.socket = self.work / "socket"
        self.daemon = None

    def start(self, command, **environment):
        self.daemon = process.start(command, self.work / "log", self.answers, **environment)

    def answers(self):
        return self.socket.exists() and self.call("GET", "/_ping")[0] == 200

    def call(self, method, address):
        """(status, body) of one request; 0 if there is no connection."""
        connection = Connection(self.socket)
        try:
            connection.request(method, address)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except ConnectionError as error:
            return 0, str(error).encode()
        finally:
            connection.close()

    def listing(self, image):
        """(listing, None), or (None, the engine's error)."""
        status, body = self.call("POST", self.pull % image.pulled)
        error = stream_error(body) if status == 200 else body.decode("utf-8", "replace")
        if error:
            return None, error
        _, body = self.call("GET", self.image % image.pulled)
        text = overlay.of_graph(json.loads(body)["GraphDriver"]["Data"], self.work)
        self.call("DELETE", self.removal % image.pulled)
        return text, None

    def close(self):
        process.stop(self.daemon)


def stream_error(body):
    """The error in a stream of JSON objects that reports progress, or None."""
    steps = [json.loads(line) for line in body.decode("utf-8", "replace").splitlines() if line.startswith("{")]
    return next((step["error"] for step in steps if step.get("error")), None)
