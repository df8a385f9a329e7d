"""Tests of scripts/releases: what it reads from libraries and tables, and what it reports as missing, on generated ones."""
import importlib.machinery, importlib.util, pathlib, struct, sys, tempfile, unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/releases"
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("releases", str(SCRIPT))
releases = importlib.util.module_from_spec(importlib.util.spec_from_loader("releases", loader))
loader.exec_module(releases)

VARIABLES = '''
# Explains the table.
compared:
  nccl: ["2.1.1", "2.2.1"]
  torch: ["2.1"]
nccl:
  - {name: NCCL_A, since: "2.1.1", reads: word, of: [ON, "off"], what: "a, b: c"}
  - {name: NCCL_B, since: "2.1.1",
     until: "2.1.1"}
  - {name: NCCL_C, since: "2.2.1"}
  - {name: NCCL_D, since: "2.1.1", unheld: its name is put together from two parts}
constants: [NCCL_CONSTANT]
levels: [{name: LOC, since: "2.1.1"}]
torch:
  - {name: NCCL_OF_TORCH, since: "2.0", until: "2.1"}
'''
OTHERS = {
    "plugins": "- {variable: NCCL_NET_PLUGIN, library: libnccl-net, symbol: ncclNetPlugin_v}\n",
    "verbs": "- {version: IBVERBS_1.1, loses: all, source: x}\n",
    "algorithms": "algorithms:\n  - {name: Ring, since: \"2.1.1\"}\nprotocols: [LL]\nfunctions:\n  - {function: Reduce, of: [Ring]}\n",
    "cuda": 'releases:\n  - {cuda: "12.0", branch: 525, ptx: "8.0"}\n  - {cuda: "12.1", branch: 530, ptx: "8.1"}\n',
}
HELD = {"names": {"NCCL_A", "NCCL_CONSTANT", "NCCL_OF_TORCH"}, "ends": set(), "interfaces": {"ncclNetPlugin_v8", "ncclCollNetPlugin_v8"},
        "symbol_versions": {"IBVERBS_1.1"}, "words": {"ON", "switched_OFF", "LOC", "Ring", "LL"}}


def found(**more):
    """Two releases that the tables describe fully, plus extra contents of the second one."""
    first = {**HELD, "names": HELD["names"] | {"NCCL_B"}}
    second = {**HELD, "names": HELD["names"] | {"NCCL_C"}}
    return {"2.1.1": first, "2.2.1": {kind: second[kind] | more.get(kind, set()) for kind in second}}


