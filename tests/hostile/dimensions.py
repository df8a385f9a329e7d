"""Inputs with one dimension of a given size, for `doublings`."""
import dataclasses, functools, gzip, json, struct, subprocess

import archive_attacks, document_attacks, elf, layer_attacks, library_attacks, oci, tarball, text_attacks
from attack import Run, check
from made import INDEX, ROOT, SITE, Layout, member, of_file, of_layer, pax, with_shell

GOOD = ROOT / "fixtures/images/good.oci.tar"
ALL = []


@dataclasses.dataclass
class Dimension:
    """`make(folder, size)` writes an input and returns a Run; `size` is the smallest of the three."""
    name: str
    make: object
    size: int
    quick: bool


def dimension(name, size, make=None, quick=False):
    """Registers a dimension; a decorator without `make`."""
    if make is None:
        return functools.partial(dimension, name, size, quick=quick)
    ALL.append(Dimension(name, make, size, quick))
    return make


def inspect(run, *options):
    """The same run without rules, which are a constant and by far the largest part of a check of a small image."""
    words = [word for word in run.arguments[1:] if word != "--no-config"]
    return dataclasses.replace(run, arguments=["inspect", *options, *words])


def inspected(make, *options):
    return lambda folder, size: inspect(make(folder, size), *options)


def facts(name, size, make, quick=False):
    """A dimension of an image whose facts are read."""
    dimension(name, size, inspected(make), quick)


def files(name, size, make, quick=False):
    """A dimension of an image whose layers are only merged and listed."""
    dimension(name, size, inspected(make, "--files"), quick)


def layer(name, size, one, quick=False, first=()):
    """A layer of members `one(number)` behind those of `first`."""
    files(name, size, lambda folder, n: check(of_layer(folder, [*first, *(one(number) for number in range(n))])), quick)


def text(name, size, path, line, quick=False, head=b""):
    """A file of lines `line % number`."""
    facts(name, size, lambda folder, n: check(of_file(folder, path, head + b"".join(line % number for number in range(n)))), quick)


def config(name, size, change, quick=False):
    """An image whose configuration `change(config, size)` edits."""
    def make(folder, n):
        image = Layout(folder)
        change(image.config, n)
        return check(image.finish())
    facts(name, size, make, quick)


def library(name, size, build, path=library_attacks.TORCH, quick=False):
    """A library that `build(library, size)` fills."""
    facts(name, size, lambda folder, n: library_attacks.library(folder, path, lambda made: build(made, n)), quick)


# ---- tars ----

layer("entries in one folder", 2_000, lambda n: tarball.header(b"f/%07d" % n), True)
layer("folders", 2_000, lambda n: tarball.header(b"d%06d/f" % n))
# The depth of one path is not a dimension: a path has at most 4,096 bytes, and each of its folders has a path of its own.
facts("deep paths", 10, lambda folder, n: layer_attacks.deep_paths(folder, n, 1_000), True)
facts("length of paths", 900, lambda folder, n: layer_attacks.long_paths(folder, 1_000, n))
files("length of link targets", 900, lambda folder, n: layer_attacks.long_link_targets(folder, 1_000, n))
layer("whiteouts", 3_000, lambda n: tarball.header(b"usr/lib/.wh.%07d" % n), True)
layer("whiteouts of what is there", 2_000, lambda n: tarball.header(b"w/.wh.%07d" % n), first=[tarball.header(b"w/f")])
files("opaque layers", 30, lambda folder, n: layer_attacks.opaque_layers(folder, n, 20))
layer("hard links to one file", 2_000, lambda n: tarball.header(b"h/%07d" % n, b"1", link=b"f"), first=[tarball.header(b"f")])
layer("chain of hard links", 2_000, lambda n: tarball.header(b"h/%07d" % n, b"1", link=b"h/%07d" % (n - 1)) if n else tarball.header(b"h/%07d" % n), True)
layer("symlinks to one file", 2_000, lambda n: tarball.symlink(b"s/%07d" % n, b"../etc/passwd"))
files("chains of links", 300, lambda folder, n: layer_attacks.chains_of_links(folder, 40, n))
layer("links that lead to libraries", 300, lambda n: tarball.symlink(b"usr/lib/libx%05d.so" % n, b"libc.so.6"))
files("PAX records of a member", 2_000, lambda folder, n: layer_attacks.own_records(folder, n, 10))
files("global PAX records", 4_000, lambda folder, n: layer_attacks.global_keys(folder, n, 10))
files("global PAX headers", 2_000, lambda folder, n: layer_attacks.global_records(folder, n, 10))
layer("GNU long names", 1_000, lambda n: tarball.long(b"L", b"n" * 150 + b"%06d" % n) + tarball.header(b"n"))
layer("GNU long links", 1_000, lambda n: tarball.long(b"K", b"n" * 150 + b"%06d" % n) + tarball.symlink(b"l/%06d" % n, b"n"))
files("sparse extents", 12_000, lambda folder, n: layer_attacks.sparse_maps(folder, n, 4), True)


