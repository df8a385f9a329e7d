"""Indexes, manifests and configurations that cost more than their bytes."""
import json

import oci
from attack import attack, check
from made import CONFIG, INDEX, MANIFEST, Layout, with_shell

ATTESTATION = {"vnd.docker.reference.type": "attestation-manifest"}


def index(image, entries):
    return image.put(INDEX, json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).encode())


@attack(quick={"children": 100, "levels": 3}, children=[10, 100, 5_000], levels=[2, 3, 4])
def indexes_that_repeat(folder, children, levels):
    """An index names one child many times, level by level."""
    image = Layout(folder)
    entry = image.manifest()
    for _ in range(levels):
        entry = index(image, [entry] * children)
    return check(image.finish([entry]))


@attack(quick={"each": 2_000, "leaves": 5_000}, each=[20, 2_000], leaves=[500, 5_000])
def attestations(folder, each, leaves):
    image = Layout(folder)
    leaf = index(image, [{"mediaType": MANIFEST, "digest": "sha256:" + "0" * 64, "size": 1, "annotations": ATTESTATION}] * leaves)
    return check(image.finish([index(image, [leaf] * each)] * each + [image.manifest()]))


@attack(quick={"count": 10_000}, count=[500, 10_000])
def manifests_that_repeat(folder, count):
    image = Layout(folder)
    return check(image.finish([image.manifest()] * count))


@attack(quick={"count": 10_000}, count=[511, 513, 10_000])
def layers_that_repeat(folder, count):
    image = Layout(folder)
    image.layers = [image.layers[0]] * count
    image.config["rootfs"]["diff_ids"] = [image.config["rootfs"]["diff_ids"][0]] * count
    return check(image.finish())


@attack(quick={"count": 60_000, "name": "NCCL_%d"}, count=[6_000, 60_000], name=["NCCL_%d", "X%d", "NCCL_DEBUG", "NCCL_IB_%d", "TORCH_NCCL_%d", "UCX_%d"])
def variables(folder, count, name):
    pairs = [(name % number if "%" in name else name) + "=v" for number in range(count)]
    return check(Layout(folder).set_environment(pairs).finish())


@attack(quick={"name": "NCCL_DEBUG", "size": 3 << 20}, name=["NCCL_DEBUG", "NCCL_SOCKET_IFNAME", "NCCL_IB_HCA", "PYTHONPATH", "PATH", "NVIDIA_REQUIRE_CUDA"],
        size=[1 << 16, 3 << 20])
