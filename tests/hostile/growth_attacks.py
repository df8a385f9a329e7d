"""Small inputs whose parts would multiply, or double at each step, where no limit holds them."""
import json, struct

import elf
from attack import attack, check
from library_attacks import TORCH
from made import SITE, Layout, interpreter, member, of_layer
from text_attacks import GOOD

MOVE_EGGS = b"import sys; new=sys.path[sys.__plen:]; del sys.path[sys.__plen:]; p=getattr(sys,'__egginsert',0); sys.path[p:p]=new; sys.__egginsert = p+len(new)\n"
DOUBLED = "x='%s'\n" % ("a" * 1_000)
TAKEN = "import sys\nsys.path.insert(0,x)\n"
PROGRAMS = {
    "sums": DOUBLED + "x=x+x\n" * 60 + TAKEN, "joins": DOUBLED + "x=os.path.join(x,x)\n" * 60 + TAKEN,
    "nested calls": "x=" + "str(" * 15_000 + "'a'" + ")" * 15_000 + "\n" + TAKEN,
    "nested brackets": "x=" + "(" * 30_000 + "'a'" + ")" * 30_000 + "\n" + TAKEN,
    "nested lists": "import sys; sys.path[0:0]=" + "[" * 30_000 + "'a'" + "]" * 30_000 + "\n",
    "names": "x0='%s'\n" % ("a" * 50) + "".join("x%d=x%d+'%s'\n" % (n + 1, n, "a" * 50) for n in range(15_000)),
    "many names": DOUBLED * 2 + "".join("y%d=x\n" % n for n in range(300_000)),
    "terms": "x=" + "+".join(["'a'"] * 500_000) + "\n" + TAKEN,
    "terms of a long name": DOUBLED.replace("a" * 1_000, "a" * 60_000) + "x=" + "+".join(["x"] * 60_000) + "\n" + TAKEN,
    "inserts": "import sys\n" + "sys.path[0:0]=['/a']\n" * 150_000,
    "inserts of one": "import sys\nsys.path[0:0]=[%s]\n" % ",".join(["'/a'"] * 600_000),
    "inserts of a long name": "import sys\nx='%s'\n" % ("/a" * 30_000) + "sys.path.insert(0,x)\n" * 10_000,
    "removes": "import sys\n" + "sys.path[0:0]=['/a']\n" * 60_000 + "sys.path.append('/b')\nsys.path.remove('/b')\n" * 40_000,
    "lists of a name": "import sys\nx='%s'\nsys.path+=[%s]\n" % ("a" * 60_000, ",".join("x" * 60_000)),
    "open quotes": "'\n" * 500_000, "brackets without end": "(" * 1_000_000, "comments": "#\n" * 500_000, "semicolons": ";" * 1_000_000,
    "product": "x='a'*10**9\ny=x*1000000\nz=f'{x}{x}'\nw=x.join([x,x]).replace('a',x)\n" + TAKEN,
    "own path": "import sys\n" + "sys.path += sys.path\n" * 60,
    "dirnames": "x='%s'\n" % ("/a" * 30_000) + "x=os.path.dirname(x)\n" * 30_000 + TAKEN,
    "absolute": "x='%s'\n" % ("/a" * 30_000) + "x=os.path.abspath(x)\n" * 30_000 + TAKEN,
}


@attack(quick={"code": "sums"}, code=sorted(PROGRAMS))
def code_of_programs(folder, code):
    image = Layout(folder)
    image.config["config"]["Cmd"] = ["-c", PROGRAMS[code]]
    return check(image.finish(), says=("--limit python_steps=N",) if code in ("sums", "joins", "names") else ())


@attack(quick={"code": "joins"}, code=["sums", "joins", "nested calls", "names"])
def files_of_programs(folder, code):
    image = Layout(folder).layer(member(b"opt/train.py", b"#!/usr/bin/env python3\n" + PROGRAMS[code].encode()[:65_000], mode=0o755))
    image.config["config"]["Cmd"] = ["/opt/train.py"]
    return check(image.finish())


def lines(path, text):
    return lambda: [member(path, text)]


def chain(count, times):
    """Folders, each of which adds the next so many times."""
    line = b"import site; site.addsitedir('/c/%d/site-packages')\n"
    yield member(SITE + b"/a.pth", line % 0)
    for number in range(count):
        yield member(b"c/%d/site-packages/a.pth" % number, line % (number + 1) * times)


