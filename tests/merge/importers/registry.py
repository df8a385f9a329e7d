"""A registry on a loopback port that serves images from memory: only what a pull needs, and without checks of its own."""
import http.server, json, threading

from oci import digest


class Registry:
    def __init__(self):
        self.manifests, self.blobs = {}, {}
        store = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self):
                self.answer(body=False)

            def do_GET(self):
                self.answer(body=True)

            def answer(self, body):
                found = store.find(self.path)
                kind, data = found or ("text/plain", b"not found")
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.send_header("Docker-Content-Digest", digest(data))
                self.end_headers()
                if body:
                    self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = "127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def find(self, path):
        """(content type, bytes) of an address, or None."""
        parts = path.split("?")[0].strip("/").split("/")
        if parts == ["v2"]:
            return "application/json", b"{}"
        if len(parts) < 4 or parts[0] != "v2":
            return None
        name, kind, key = "/".join(parts[1:-2]), parts[-2], parts[-1]
        if kind == "blobs":
            return ("application/octet-stream", self.blobs[key]) if key in self.blobs else None
        return self.manifests.get((name, key))

    def put(self, name, manifest, blobs):
        """Serves an image as NAME:latest. `blobs` are a dictionary by digest."""
        self.blobs.update(blobs)
        entry = (json.loads(manifest)["mediaType"], manifest)
        self.manifests[name, "latest"] = self.manifests[name, digest(manifest)] = entry

    def close(self):
        self.server.shutdown()
        self.server.server_close()
