"""A release of the program under test, served on 127.0.0.1 as a forge serves it."""
import contextlib, functools, hashlib, http.server, io, json, os, pathlib, platform, shutil, subprocess, tarfile, threading, tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("NCCLCHECK_PROGRAM") or ROOT / "target/release/ncclcheck").resolve()
PACKAGE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
VERSION = PACKAGE["version"]
REPOSITORY = PACKAGE["repository"]
# As `uses` names it: OWNER/ncclcheck.
OWN = REPOSITORY.split("/", 3)[3]
IMAGES = ROOT / "fixtures/images"


def require_answers():
    """Ends the tests of a module where the program under test does not work at all."""
    command = [PROGRAM, "check", "--no-config", "--cache", "off", "--format", "json", IMAGES / "good.oci.tar"]
    try:
        report = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    except ValueError:
        report = {}
    if not report.get("judgements"):
        raise RuntimeError(f"no answer: {PROGRAM} judges nothing")


def libc():
    return "gnu" if subprocess.run(["getconf", "GNU_LIBC_VERSION"], capture_output=True).returncode == 0 else "musl"


NAME = f"ncclcheck-{VERSION}-{platform.machine()}-unknown-linux-{libc()}"


def archive(program, name=NAME):
    """The archive of a release, with this program."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=1) as tar:
        member = tarfile.TarInfo(f"{name}/ncclcheck")
        member.size, member.mode = len(program), 0o755
        tar.addfile(member, io.BytesIO(program))
    return stream.getvalue()


def write(folder):
    """Writes a release into a folder of releases, and returns the SHA-256 of its archive."""
    content = archive(small_program())
    folder = folder / f"v{VERSION}"
    folder.mkdir(parents=True)
    (folder / f"{NAME}.tar.gz").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    (folder / "SHA256SUMS").write_text(f"{digest}  {NAME}.tar.gz\n")
    for script in ("install", "check"):
        shutil.copy(ROOT / "scripts/packages/ci" / script, folder / f"{script}-ncclcheck")
    return digest


def program_folder(folder):
    """A folder for PATH with the program under test."""
    folder = folder / "program"
    folder.mkdir()
    (folder / "ncclcheck").write_bytes(small_program())
    (folder / "ncclcheck").chmod(0o755)
    return folder


def small_program():
    """A script that starts the program under test: a release build with its debug information has 180 MB."""
    return f'#!/bin/sh\nexec "{PROGRAM}" "$@"\n'.encode()


@contextlib.contextmanager
def served(folder):
    """Serves a folder, and gives its URL and the paths that were asked for."""
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            asked.append(self.path)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