# ---- compression ----

files("members of gzip", 1_024, lambda folder, n: layer_attacks.members_of_gzip(folder, n))


@functools.partial(files, "frames of zstd", 1_000)
def zstd_frames(folder, n):
    frame, end = oci.zstd(bytes(512)), oci.zstd(b"")
    return check(Layout(folder).blob(frame * n + end, oci.digest(bytes(512 * n)), oci.LAYER + "+zstd").finish())


@functools.partial(dimension, "entries of a squashfs", 1_000)
def squashfs(folder, n):
    root = folder / "root"
    for number in range(n):
        place = root / ("d%d" % (number % 10)) / ("f%06d" % number)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    subprocess.run(["mksquashfs", root, folder / "image.sqsh", "-quiet", "-no-progress", "-processors", "1"], check=True, stdout=subprocess.DEVNULL)
    return inspect(check("sqsh:image.sqsh"), "--files")


# ---- documents ----

@functools.partial(files, "layers", 60, quick=True)
def layers(folder, n):
    image = Layout(folder)
    for number in range(n):
        image.layer([tarball.header(b"l/%04d" % number)])
    return check(image.finish())


files("layers that repeat", 120, lambda folder, n: document_attacks.layers_that_repeat(folder, n))
files("descriptors in an index", 1_000, lambda folder, n: document_attacks.manifests_that_repeat(folder, n))


@functools.partial(files, "indexes in an index", 200)
def indexes(folder, n):
    image = Layout(folder)
    entry = image.manifest()
    return check(image.finish([image.put(INDEX, json.dumps({"schemaVersion": 2, "manifests": [entry], "annotations": {"n": str(number)}}).encode())
                               for number in range(n)]))


@functools.partial(files, "annotations of a manifest", 4_000)
def annotations(folder, n):
    image = Layout(folder)
    return check(image.finish([image.manifest(annotations={"k%d" % number: "v" for number in range(n)})]))


config("labels", 10_000, lambda config, n: config["config"].update(Labels={"k%d" % number: "v" for number in range(n)}))
config("lines of history", 3_000, lambda config, n: config.update(history=[{"created_by": "RUN %d" % number, "empty_layer": True} for number in range(n)]))
config("variables", 1_500, lambda config, n: config["config"].update(Env=["X%d=v" % number for number in range(n)]))
config("variables like those of NCCL", 500, lambda config, n: config["config"].update(Env=["NCCL_IB_HCX%d=v" % number for number in range(n)]), True)
config("words of the command", 4_000, lambda config, n: config["config"].update(Cmd=["python3"] + ["-x"] * n))
config("folders of LD_LIBRARY_PATH", 1_500, lambda config, n: config["config"]["Env"].append("LD_LIBRARY_PATH=" + ":".join("/%05d" % k for k in range(n))), True)
config("folders of PYTHONPATH", 2_000, lambda config, n: config["config"]["Env"].append("PYTHONPATH=" + ":".join("/%05d" % k for k in range(n))))


# ---- libraries ----

facts("symbols", 12_000, lambda folder, n: library_attacks.symbols_of_own_names(folder, n, True), True)
facts("symbols of one name", 4_000, lambda folder, n: library_attacks.symbols_of_one_name(folder, n, 20, True))


@functools.partial(library, "version definitions", 3_000)
def definitions(made, n):
    made.strings(b"\0" + b"".join(b"V_%06d\0" % number for number in range(n)))
    made.tag(elf.VERDEF, made.add(b"".join(struct.pack("<HHHHIIIII", 1, 0, number + 1, 1, 0, 20, 28 if number + 1 < n else 0, 1 + 9 * number, 0)
                                           for number in range(n))))
    made.tag(elf.VERDEFNUM, n)


facts("version needs", 12_000, lambda folder, n: library_attacks.version_needs_that_share(folder, n, 1))


@functools.partial(library, "needed libraries", 24_000, quick=True)
def needed(made, n):
    made.strings(b"\0" + b"".join(b"lib%05d.so\0" % number for number in range(n)))
    for number in range(n):
        made.tag(elf.NEEDED, 1 + 12 * number)


