"""Texts that the program reads from an image, a repository or the user's folder."""
import json

from attack import Run, attack, check
from made import ROOT, SITE, Layout, member, of_file, of_layer, with_shell

GOOD = ROOT / "fixtures/images/good.oci.tar"


@attack(quick={"names": 32_000}, names=[4_000, 16_000, 32_000, 500_000])
def settings_of_nccl(folder, names):
    text = b"".join(b"NCCL_%d=1\n" % number for number in range(names))
    return check(of_file(folder, b"etc/nccl.conf", text))


TEXTS = {
    "etc/ld.so.preload": b"/lib/x.so ", "etc/passwd": b"u:x:0:0::/:/bin/sh\n", "etc/group": b"g:x:0:u\n", "etc/environment": b"NCCL_DEBUG=INFO\n",
    "etc/ld.so.conf": b"include /etc/ld.so.conf\n/lib\n", "etc/os-release": b"ID=debian\n", "etc/profile.d/nccl.sh": b"export NCCL_DEBUG=$NCCL_DEBUG.\n",
    "usr/local/lib/python3.11/dist-packages/a.pth": b"/opt/x\n", "usr/local/lib/python3.11/dist-packages/b.pth": b"import os; os.environ['A'] = 'b'\n",
    "usr/local/lib/python3.11/dist-packages/torch-2.9.0.dist-info/METADATA": b"Requires-Dist: nvidia-nccl-cu12 (==2.27.5); extra == 'a'\n",
    "usr/local/lib/python3.11/dist-packages/torch-2.9.0.dist-info/RECORD": b"torch/lib/libtorch.so,sha256=a,1\n",
    "usr/local/lib/python3.11/dist-packages/torch/version.py": b"cuda = '12.8'\n",
    "usr/local/lib/python3.11/dist-packages/torch/__init__.py": b"from torch import x\n",
    "usr/local/lib/python3.11/dist-packages/torch/include/caffe2/core/macros.h": b'#define CAFFE2_BUILD_STRINGS { {"A", "B"}, }\n',
    "var/lib/dpkg/status": b"Package: libnccl2\nStatus: install ok installed\nVersion: 2.27.5\n\n",
    "var/lib/dpkg/info/libnccl2.list": b"/usr/lib/libnccl.so.2\n", "etc/libibverbs.d/mlx5.driver": b"driver mlx5\n",
    "usr/lib/python3.11/sitecustomize.py": b"import sys; sys.path.insert(0, '/x')\n", "opt/conda/conda-meta/nccl-2.json": b"[" * 10 + b"1,",
    "etc/ld.so.cache": b"glibc-ld.so.cache1.1\xff\xff\xff\xff",
}


