"""Images for attacks: the small world `good`, or nothing, with layers and a configuration of the attack."""
import hashlib, io, itertools, json, pathlib, sys, tarfile, zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/merge"))
import oci, tarball  # noqa: E402

SITE = b"usr/local/lib/python3.11/dist-packages"
CONFIG = "application/vnd.oci.image.config.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
END = b"\0" * 1024


class Layout:
    """An OCI layout that starts empty, or as a copy of a small world."""

    def __init__(self, folder, world="good"):
        self.folder = pathlib.Path(folder) / "image"
        self.blobs = self.folder / "blobs/sha256"
        self.layers, self.config = [], {"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": []}}
        if world:
            with tarfile.open(ROOT / "fixtures/images" / (world + ".oci.tar")) as archive:
                archive.extractall(self.folder)
            manifest = json.loads(self.read(json.loads((self.folder / "index.json").read_text())["manifests"][0]))
            self.layers, self.config = manifest["layers"], json.loads(self.read(manifest["config"]))
            self.config.pop("history", None)
        self.blobs.mkdir(parents=True, exist_ok=True)

    def read(self, descriptor):
        return self.blobs.joinpath(descriptor["digest"].split(":")[1]).read_bytes()

    def put(self, kind, data, **fields):
        """Stores a blob and returns its descriptor."""
        digest = oci.digest(data)
        (self.blobs / digest.split(":")[1]).write_bytes(data)
        return {"mediaType": kind, "digest": digest, "size": len(data), **fields}

    def layer(self, members, kind=oci.LAYER + "+gzip", **fields):
        """Appends a layer of these members, compressed as they come: most tars are much larger than their layers."""
        packer, digest, parts = zlib.compressobj(6, wbits=31), hashlib.sha256(), []
        for member in itertools.chain([members] if isinstance(members, bytes) else members, [END]):
            digest.update(member)
            parts.append(packer.compress(member))
        return self.blob(b"".join(parts) + packer.flush(), "sha256:" + digest.hexdigest(), kind, **fields)

    def blob(self, data, diff_id, kind=oci.LAYER + "+gzip", **fields):
        """Appends a layer that is compressed already."""
        self.layers.append(self.put(kind, data, **fields))
        self.config["rootfs"]["diff_ids"].append(diff_id)
        return self

    def set_environment(self, pairs):
        self.config.setdefault("config", {})["Env"] = pairs
        return self

    def manifest(self, **fields):
        config = self.put(CONFIG, json.dumps(self.config).encode())
        document = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": self.layers, **fields}
        return self.put(MANIFEST, json.dumps(document).encode())

    def finish(self, manifests=None):
        """Writes the index and returns the folder."""
        manifests = [self.manifest()] if manifests is None else manifests
        (self.folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}))
        (self.folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        return self.folder


def interpreter(image, world="good"):
    """The bytes of a program that runs: the world's Python."""
    for layer in image.layers:
        with tarfile.open(fileobj=io.BytesIO(image.read(layer))) as archive:
            if "usr/bin/python3.11" in archive.getnames():
                return archive.extractfile("usr/bin/python3.11").read()
    raise ValueError("no program in " + world)


def with_shell(folder, world="good"):
    """A layout whose scripts are evaluated: no world has shells, without which an engine starts none."""
    image = Layout(folder, world)
    program = interpreter(image, world)
    return image.layer(member(b"bin/sh", program, mode=0o755) + member(b"bin/bash", program, mode=0o755))


def of_layer(folder, members, world="good"):
    """A layout with one more layer of these members."""
    return Layout(folder, world).layer(members).finish()


def of_file(folder, path, data, world="good"):
    return of_layer(folder, member(path, data), world)


def member(path, data, **fields):
    """A file of any path."""
    head = b""
    if len(path) > 99:
        head = pax(tarball.record(b"path", path))
    return head + tarball.header(path[:99], size=len(data), **fields) + tarball.padded(data)


def pax(records, kind=b"x"):
    return tarball.header(b"PaxHeaders", kind, size=len(records)) + tarball.padded(records)


def hole(path, size):
    """A sparse file that is one hole and a last byte, which makes a reader fill the hole."""
    records = b"".join(tarball.record(b"GNU.sparse." + key, value) for key, value in [
        (b"major", b"0"), (b"minor", b"1"), (b"name", path), (b"size", b"%d" % size), (b"numblocks", b"1"), (b"map", b"%d,1" % (size - 1))])
    return pax(records) + tarball.file(b"hole", 1)