def long_variable(folder, name, size):
    return check(Layout(folder).set_environment([name + "=" + "a,:" * (size // 3)]).finish())


@attack(quick={"field": "Cmd", "count": 100_000}, field=["Cmd", "Entrypoint"], count=[1_000, 100_000])
def long_command(folder, field, count):
    image = Layout(folder)
    image.config["config"][field] = ["/usr/bin/python3"] + ["-x"] * count
    return check(image.finish())


SCRIPTS = {
    "loop": "while :; do X=$X$X; done",
    "doubling": "X=a; " + "X=$X$X; " * 60 + "echo $X; exec python3",
    "nested": "$(" * 3_000 + "true" + ")" * 3_000,
    "braces": "{ " * 5_000 + "true" + "; }" * 5_000,
    "functions": "f() { f; f; }; f",
    "cases": "case x in " + "a) true;; " * 50_000 + "esac; python3",
    "for": "for a in 1 2 3 4 5 6 7 8 9 0; do " * 12 + "X=$X.; " + "done; " * 12 + "python3",
    "parameters": "X=" + "${X:-" * 4_000 + "}" * 4_000 + "; python3",
    "pattern": "X=" + "a" * 20_000 + "; echo ${X%" + "*a" * 30 + "b}; python3",
    "arithmetic": "echo $((" + "1+" * 50_000 + "1)); python3",
    "parentheses": "echo $((" + "(" * 20_000 + "1" + ")" * 20_000 + ")); python3",
    "assignments": "X=1 " * 50_000 + "python3",
    "replace": "X=" + "a" * 5_000 + "; " + "X=${X//a/aa}; " * 40 + "python3",
    "if": "if true; then " * 5_000 + "true; " + "fi; " * 5_000 + "python3",
    "elif": "if false; then :; " + "elif false; then :; " * 50_000 + "fi; python3",
    "unknown elif": "if python3 -V; then :; " + "elif python3 -V; then :; " * 20_000 + "fi; python3",
    "unknown cases": "case $(python3 -V) in " + "a) true;; " * 50_000 + "esac; python3",
    "cases that fall through": "case x in " + "x) true;& " * 50_000 + "esac; python3",
    "and": "true " + "&& true " * 100_000 + "; python3",
    "unknown and": "python3 -V " + "&& python3 -V || python3 -V " * 20_000 + "; python3",
    "pipeline": "true " + "| true " * 100_000 + "; python3",
    "long pattern": "case " + "a" * 60_000 + " in " + "a" * 60_000 + ") :;; esac; python3",
    "large state": "X=a; " + "X=$X$X; " * 16 + "".join("A%d=$X; " % number for number in range(500)) + "if python3 -V; then :; fi; " * 5_000 + "python3",
    "many variables": "".join("A%d=a; " % number for number in range(20_000)) + "if python3 -V; then :; fi; " * 5_000 + "python3",
    "long words": "X=a; " + "X=$X$X; " * 16 + "echo $X$X$X$X$X$X$X$X; " * 5_000 + "python3",
    "sourced": "A=1; " + ". /usr/bin/start.sh; " * 5_000 + "python3",
    "many replacements": "X=" + "a" * 60_000 + "; echo ${X//a/$X}; " * 5_000 + "python3",
    "hard replacements": "X=" + "a" * 60_000 + "; " + "echo ${X//*a*a*a*b/c} ${X##*a*a*b}; " * 5_000 + "python3",
    "stars": "case " + "a" * 60_000 + " in " + "*a" * 30_000 + "b) :;; esac; python3",
    "empty words": "set -- '' ''; " + 'set -- "$@" "$@"; ' * 40 + 'for a in "$@" "$@"; do f() { :; }; f "$@"; done; python3',
    "large word": "X=a; " + "X=$X$X; " * 16 + "echo " + "$X" * 20_000 + "; python3",
    "large output": "X=a; " + "X=$X$X; " * 16 + "Y=$(" + "echo $X; " * 20_000 + "); python3",
    "programs": "export X=a; " + "X=$X$X; " * 15 + "".join("export A%d=$X; " % number for number in range(100)) + "python3 -V; " * 10_000,
    "path": "PATH=" + ":".join("/a%d" % number for number in range(8_000)) + ":/usr/bin; " + "python3 -V; " * 10_000,
    "doubts": "".join("A%d=a; " % number for number in range(20_000)) + ". $(python3 -V); " * 10_000,
    "redirections": "".join("echo > /tmp/%d; " % number for number in range(10_000)) + "[ -e /tmp/x ]; " * 10_000 + "if python3 -V; then :; fi; " * 1_000 + "python3",
    "locals": "f() { " + "".join("local A%d=a; " % number for number in range(20_000)) + "}; f; python3",
    "deep calls": "f() { " + "{ if true; then " * 25 + "f; " + "fi; }; " * 25 + "}; f; python3",
    "deep substitutions": "f() { echo $(f) $(f); }; f; python3",
    "substitutions": "X=" + "$(echo a)" * 20_000 + "; python3",
    "files": "for a in /usr/*/*/* /usr/*/* /*/*/*; do for b in /usr/*/*/* /*/*/*; do [ -e $a/$b ]; done; done; python3",
}


@attack(quick={"shell": "bash", "script": "large state"}, shell=["sh", "bash"], script=sorted(SCRIPTS))
def command_of_shell(folder, shell, script):
    image = with_shell(folder)
    image.config["config"]["Entrypoint"] = ["/bin/" + shell, "-c", SCRIPTS[script]]
    return check(image.finish())


DOCUMENTS = {
    "deep lists": b"[" * 200_000, "deep objects": b'{"a":' * 200_000, "long string": b'{"config":"' + b"a" * 3_000_000 + b'"}',
    "many keys": b"{" + b",".join(b'"%d":1' % number for number in range(200_000)) + b"}",
    "zeros": bytes(1 << 20), "numbers": b"[" + b"1," * 1_000_000 + b"1]", "exponent": b'{"schemaVersion":1e999999999}',
    "long number": b'{"schemaVersion":' + b"9" * 1_000_000 + b"}", "escapes": b'{"mediaType":"' + b"\\u202e\\n::error::" * 1_000 + b'"}',
}


@attack(quick={"document": "deep lists", "where": "manifest"}, document=sorted(DOCUMENTS), where=["index", "manifest", "config"])
def documents(folder, document, where):
    image, data = Layout(folder), DOCUMENTS[document]
    if where == "manifest":
        image.finish([image.put(MANIFEST, data)])
    elif where == "config":
        config = image.put(CONFIG, data)
        image.finish([image.put(MANIFEST, json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": image.layers}).encode())])
    else:
        image.finish()
        (image.folder / "index.json").write_bytes(data)
    return check(image.folder, exits=(2,))


@attack(quick={"count": 10_000}, count=[1_000, 10_000])
def history_of_steps(folder, count):
    image = Layout(folder)
    image.config["history"] = [{"created_by": "RUN step %d" % number, "empty_layer": True} for number in range(count)]
    return check(image.finish())


@attack(quick={"part": "digest"}, part=["digest", "mediaType", "os", "ref", "artifactType", "annotation"])
def text_of_documents(folder, part):
    """A part of a document that begins a line of its own, if it is printed as it is."""
    evil = "x\n::error title=a::b\n##vso[task.setvariable variable=a]b\x1b]0;t\x07\u202e\r"
    image = Layout(folder)
    entry = image.manifest()
    if part == "digest":
        entry["digest"] = "sha256:" + evil
    elif part == "mediaType":
        entry["mediaType"] = evil
    elif part == "os":
        entry["platform"] = {"os": evil, "architecture": "amd64"}
    elif part == "ref":
        entry["annotations"] = {oci.REF_NAME: evil}
        return check(str(image.finish([entry, dict(entry, annotations={oci.REF_NAME: evil + "2"})])) + ":none", exits=(2,))
    elif part == "artifactType":
        image.layers = [dict(image.layers[0], mediaType=evil)]
        entry = image.manifest(artifactType=evil)
    else:
        entry["annotations"] = {"io.containerd.image.name": evil}
    return check(image.finish([entry]))