@attack(quick={"path": "usr/local/lib/python3.11/dist-packages/a.pth", "size": 2 << 20}, path=sorted(TEXTS), size=[1 << 16, 2 << 20, 15 << 20])
def repeated_lines(folder, path, size):
    part = TEXTS[path]
    return check(of_file(folder, path.encode(), part * (size // len(part))))


@attack(quick={"depth": 5_000}, depth=[100, 5_000, 100_000])
def nested_json_of_conda(folder, depth):
    return check(of_file(folder, b"opt/conda/conda-meta/nccl-2.21.json", b'{"a":' * depth))


SCRIPTS = {
    "source": b"#!/bin/sh\n. /usr/bin/python3\n", "long line": b"#!/bin/sh\necho " + b"a" * 900_000 + b"\nexec python3\n",
    "heredocs": b"#!/bin/sh\n" + b"cat << E\nx\nE\n" * 20_000 + b"exec python3\n",
    "shebang": b"#!" + b"/" * 200_000 + b"\n", "itself": b"#!/usr/bin/start.sh\n", "quotes": b"#!/bin/sh\n" + b"'\"" * 100_000,
}


@attack(quick={"script": "heredocs"}, script=sorted(SCRIPTS))
def entrypoints(folder, script):
    image = with_shell(folder).layer(member(b"usr/bin/start.sh", SCRIPTS[script], mode=0o755))
    image.config["config"]["Entrypoint"] = ["/usr/bin/start.sh"]
    return check(image.finish())


@attack(quick={"count": 20_000}, count=[200, 20_000])
def folders_of_python(folder, count):
    paths = (member(b"usr/local/lib/python3.%d/site-packages/torch/version.py" % number, b"cuda = '12.8'\n") for number in range(count))
    return check(of_layer(folder, paths))


@attack(quick={"kind": "env", "size": 15 << 20}, kind=["env", "sh", "yaml", "slurm"], size=[1 << 16, 4 << 20, 15 << 20])
def launch_files(folder, kind, size):
    line = {"env": b"NCCL_%d=a\n", "sh": b"export NCCL_%d=$NCCL_X\n", "yaml": b"- {name: NCCL_%d, value: a}\n", "slurm": b"#SBATCH --export=NCCL_%d\n"}[kind]
    head = {"yaml": b"apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n    env:\n", "slurm": b"#!/bin/bash\n"}.get(kind, b"")
    indent = b"    " if kind == "yaml" else b""
    with open(folder / ("job." + kind), "wb") as file:
        file.write(head)
        written, number = 0, 0
        while written < size:
            text = indent + line % number
            file.write(text)
            written, number = written + len(text), number + 1
    return check(GOOD, "--launch", "job." + kind)


LAUGHS = "".join("x%d: &x%d [%s]\n" % (n, n, ", ".join(["*x%d" % (n - 1)] * 9) if n else "a") for n in range(12))
CONDITIONS = {
    "long path": "torch" + ".a" * 1_000 + " == 1",
    "nested all": "".join("torch.arch_list.all(v%d, " % n for n in range(8)) + "true" + ")" * 8,
    "nested map": "".join("torch.arch_list.map(v%d, " % n for n in range(12)) + "1" + ")" * 12 + " == []",
    "own lists": "[0,1,2,3,4,5,6,7,8,9]" + "".join(".all(v%d, [0,1,2,3,4,5,6,7,8,9]" % n for n in range(8)) + ".all(z, true)" + ")" * 8,
    "doubling": "[1].map(a, [a, a])" + ".map(a, [a, a, a, a, a, a, a, a, a, a])" * 30 + " == []",
    "text": "'" + "a" * 60_000 + "' + '" + "b" * 60_000 + "' == torch.version",
    "many terms": " && ".join(["torch.version != 'x'"] * 5_000),
    "pattern": "torch.version.matches('" + "(a|b)*" * 200 + "')",
    "power": "torch.version.matches('((((a{30}){30}){30}){30}){30}')",
}


def policy(folder, text):
    (folder / "ncclcheck.yaml").write_text(text)
    return Run(["check", "--cache", "off", "--config", "ncclcheck.yaml", str(GOOD)])


@attack(quick={"condition": "nested all", "verb": "check"}, condition=sorted(CONDITIONS), verb=["check", "applies"])
def conditions(folder, condition, verb):
    rules = folder / "rules/own"
    rules.mkdir(parents=True)
    expression = CONDITIONS[condition]
    rule = {"id": "own/x", "title": "x", "severity": "error", "why": "w", "fix": "f", "applies": "true", "check": "true", "message": "m", verb: expression}
    (rules / "x.yaml").write_text("".join("%s: %s\n" % (key, json.dumps(value)) for key, value in rule.items()))
    return policy(folder, "rules:\n  folders: [rules]\n")


POLICIES = {
    "laughs": LAUGHS, "deep": "[" * 100_000, "deep maps": "a: {" * 50_000, "long": "x: " + "a" * 15_000_000 + "\n",
    "waivers": "waivers:\n" + "".join("- {rule: env/x%d, reason: a, expires: 2030-01-01}\n" % n for n in range(20_000)),
    "patterns": "waivers:\n- {rule: env/p2p-disabled, reason: a, expires: 2030-01-01, images: [" + ", ".join(["'" + "*a" * 50 + "'"] * 5_000) + "]}\n",
    "keys": "".join("k%d: 1\n" % n for n in range(100_000)), "same keys": "rules: {}\n" * 20_000,
}


@attack(quick={"text": "laughs"}, text=sorted(POLICIES))
def policies(folder, text):
    return policy(folder, POLICIES[text])
