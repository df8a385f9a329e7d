"""Reading and writing of OCI image layouts."""
import contextlib, gzip, hashlib, json, pathlib, subprocess

LAYER = "application/vnd.oci.image.layer.v1.tar"


class Image:
    """The image of LAYOUT[:REF]; without REF, the layout's only image."""

    def __init__(self, name):
        folder, _, ref = name.rpartition(":")
        if not folder:
            folder, ref = name, None
        self.folder = pathlib.Path(folder)
        manifests = json.loads((self.folder / "index.json").read_text())["manifests"]
        chosen = [m for m in manifests if ref in (None, (m.get("annotations") or {}).get(REF_NAME))]
        if len(chosen) != 1:
            raise SystemExit("%s: %d images match" % (name, len(chosen)))
        self.descriptor = chosen[0]
        self.manifest = json.loads(self.blob(chosen[0]))

    def path(self, descriptor):
        return self.folder.joinpath("blobs", *descriptor["digest"].split(":"))

    def blob(self, descriptor):
        return self.path(descriptor).read_bytes()

REF_NAME = "org.opencontainers.image.ref.name"


@contextlib.contextmanager
def tar_of(path):
    """A layer's tar as a stream, decompressed if needed."""
    with open(path, "rb", buffering=0) as raw:
        magic = raw.read(4)
        raw.seek(0)
        if magic[:2] == b"\x1f\x8b":
            with gzip.open(raw) as stream:
                yield stream
        elif magic == b"\x28\xb5\x2f\xfd":
            with subprocess.Popen(["zstd", "-qdc"], stdin=raw, stdout=subprocess.PIPE) as process:
                yield process.stdout
                process.stdout.read()
            if process.returncode:
                raise OSError("%s: zstd failed" % path)
        else:
            yield raw


def zstd(data):
    return subprocess.run(["zstd", "-q"], input=data, check=True, stdout=subprocess.PIPE).stdout


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def write(folder, layers):
    """Writes a layout of one image, `latest`. `layers` are pairs (tar, compression): "", "gzip" or "zstd"."""
    def compressed(tar, how):
        if how == "gzip":
            half = len(tar) // 2  # two members, as parallel compressors write
            return gzip.compress(tar[:half], mtime=0) + gzip.compress(tar[half:], mtime=0)
        return zstd(tar) if how == "zstd" else tar

    write_blobs(folder, [(compressed(tar, how), LAYER + ("+" + how if how else ""), digest(tar), True) for tar, how in layers])


def write_blobs(folder, layers):
    """Writes a layout of one image, `latest`. `layers` are (blob, media type, diff ID, whether the blob is there). Returns the bytes of
    the manifest, and the blobs by digest."""
    folder, blobs = pathlib.Path(folder), {}

    def put(kind, data, there=True):
        if there:
            blobs[digest(data)] = data
        return {"mediaType": kind, "digest": digest(data), "size": len(data)}

    descriptors = [put(kind, blob, there) for blob, kind, _, there in layers]
    config = put("application/vnd.oci.image.config.v1+json", json.dumps({
        "architecture": "amd64", "os": "linux", "config": {},
        "history": [{"created_by": "layer %d" % n} for n in range(len(layers))],
        "rootfs": {"type": "layers", "diff_ids": [diff_id for _, _, diff_id, _ in layers]},
    }).encode())
    kind = "application/vnd.oci.image.manifest.v1+json"
    manifest = json.dumps({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": descriptors}).encode()
    entry = dict(put(kind, manifest), annotations={REF_NAME: "latest"})
    (folder / "blobs/sha256").mkdir(parents=True)
    for name, data in blobs.items():
        folder.joinpath("blobs", *name.split(":")).write_bytes(data)
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return manifest, blobs