@functools.partial(library, "folders of RUNPATH", 2_000)
def runpath(made, n):
    path = b":".join(b"/%05d" % number for number in range(n))
    made.strings(b"\0libabsent.so\0" + path + b"\0")
    made.tag(elf.NEEDED, 1)
    made.tag(elf.RUNPATH, 14)


facts("chain of needed libraries", 40, lambda folder, n: library_attacks.chain_of_needed(folder, n, 1))
facts("notes", 24_000, lambda folder, n: library_attacks.notes_over_one_range(folder, 1, 12 * n, 12))
facts("segments", 12_000, lambda folder, n: library_attacks.load_segments_over_one_range(folder, n))
facts("literals near the build options", 40_000, lambda folder, n: library_attacks.build_options_of_many_literals(folder, n))
facts("copies of NCCL", 300, lambda folder, n: library_attacks.many_libraries(folder, n), True)


@functools.partial(facts, "copies of libtorch", 150)
def torches(folder, n):
    made = elf.Library()
    made.strings(b"\0libc.so.6\0libtorch_cuda.so\0")
    made.tag(elf.NEEDED, 1)
    made.tag(elf.SONAME, 11)
    content = made.bytes()
    return check(of_layer(folder, (member(b"opt/%05d/dist-packages/torch/lib/libtorch_cuda.so" % number, content) for number in range(n))))


def cubin(number):
    return struct.pack("<HHIQIIHHIIIQQQ", 2, 0x0101, 64, 8, 0, 0, 7, 1, 70 + number % 40, 64, 0, 0x11, 0, 8) + b"\x7fELF\2\1\1\0"


def container(entries):
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 72 * len(entries)) + b"".join(entries)


library("containers of GPU code", 4_000, lambda made, n: made.add(b"".join(container([cubin(number)]) for number in range(n))))
library("GPU codes in one container", 4_000, lambda made, n: made.add(container([cubin(number) for number in range(n)])))


@functools.partial(facts, "section headers", 4_000)
def sections(folder, n):
    made = elf.Library()
    names = made.add(b"\0.nv_fatbin\0")
    made.data += b"\0" * (-len(made.data) % 8)
    table = len(made.data)
    made.data += bytes(64) + struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, names, 12, 0, 0, 1, 0)
    made.data += b"".join(struct.pack("<IIQQQQIIQQ", 1, 1, 0, 0, 16 * number, 8, 0, 0, 1, 0) for number in range(n))
    data = bytearray(made.bytes())
    data[40:48] = struct.pack("<Q", table)
    data[58:64] = struct.pack("<HHH", 64, n + 2, 1)
    return check(of_file(folder, library_attacks.TORCH, bytes(data)))


# ---- texts of an image ----

text("settings of nccl.conf", 1_000, b"etc/nccl.conf", b"NCCL_%d=1\n", True)
text("lines of .pth", 5_000, SITE + b"/a.pth", b"/opt/%d\n")
text("lines of METADATA", 3_000, SITE + b"/torch-2.9.0.dist-info/METADATA", b"Requires-Dist: x%d (==2.27.5)\n", head=b"Name: torch\nVersion: 2.9.0\n")
text("lines of RECORD", 4_000, SITE + b"/torch-2.9.0.dist-info/RECORD", b"torch/lib/lib%d.so,sha256=a,1\n")
text("lines of ld.so.conf", 30_000, b"etc/ld.so.conf", b"/opt/%d\n")
text("users", 8_000, b"etc/passwd", b"u%d:x:0:0::/:/bin/sh\n")
text("packages of dpkg", 8_000, b"var/lib/dpkg/status", b"Package: p%d\nStatus: install ok installed\nVersion: 1\n\n")
text("lines of version.py", 12_000, SITE + b"/torch/version.py", b"x%d = '1'\n")
facts("installed packages of Python", 200, lambda folder, n: check(of_layer(folder, (
    member(SITE + b"/p%05d-1.0.dist-info/METADATA" % number, b"Name: p%05d\nVersion: 1.0\n" % number) for number in range(n)))))
facts("installations of Python", 150, lambda folder, n: text_attacks.folders_of_python(folder, n))


@functools.partial(facts, "entries of ld.so.cache", 2_000)
def loader_cache(folder, n):
    start = 48 + 24 * n
    entries = b"".join(struct.pack("<iIIIQ", 0x0303, start + 30 * number, start + 30 * number + 15, 0, 0) for number in range(n))
    names = b"".join(b"libx%06d.so.1\0".ljust(15, b"\0")[:15] % number + (b"/l/x%06d.so.1" % number).ljust(15, b"\0") for number in range(n))
    return check(of_file(folder, b"etc/ld.so.cache", b"glibc-ld.so.cache1.1" + struct.pack("<II", n, len(names)) + bytes(20) + entries + names))