def folders(count, line):
    yield member(SITE + b"/a.pth", b"".join(line % number for number in range(count))[:1_000_000].rpartition(b"\n")[0] + b"\n")
    yield from (member(b"o/%d/x" % number, b"") for number in range(count))


def full_folder(count, line, times):
    """A folder of many entries that is named often."""
    yield from (member(b"o/%d" % number, b"") for number in range(count))
    yield member(SITE + b"/a.pth", line * times)


PTH = SITE + b"/a.pth"
FINDER = b"__editable___x_finder"
STARTUP = {
    "itself": lines(PTH, b"import site; site.addsitedir('/%s')\n" % SITE),
    "itself often": lines(PTH, b"import site; site.addsitedir('/%s')\n" % SITE * 10_000),
    "doubling chain": lambda: chain(18, 8), "deep chain": lambda: chain(40, 2), "long chain": lambda: chain(12_000, 1),
    "eggs": lines(PTH, (b"import sys; sys.__plen = len(sys.path)\nimport sys; sys.path.append('/x')\n" + MOVE_EGGS) * 3_000),
    "eggs of one mark": lambda: folders(10_000, b"/o/%d\n" + b"import sys; sys.__plen = len(sys.path)\n" + MOVE_EGGS),
    "moves of many": lambda: [member(SITE + b"/a.pth",
            b"import sys; sys.__plen = len(sys.path)\nimport sys; sys.path[0:0]=[%s]\n" % (b"'/x'," * 100_000) + MOVE_EGGS * 2_000)],
    "one folder often": lambda: full_folder(10_000, b"import sys; sys.path.insert(0, '/o')\n", 5_000),
    "folders": lambda: folders(90_000, b"/o/%d\n"),
    "folders that are added": lambda: folders(15_000, b"import site; site.addsitedir('/o/%d')\n"),
    "folders in front": lambda: folders(20_000, b"import sys; sys.path[0:0]=['/o/%d']\n"),
    "folders that go": lambda: folders(15_000, b"import sys; sys.path.append('/y'); sys.path.append('/o/%d'); sys.path.remove('/y')\n"),
    "one folder added often": lambda: full_folder(10_000, b"import site; site.addsitedir('/o')\n", 20_000),
    "files of one folder": lambda: (member(SITE + b"/%d.pth" % number, b"import site; site.addsitedir('/%s')\n" % SITE)
            for number in range(5_000)),
    "files that name": lambda: (member(SITE + b"/%d.pth" % number, b"import x\n") for number in range(20_000)),
    "needs": lines(PTH, b"import coverage\n" * 60_000),
    "sitecustomize": lines(SITE + b"/sitecustomize.py", b"import sys\n" + b"sys.path[0:0]=['/a']\n" * 45_000),
    "finder lines": lambda: [member(PTH, b"import %s; %s.install()\n" % (FINDER, FINDER) * 12_000),
            member(SITE + b"/" + FINDER + b".py", b"MAPPING = {%s}\n" % b"".join(b"'a%d': '/a'," % number for number in range(60_000)))],
    "virtual environment": lambda: [member(b"usr/pyvenv.cfg", b"home = /usr/bin\n" * 60_000)],
    "path file": lambda: [member(b"usr/bin/python3.11._pth", b"/a\n" * 300_000)],
    "typing": lines(SITE + b"/torch/__init__.py", b"from typing_extensions import (" + b"x, " * 300_000 + b")\n"),
}


@attack(quick={"files": "doubling chain"}, files=sorted(STARTUP))
def files_at_start(folder, files):
    return check(of_layer(folder, STARTUP[files]()), says=("--limit python_steps=N",) if files == "doubling chain" else ())


