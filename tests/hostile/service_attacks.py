"""Registries, engines and credential helpers that do not end, or say too much."""
import http.server, json, os, socketserver, threading, time

from attack import Run, attack
from made import CONFIG, MANIFEST
import oci

SECRET = "s3cret-of-the-test"


class Service(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.answer(self)

    do_POST = do_GET

    def reply(self, status, body, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def endless(self, part, pause=0.0, head=b"", length=None):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(head)
        while not self.server.is_over:
            self.wfile.write(part)
            time.sleep(pause)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    address_family = 2
    is_over = False

    def handle_error(self, *_):
        pass


class UnixServer(Server):
    address_family = 1

    def server_bind(self):
        socketserver.TCPServer.server_bind(self)
        self.server_name = self.server_port = "engine"

    def get_request(self):
        request, _ = self.socket.accept()
        return request, ("local", 0)


def serve(kind, address, answer):
    server = kind(address, Service)
    server.answer = answer
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def stop():
        server.is_over = True
        server.shutdown()
        server.server_close()
    return server, stop


PATHS = {"version": "/version", "ping": "/_ping", "info": "/info", "inspect": "/images/", "create": "/containers/create"}


@attack(quick={"endless": "inspect", "part": "list"}, endless=sorted(PATHS), part=["object", "string", "list", "slow"])
def endless_engine(folder, endless, part):
    text, head, pause = {"object": (b'"k":{},' * 9_000, b"{", 0), "string": (b"a" * 65_536, b'{"Version":"', 0), "list": (b"[" * 65_536, b"", 0),
                         "slow": (b" ", b"{", 1)}[part]
    image = {"Id": "sha256:" + "0" * 64, "Config": {}}
    known = {"/images/" if endless == "create" else "/none": image,
             "/version": {"Version": "28.5.2", "ApiVersion": "1.51", "MinAPIVersion": "1.24"}, "/info": {"DockerRootDir": "/x", "OSType": "linux"}}

    def answer(request):
        path = "/" + request.path.split("/", 2)[-1] if request.path.startswith("/v1.") else request.path
        if path.startswith(PATHS[endless]):
            return request.endless(text, pause, head)
        if path == "/_ping":
            return request.reply(200, b"OK", Api_Version="1.51")
        for name, body in known.items():
            if path.startswith(name):
                return request.reply(200, json.dumps(body).encode(), Content_Type="application/json")
        return request.reply(404, b'{"message":"no"}', Content_Type="application/json")

    path = str(folder / "engine.sock")
    _, stop = serve(UnixServer, path, answer)
    verb = ["probe", "--quick"] if endless == "create" else ["check", "--cache", "off"]
    return Run([*verb, "--no-config", "docker-daemon:x:latest"], exits=(2,), environment={"DOCKER_HOST": "unix://" + path}, stop=stop)


def registry(folder, answer, *options, **settings):
    server, stop = serve(Server, ("127.0.0.1", 0), answer)
    image = "docker://127.0.0.1:%d/x:latest" % server.server_address[1]
    return Run(["check", "--no-config", "--cache", "off", *options, image], exits=(2,), stop=stop,
               environment={"DOCKER_HOST": "unix:///nonexistent", **settings})


@attack(quick={"which": "manifest", "how": "endless"}, which=["manifest", "config", "layer"], how=["byte a second", "byte a request", "endless"])
def slow_registry(folder, which, how):
    layer, config = bytes(100_000), json.dumps({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [oci.digest(bytes(100_000))]}}).encode()
    entries = [{"mediaType": CONFIG, "digest": oci.digest(config), "size": len(config)}, {"mediaType": oci.LAYER, "digest": oci.digest(layer), "size": len(layer)}]
    manifest = json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": entries[0], "layers": entries[1:]}).encode()

    def answer(request):
        body = {"manifest": manifest, "config": config, "layer": layer}
        name = "manifest" if "/manifests/" in request.path else "config" if request.path.endswith(entries[0]["digest"]) else "layer" if "/blobs/" in request.path else ""
        if not name:
            return request.reply(200, b"{}")
        data = body[name]
        if name != which:
            return request.reply(200, data, Content_Type=MANIFEST)
        if how == "byte a second":
            return request.endless(b" ", 1, length=len(data) if name != "manifest" else 4_000_000)
        if how == "endless":
            return request.endless(b" " * 65_536, 0)
        first = int((request.headers.get("Range") or "bytes=0-").split("=")[1].split("-")[0])
        request.send_response(206 if first else 200)
        if first:
            request.send_header("Content-Range", "bytes %d-%d/%d" % (first, len(data) - 1, len(data)))
        request.send_header("Content-Length", str(len(data) - first))
        request.end_headers()
        request.wfile.write(data[first:first + 1])
        request.close_connection = True
    return registry(folder, answer)


@attack(quick={"where": "message"}, where=["message", "code", "details", "redirect", "realm"])
def registry_that_echoes(folder, where):
    """A registry that sends back what it was given."""
    import base64
    (folder / "auth.json").write_text("")

    def answer(request):
        said = request.headers.get("Authorization")
        if not said:
            return request.reply(401, b"{}", WWW_Authenticate='Basic realm="x"')
        plain = base64.b64decode(said.split()[1]).decode()
        text = "you sent %s, which is %s\n::error::%s" % (said, plain, plain)
        if where == "redirect":
            return request.reply(302, b"", Location="http://127.0.0.1:1/?" + said.replace(" ", "+"))
        if where == "realm":
            return request.reply(401, b"{}", WWW_Authenticate='Bearer realm="http://127.0.0.1:1/%s",service="%s"' % (said.split()[1], plain))
        body = {"message": {"errors": [{"code": "DENIED", "message": text}]}, "code": {"errors": [{"code": text, "message": ""}]}, "details": {"details": text}}
        return request.reply(403, json.dumps(body[where]).encode())
    run = registry(folder, answer, "--authfile", "auth.json")
    host = run.arguments[-1].split("/")[2]
    login = base64.b64encode(("user:" + SECRET).encode()).decode()
    (folder / "auth.json").write_text(json.dumps({"auths": {host: {"auth": login}}}))
    run.hides = (SECRET, login)
    return run


HELPERS = {
    "hangs": "exec sleep 600", "floods": "exec cat /dev/zero", "child": "sleep 600 & echo '{}'", "fails": "echo no >&2; exit 1",
    "does not read": "exec 0<&-; echo '{\"Username\":\"u\",\"Secret\":\"" + SECRET + "\"}'", "says nothing": "exit 0", "says junk": "echo '" + SECRET + " {'",
    "floods errors": "exec cat /dev/zero >&2",
}


@attack(quick={"helper": "floods"}, helper=sorted(HELPERS))
def credential_helper(folder, helper):
    program = folder / "docker-credential-evil"
    program.write_text("#!/bin/sh\n" + HELPERS[helper] + "\n")
    program.chmod(0o755)
    run = registry(folder, lambda request: request.reply(401, b"{}", WWW_Authenticate='Basic realm="x"'), "--authfile", "auth.json",
                   PATH=str(folder) + ":" + os.environ["PATH"])
    host = run.arguments[-1].split("/")[2]
    (folder / "auth.json").write_text(json.dumps({"credHelpers": {host: "evil"}}))
    run.hides = (SECRET,)
    return run


@attack(quick={"value": "query"}, value=["query", "user", "path"])
def secret_in_docker_host(folder, value):
    url = {"query": "tcp://127.0.0.1:1/?password=%s", "user": "tcp://user:%s@127.0.0.1:1", "path": "tcp://127.0.0.1:1/#%s"}[value] % SECRET
    return Run(["check", "--no-config", "--cache", "off", "docker-daemon:x"], exits=(2,), hides=(SECRET,), environment={"DOCKER_HOST": url})