def script(name, size, line, first=b"", end=b"exec python3 train.py\n"):
    """A shell script as entrypoint, of lines in which `%d` is their number."""
    def make(folder, n):
        image = with_shell(folder).layer(member(b"usr/bin/start.sh", b"#!/bin/sh\n" + first + b"".join(line.replace(b"%d", b"%d" % number) for number in range(n)) + end, mode=0o755))
        image.config["config"]["Entrypoint"] = ["/usr/bin/start.sh"]
        return check(image.finish())
    facts(name, size, make)


# Of a script, 64 KiB are read, so that lines are short.
script("functions of an entrypoint", 1_200, b"f%d(){ :;}\n")
script("calls of an entrypoint's function", 2_500, b"f\n", first=b"f() { :; }\n")
script("variables of an entrypoint", 1_600, b"V%d=1\n")
script("conditions of an entrypoint", 1_000, b"if :;then :;fi\n")
script("documents of an entrypoint", 1_600, b"cat<<E\nE\n")
script("turns of a loop", 3_000, b" %d", first=b"for a in", end=b"; do V=$a; done; exec python3\n")


# ---- files of the user ----

def launch(name, size, kind, line, head=""):
    def make(folder, n):
        (folder / ("job." + kind)).write_text(head + "".join(line % number for number in range(n)))
        return check(GOOD, "--launch", "job." + kind)
    dimension(name, size, make)


launch("lines of an env file", 1_000, "env", "NCCL_%d=a\n")
launch("exports of a launch script", 1_000, "sh", "export NCCL_%d=a\n", "#!/bin/sh\n")
launch("variables of a manifest", 1_000, "yaml", "    - {name: NCCL_%d, value: a}\n", "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n    env:\n")


@dimension("lines of a Dockerfile", 10_000, quick=True)
def dockerfile(folder, n):
    (folder / "Dockerfile").write_text("FROM x\n" + "".join("ENV A%d=1\nRUN echo %d\n" % (number, number) for number in range(n)))
    image = Layout(folder, "debug-on").finish()
    return check(image, "--format", "github", "--dockerfile", "Dockerfile")


@dimension("findings in a Dockerfile", 200)
def findings(folder, n):
    (folder / "Dockerfile").write_text("FROM x\n" + "".join("ENV NCCL_IB_HCX%d=1\n" % number for number in range(n)))
    image = Layout(folder)
    image.config["config"]["Env"] += ["NCCL_IB_HCX%d=1" % number for number in range(n)]
    return check(image.finish(), "--format", "github", "--dockerfile", "Dockerfile")


def policy(name, size, build, quick=False):
    dimension(name, size, lambda folder, n: text_attacks.policy(folder, build(n)), quick)


policy("waivers", 500, lambda n: "waivers:\n" + "".join("- {rule: env/debug-on, reason: r%d, expires: 2099-01-01, images: [a%d]}\n" % (k, k) for k in range(n)))
policy("requirements of a policy", 50, lambda n: "require:\n" + "".join("- {that: torch.version >= 2.%d, id: r%d, because: x}\n" % (k, k) for k in range(n)))


@dimension("rules of one's own", 30)
def rules(folder, n):
    place = folder / "rules/own"
    place.mkdir(parents=True)
    for number in range(n):
        rule = {"id": "own/x%d" % number, "title": "x", "severity": "error", "why": "w", "fix": "f", "applies": "true", "check": "true", "message": "m"}
        (place / ("x%d.yaml" % number)).write_text("".join("%s: %s\n" % (key, json.dumps(value)) for key, value in rule.items()))
    return text_attacks.policy(folder, "rules:\n  folders: [rules]\n")


dimension("hosts", 8, lambda folder, n: check(GOOD, *(word for k in range(n) for word in ("--host", "driver=550.%d,gpu=h100x8" % k))))
dimension("images of a table", 5, lambda folder, n: check(GOOD, *[str(GOOD)] * (n - 1), "--format", "table"))
dimension("images of a page", 5, lambda folder, n: check(GOOD, *[str(GOOD)] * (n - 1), "--format", "html"))


@dimension("lines of a probe's log", 5_000)
def probe(folder, n):
    lines = (ROOT / "fixtures/probe/h100-x2/healthy.jsonl").read_text().splitlines(True)
    place = next(number for number, line in enumerate(lines) if '"event":"log"' in line)
    (folder / "probe.jsonl").write_text("".join(lines[:place] + [lines[place].replace("NCCL INFO", "NCCL INFO %d" % k) for k in range(n)] + lines[place + 1:]))
    return Run(["probe", "--no-config", "--from", "probe.jsonl"])
