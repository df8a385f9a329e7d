"""A registry on a loopback port that takes and serves images in memory, with the referrers API (OCI distribution-spec, "Listing Referrers").
It checks nothing: Debian has no registry with this API."""
import contextlib, hashlib, http.server, json, re, threading, urllib.parse

BLOB = re.compile(r"/v2/(.+)/blobs/(sha256:[0-9a-f]{64})")
UPLOAD = re.compile(r"/v2/(.+)/blobs/uploads/(\w*)")
MANIFEST = re.compile(r"/v2/(.+)/manifests/([^/]+)")
REFERRERS = re.compile(r"/v2/(.+)/referrers/(sha256:[0-9a-f]{64})")
TAGS = re.compile(r"/v2/(.+)/tags/list")


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address(self):
        address = urllib.parse.urlsplit(self.path)
        return address.path, urllib.parse.parse_qs(address.query)

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        data = b""
        while size := int(self.rfile.readline(), 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def answer(self, status, data=b"", **headers):
        self.send_response(status)
        for name, value in {"Content_Length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def do_GET(self):
        path, _ = self.address()
        if path == "/v2/":
            return self.answer(200, b"{}")
        if found := BLOB.fullmatch(path):
            data = self.server.blobs.get(found[2])
            return self.answer(404) if data is None else self.answer(200, data, Docker_Content_Digest=found[2])
        if found := MANIFEST.fullmatch(path):
            kind, data = self.server.manifests.get(found.groups(), (None, None))
            return self.answer(404) if kind is None else self.answer(200, data, Content_Type=kind, Docker_Content_Digest=digest(data))
        if found := REFERRERS.fullmatch(path):
            index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": self.referrers(*found.groups())}
            return self.answer(200, json.dumps(index).encode(), Content_Type=index["mediaType"])
        if found := TAGS.fullmatch(path):
            tags = sorted(tag for name, tag in self.server.manifests if name == found[1] and ":" not in tag)
            return self.answer(200, json.dumps({"name": found[1], "tags": tags}).encode(), Content_Type="application/json")
        return self.answer(404)

    do_HEAD = do_GET

    def referrers(self, wanted, subject):
        """Descriptors of the manifests whose subject has this digest."""
        found = []
        for (name, key), (kind, data) in self.server.manifests.items():
            manifest = json.loads(data)
            if name == wanted and ":" in key and manifest.get("subject", {}).get("digest") == subject:
                found.append({"mediaType": kind, "digest": key, "size": len(data), "annotations": manifest.get("annotations", {}),
                              "artifactType": manifest.get("artifactType") or manifest["config"]["mediaType"]})
        return found

    def do_POST(self):
        path, _ = self.address()
        self.body()
        upload = str(len(self.server.uploads))
        self.server.uploads[upload] = b""
        self.answer(202, Location=f"{path.rstrip('/')}/{upload}")

    def do_PATCH(self):
        path, _ = self.address()
        self.server.uploads[UPLOAD.fullmatch(path)[2]] += self.body()
        self.answer(202, Location=path)

    def do_PUT(self):
        path, query = self.address()
        data = self.body()
        if found := UPLOAD.fullmatch(path):
            self.server.blobs[query["digest"][0]] = self.server.uploads.pop(found[2]) + data
            return self.answer(201)
        name, key = MANIFEST.fullmatch(path).groups()
        entry = (self.headers["Content-Type"], data)
        self.server.manifests[name, key] = self.server.manifests[name, digest(data)] = entry
        subject = json.loads(data).get("subject")
        return self.answer(201, Docker_Content_Digest=digest(data), **({"OCI_Subject": subject["digest"]} if subject else {}))

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def with_referrers():
    """The address of a registry with the referrers API, while it runs."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.blobs, server.manifests, server.uploads = {}, {}, {}
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield "127.0.0.1:%d" % server.server_address[1]
        server.shutdown()