@attack(quick={"variable": "PYTHONPATH", "count": 90_000}, variable=["PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "PATH"],
        count=[10_000, 90_000])
def folders_of_variables(folder, variable, count):
    image = Layout(folder).layer(member(b"o/%d/x" % number, b"") for number in range(count))
    image.config["config"]["Env"].append("%s=%s" % (variable,
            ":".join("/o/%d" % number for number in range(count)) + ("" if variable != "PATH" else ":/usr/bin")))
    return check(image.finish())


@attack(quick={"count": 200}, count=[20, 200])
def wildcards_of_preloads(folder, count):
    call = b'        _preload_cuda_deps("x", "lib%sb", required=False)\n' % (b"*a" * 60)
    code = b'\ndef _load_global_deps():\n    try:\n        if "libtorch" not in _maps:\n            return\n' + call * count + b"    except OSError:\n        x\n\nif x:\n"
    names = [member(SITE + b"/nvidia/x/lib/lib" + b"a" * 200 + b"%d" % number, b"") for number in range(50)]
    return check(of_layer(folder, [member(SITE + b"/torch/__init__.py", code), *names]))


@attack(quick={"count": 15_000}, count=[15_000, 60_000, 800_000])
def requirements_and_packages(folder, count):
    metadata = b"Name: torch\nVersion: 2.9.0\n" + b"".join(b"Requires-Dist: x%d>=1\n" % number for number in range(count))
    packages = (member(SITE + b"/y%d-1.0.dist-info/METADATA" % number, b"") for number in range(min(count, 15_000)))
    return check(of_layer(folder, [member(SITE + b"/torch-2.9.0.dist-info/METADATA", metadata), *packages]))


@attack(quick={"count": 20_000}, count=[20_000])
def scripts_of_profiles(folder, count):
    return check(of_layer(folder, (member(b"etc/profile.d/%d.sh" % number, b"export NCCL_DEBUG=%d\n" % number) for number in range(count))))


@attack(quick={"place": "library path"}, place=["rpath", "runpath", "needed", "preload", "library path"])
def tokens_that_expand(folder, place):
    """Each token of a program or library in a deep folder stands for 3,000 bytes."""
    deep = b"opt/" + b"/".join([b"d" * 200] * 15)
    image = Layout(folder)
    if place in ("preload", "library path"):
        image.layer(member(deep + b"/python3.11", interpreter(image), mode=0o755))
        image.config["config"]["Entrypoint"] = ["/" + (deep + b"/python3.11").decode()]
        variable = "LD_PRELOAD" if place == "preload" else "LD_LIBRARY_PATH"
        image.config["config"]["Env"] += ["%s=/%s" % (variable, "$ORIGIN" * 140_000), "PYTHONPATH=/" + SITE.decode()]
    else:
        made = elf.Library()
        made.strings(b"\0libabsent.so\0" + (b"$ORIGIN" * 8_500 + b"\0") * 16)
        for number in range(16):
            made.tag({"rpath": elf.RPATH, "runpath": elf.RUNPATH, "needed": elf.NEEDED}[place], 14 + 59_501 * number)
        made.tag(elf.NEEDED, 1)
        image.layer(member(deep + b"/libx.so", made.bytes(), mode=0o755))
        image.config["config"]["Env"].append("LD_PRELOAD=/%s/libx.so" % deep.decode())
    return check(image.finish())


@attack(quick={"count": 25_000, "terms": 1}, count=[1, 25_000], terms=[1, 20_000])
def requirements_of_the_runtime(folder, count, terms):
    image = Layout(folder)
    image.config["config"]["Env"] += ["NVIDIA_REQUIRE_%d=%s" % (number,
            "cuda>=12.4 " * (terms if count == 1 else 1) + "driver>=1,driver<2") for number in range(count)]
    return check(image.finish(), "--host", "driver=550.54,gpu=h100x8")


def manifest(containers, maps):
    head = "".join("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: %s\n---\n" % (name, json.dumps(data)) for name,
            data in maps.items())
    return head + "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n" + "".join(containers)


TAKES = "  - {name: a, envFrom: [%s]}\n"
TAKE = "{configMapRef: {name: m}}"
MANIFESTS = {
    "keys": lambda: manifest([TAKES % TAKE] * 8_000, {"m": {"NCCL_%d" % number: "a" for number in range(8_000)}}),
    "sources": lambda: manifest([TAKES % ",".join([TAKE] * 15_000)], {"m": {"NCCL_%d" % number: "a" for number in range(15_000)}}),
    "values": lambda: manifest([TAKES % TAKE] * 8_000, {"m": {"NCCL_X": "a" * 400_000}}),
    "single keys": lambda: manifest(["  - {name: a, env: [{name: NCCL_X, valueFrom: {configMapKeyRef: {name: m, key: NCCL_X}}}]}\n"] * 5_000, {"m": {**{"A%d" % number: "" for number in range(10_000)}, "NCCL_X": "a" * 200_000}}),
    "anchors": lambda: "a: &a {env: {NCCL_X: a}}\n" + "".join("b%d: *a\n" % number for number in range(100_000)),
    "nested anchors": lambda: "x0: &x0 {env: [NCCL_X=a]}\n" + "".join("x%d: &x%d [%s]\n" % (n + 1, n + 1, ", ".join(["*x%d" % n] * 9))
            for n in range(12)),
    "texts": lambda: "runtimeEnvYAML: |\n" + "  env_vars: {A: a}\n  ---\n" * 30_000,
    "texts with anchors": lambda: "".join("- runtimeEnvYAML: '{%s}'\n" % ", ".join("x%d: &x%d [%s]" % (n, n,
            ", ".join(["*x%d" % (n - 1)] * 9) if n else "a") for n in range(5)) for _ in range(5_000)),
    "variables": lambda: manifest(["  - {name: a, env: [{name: NCCL_X, value: '$(NCCL_X)$(NCCL_X)'}]}\n"] * 10_000, {}),
    "scripts": lambda: "services:\n" + "".join("  a%d: {command: 'export A=$A$A; export A=$A$A'}\n" % number for number in range(10_000)),
}


@attack(quick={"kind": "keys"}, kind=sorted(MANIFESTS))
def manifests_that_multiply(folder, kind):
    (folder / "job.yaml").write_text(MANIFESTS[kind]())
    return check(GOOD, "--launch", "job.yaml")


LAUNCHES = {
    "doubling.env": "A=aaaaaaaaaa\n" + "A=$A$A\n" * 60, "mutual.env": "A=${B}${B}\nB=${A}${A}\n" * 1_000,
    "doubling.sh": "#!/bin/sh\nexport A=aaaaaaaaaa\n" + "export A=$A$A\n" * 60,
    "defaults.sh": "#!/bin/sh\nexport A=" + "${A:-" * 20_000 + "}" * 20_000 + "\n",
    "options.sh": "#!/bin/sh\nmpirun " + "-x NCCL_A=1 " * 200_000 + "a\n",
    "exports.sh": "#!/bin/sh\n" + "mpirun -x A=1 -x B=2 \\\n" * 100_000 + "a\n",
    "slurm.sh": "#!/bin/bash\n#SBATCH --export=" + ",".join("A%d=1" % n for n in range(200_000)) + "\n",
}


@attack(quick={"name": "exports.sh"}, name=sorted(LAUNCHES))
def launches_that_expand(folder, name):
    (folder / name).write_text(LAUNCHES[name])
    return check(GOOD, "--launch", name)


@attack(quick={"kind": "one finding"}, kind=["one finding", "many findings", "findings between lines", "short lines"])
def fixes_of_long_dockerfiles(folder, kind):
    image = Layout(folder, "good" if "findings" in kind else "debug-on")
    lines, count = {"one finding": ("RUN echo %d\n", 50_000), "many findings": ("ENV NCCL_IB_HCX%d=1\n", 8_000),
                    "findings between lines": ("ENV NCCL_IB_HCX%d=1\n" + "#\n" * 50, 8_000), "short lines": ("# %d\n", 400_000)}[kind]
    text = "FROM x\n" + "".join(lines % number for number in range(count))
    if "findings" in kind:
        image.config["config"]["Env"] += ["NCCL_IB_HCX%d=1" % number for number in range(count)]
    else:
        text += "ENV NCCL_DEBUG=INFO\n"
    (folder / "Dockerfile").write_text(text)
    return check(image.finish(), "--dockerfile", "Dockerfile", "--fix")


@attack(quick={"folders": 3_000, "needed": 300}, folders=[3_000, 30_000], needed=[300, 3_000])
def search_paths_and_needed(folder, folders, needed):
    made = elf.Library()
    path = b":".join(b"/o/%d" % number for number in range(folders))
    names = b"".join(b"liba%06d.so\0" % number for number in range(needed))
    made.strings(b"\0" + names + path + b"\0")
    for number in range(needed):
        made.tag(elf.NEEDED, 1 + 14 * number)
    made.tag(elf.RPATH, 1 + len(names))
    return check(of_layer(folder, [member(TORCH, made.bytes()), *(member(b"o/%d/x" % number, b"") for number in range(folders))]))


@attack(quick={"count": 3_000}, count=[3_000, 20_000])
def preloads_that_exist(folder, count):
    made = elf.Library()
    made.strings(b"\0")
    content = made.bytes()
    image = Layout(folder).layer(member(b"p/%d" % number, content) for number in range(count))
    image.config["config"]["Env"].append("LD_PRELOAD=" + ":".join("/p/%d" % number for number in range(count)))
    return check(image.finish())


def records(kind, count):
    if kind == "conda":
        yield from (member(b"opt/conda/conda-meta/nccl-%d.json" % number,
                b'{"name": "nccl", "version": "2.%d", "files": ["lib/libnccl.so.2"]}' % number) for number in range(count))
    elif kind == "nccl":
        yield from (member(SITE + b"/nvidia_nccl_cu12-2.%d.dist-info/%s" % (number, name),
                b"Name: nvidia-nccl-cu12\nVersion: 2.%d\nnvidia/nccl/lib/libnccl.so.2,,\n" % number)
                    for number in range(count) for name in (b"METADATA", b"RECORD"))
    elif kind == "torch":
        yield from (member(SITE + b"/torch-2.%d.dist-info/%s" % (number, name),
                b"Name: torch\nVersion: 2.%d\ntorch/__init__.py,,\n" % number) for number in range(count)
                    for name in (b"METADATA", b"RECORD", b"direct_url.json", b"INSTALLER"))
    elif kind == "dpkg":
        yield from (member(b"var/lib/dpkg/info/libnccl2-%d.list" % number, b"/usr/lib/x86_64-linux-gnu/libnccl.so.2\n" * 20)
                for number in range(count))
        yield member(b"var/lib/dpkg/status",
                b"".join(b"Package: libnccl2-%d\nStatus: install ok installed\nVersion: 2\n\n" % number for number in range(count)))
    elif kind == "long names":
        yield member(SITE + b"/torch-2.9.0.dist-info/METADATA", b"Name: %s\nVersion: 2.9.0\n" % (b"t" * 500_000))
        yield member(SITE + b"/torch-2.9.0.dist-info/RECORD", b"".join(b"%d.so,,\n" % number for number in range(count)))
    elif kind == "many files":
        yield member(SITE + b"/torch-2.9.0.dist-info/RECORD", b"".join(b"%d.so,,\n" % number for number in range(80 * count)))
    elif kind == "one file often":
        yield member(SITE + b"/torch-2.9.0.dist-info/RECORD", b"a.so,,\n" * 100 * count)
    elif kind == "drivers":
        yield from (member(b"etc/libibverbs.d/%d.driver" % number, b"driver mlx5\n") for number in range(count))
    elif kind == "activate":
        yield from (member(b"opt/conda/etc/conda/activate.d/%d.sh" % number, b"export A%d=1\n" % number) for number in range(count))
    elif kind == "pyenv":
        yield from (member(b"root/.pyenv/versions/3.11.%d/bin/python" % number, b"") for number in range(count))


@attack(quick={"kind": "dpkg", "count": 15_000},
        kind=["conda", "nccl", "torch", "dpkg", "long names", "many files", "one file often", "drivers", "activate", "pyenv"],
        count=[15_000])
def records_of_packages(folder, kind, count):
    return check(of_layer(folder, records(kind, count)))


@attack(quick={"libraries": 500, "names": 200}, libraries=[500, 5_000], names=[200, 2_000])
def libraries_of_many_names(folder, libraries, names):
    """Libraries that are loaded, each of which needs many versions of many others."""
    made = elf.Library()
    made.strings(b"\0libc.so.6\0V\0")
    made.tag(elf.VERNEED, made.add(b"".join(struct.pack("<HHIIIIHHII", 1, 1, 1, 16, 32 if number + 1 < names else 0, 0, 0, 2, 11, 0)
            for number in range(names))))
    made.tag(elf.VERNEEDNUM, names)
    content = made.bytes()
    image = Layout(folder).layer(member(b"p/%d" % number, content) for number in range(libraries))
    image.config["config"]["Env"].append("LD_PRELOAD=" + ":".join("/p/%d" % number for number in range(libraries)))
    return check(image.finish())


@attack(quick={"libraries": 10, "defined": False}, libraries=[3, 10, 100], defined=[True, False])
def libraries_of_long_symbols(folder, libraries, defined):
    """Libraries whose symbols share one long name, each within the limit of one library."""
    made = elf.Library()
    made.strings(b"\0nccl" + b"s" * 60_000 + b"\0")
    made.symbols([(1, defined)] * 1_400)
    content = made.bytes()
    return check(of_layer(folder, (member(b"p/libnccl%d.so" % number, content) for number in range(libraries))))