def library(text, machine_code=b"\0NCCL_IN_CODE\0", gpu_code=b"\0NCCL_ON_GPU\0"):
    """An ELF file with three sections: constants, instructions and GPU code."""
    names = b"\0.rodata\0.text\0.nv_fatbin\0.shstrtab\0"
    parts = [(names.index(b".rodata"), 1, 0x2, text), (names.index(b".text"), 1, 0x6, machine_code),
             (names.index(b".nv_fatbin"), 1, 0x2, gpu_code), (names.index(b".shstrtab"), 3, 0, names)]
    body, headers = b"", bytes(64)
    for name, kind, flags, content in parts:
        headers += struct.pack("<IIQQQQIIQQ", name, kind, flags, 0, 64 + len(body), len(content), 0, 0, 1, 0)
        body += content
    start = struct.pack("<4sBB10xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 3, 62, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, 5, 4)
    return start + body + headers


class Releases(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = releases.TABLES = pathlib.Path(folder.name)
        for name, text in {**OTHERS, "variables": VARIABLES}.items():
            (self.folder / (name + ".yaml")).write_text(text)

    def lacks(self, held):
        return [(lack["name"], lack["lacks"], lack["releases"]) for lack in releases.compare_nccl(held)]

    def test_rows_are_read(self):
        first, second = releases.rows("variables", "nccl")[:2]
        self.assertEqual(first, {"name": "NCCL_A", "since": "2.1.1", "reads": "word", "of": ["ON", "off"], "what": "a, b: c"})
        self.assertEqual(second, {"name": "NCCL_B", "since": "2.1.1", "until": "2.1.1"})
        self.assertEqual(releases.rows("variables", "compared"), {"nccl": ["2.1.1", "2.2.1"], "torch": ["2.1"]})

    def test_complete_tables_miss_nothing(self):
        self.assertEqual(self.lacks(found()), [])

    def test_additions_of_a_release_are_reported(self):
        for kind, literal, expected in [
            ("names", "NCCL_NEW", ("NCCL_NEW", "no row has this name", ["2.2.1"])),
            ("names", "NCCL_B", ("NCCL_B", "in releases that no row covers", ["2.2.1"])),
            ("interfaces", "ncclNewPlugin_v1", ("ncclNewPlugin_v", "no row has this symbol", ["2.2.1"])),
            ("symbol_versions", "MLX5_1.9", ("MLX5_1.9", "no row has this version", ["2.2.1"])),
        ]:
            self.assertEqual(self.lacks(found(**{kind: {literal}})), [expected])

    def test_removals_of_a_release_are_reported(self):
        held = found()
        held["2.2.1"]["names"].discard("NCCL_C")
        held["2.2.1"]["words"] -= {"ON", "Ring", "LOC"}
        self.assertEqual(self.lacks(held), [
            ("NCCL_C", "covered by a row, but in no library", ["2.2.1"]), ("NCCL_A=ON", "no library contains this value", ["2.2.1"]),
            ("levels=LOC", "no library contains this value", ["2.2.1"]),
            ("algorithms=Ring", "no library contains this value", ["2.2.1"]), ("Reduce=Ring", "no library contains this value", ["2.2.1"])])

    def test_a_name_at_the_end_of_another_literal_is_known_but_never_new(self):
        held = found(ends={"NCCL_C", "NCCL_NEW"})
        held["2.2.1"]["names"].discard("NCCL_C")
        self.assertEqual(self.lacks(held), [])
        held["2.2.1"]["ends"].add("NCCL_B")
        self.assertEqual(self.lacks(held), [("NCCL_B", "in releases that no row covers", ["2.2.1"])])

    def test_a_new_release_is_reported(self):
        held = {**found(), "2.10.1": found()["2.2.1"]}
        self.assertEqual(self.lacks(held), [("nccl", "not among the releases compared", ["2.10.1"])])

    def test_releases_of_cuda(self):
        # The runtime of 12.2 has another version than its compiler, and the runtime of 12.10 no compiler.
        held = {"12.0.9": {"ptx": {"8.0"}}, "12.1.9": {"ptx": {"8.2"}}, "12.2.9": {"ptx": {"8.2"}}, "12.2.7": {}, "12.10.7": {}}
        self.assertEqual([(lack["name"], lack["lacks"], lack["releases"]) for lack in releases.compare_cuda(held)], [
            ("12.2", "no row has this release", ["12.2.7", "12.2.9"]), ("12.10", "no row has this release", ["12.10.7"]),
            ("12.1", "its compiler knows PTX 8.2, not 8.1", ["12.1.9"])])

    def test_branches_of_drivers(self):
        self.assertEqual(releases.release_of("driver", "12.535.161"), "535")
        found = {branch: {} for branch in ["340", "525", "530", "535"]}
        self.assertEqual([(lack["name"], lack["lacks"]) for lack in releases.new_driver(found)], [("driver 535", "no row has this branch")])

    def test_new_releases_are_found_without_their_contents(self):
        wheels = [("nccl", "nvidia-nccl-cu12", "2.2.1.post1"), ("nccl", "nvidia-nccl-cu12", "2.10.1"), ("cuda", "nvidia-cuda-runtime", "12.2.7"),
                  ("driver", "nvidia-ml-py", "12.535.161"), ("torch", "torch", "2.1.2"), ("torch", "torch", "2.2.0")]
        found = releases.listed(wheels)
        self.assertEqual([(lack["table"], lack["name"], lack["releases"]) for project in found for lack in releases.NEW[project](found[project])], [
            ("variables", "nccl", ["2.10.1"]), ("cuda", "12.2", ["12.2.7"]), ("cuda", "driver 535", ["535"]), ("variables", "torch", ["2.2"])])

    def test_bounds_compare_only_their_written_parts(self):
        for since, until, release, expected in [
            ("2.1", "2.14", "2.14.3", True), ("2.1", "2.14", "2.15", False), ("2.10", None, "2.9.1", False), ("2.2.1", None, "2.2.1", True)]:
            row = {"since": since, **({"until": until} if until else {})}
            self.assertEqual(releases.covers(row, release), expected, (row, release))

    def test_literals_of_a_library(self):
        path = self.folder / "libnccl.so.2"
        path.write_bytes(library(b"NCCL_FIRST\0lead NCCL_END\0\xf3\x02NCCL_BEHIND_NUMBER\0\0ncclNetPlugin_v8\0IBVERBS_1.8\0Tree\0NCCL version 2.27.5+cuda12.9\0"))
        self.assertEqual(releases.of_library(path), {
            "names": ["NCCL_BEHIND_NUMBER", "NCCL_FIRST"], "ends": ["NCCL_END"], "interfaces": ["ncclNetPlugin_v8"], "symbol_versions": ["IBVERBS_1.8"],
            "words": ["NCCL_BEHIND_NUMBER", "NCCL_END", "NCCL_FIRST", "Tree", "ncclNetPlugin_v8"], "release": "2.27.5"})
        path.write_text("no library")
        self.assertRaises(ValueError, releases.of_library, path)


if __name__ == "__main__":
    unittest.main()
