"""Requests to an engine's API on a Unix socket."""
import http.client, json, socket


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=120)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


def request(path, method, address):
    """(status, body) of one request."""
    connection = Connection(path)
    try:
        connection.request(method, address)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def stream_error(body):
    """The error in a stream of JSON objects that reports progress, or None."""
    for line in body.decode("utf-8", "replace").splitlines():
        with_error = json.loads(line) if line.startswith("{") else {}
        if with_error.get("error"):
            return with_error["error"]
    return None
