import importlib.machinery, importlib.util, io, pathlib, sys, tarfile, tempfile, unittest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
import headers, tarball  # noqa: E402


def program():
    loader = importlib.machinery.SourceFileLoader("engines", str(HERE / "engines"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


engines = program()
TABLE = """
- form: refused
  readings:
    - {by: [Docker, Podman], read: refuse it, refuses: true}
    - {by: [containerd, umoci], read: read it}
- form: refused since
  readings:
    - {by: [Docker], read: refuses it from 28 on, refuses: true}
    - {by: [Podman, containerd, umoci], read: read it}
- form: refused until
  readings:
    - {by: [Docker], read: refuses it before 28, refuses: true}
    - {by: [Podman, containerd, umoci], read: read it}
- form: another of umoci
  readings:
    - {by: [Docker, Podman, containerd], read: agree}
    - {by: [umoci], read: does not}
- form: elsewhere
  readings:
    - {by: [Docker, Podman, containerd, umoci], read: agree}
    - {by: [GNU tar], read: does not}
"""


class Departures(unittest.TestCase):
    def setUp(self):
        with tempfile.NamedTemporaryFile("w") as table:
            table.write(TABLE)
            table.flush()
            self.ambiguities = engines.Ambiguities(pathlib.Path(table.name), {"docker": 20, "docker-new": 28, "podman": 4, "containerd": 1})

    def departs(self, reported, engine, theirs, ours="a"):
        return self.ambiguities.departs(engines.Reading(ours, reported=frozenset(reported)), engine, engines.Reading(theirs))

    def test_agreement_is_no_departure(self):
        self.assertIsNone(self.departs([], "docker", "a"))
        self.assertIsNone(self.departs([], "docker", None, ours=None))

    def test_each_difference_without_a_report_is_one(self):
        self.assertEqual(self.departs([], "docker", "b"), "differs")
        self.assertEqual(self.departs([], "docker", None), "refuses")
        self.assertEqual(self.departs([], "docker", "a", ours=None), "accepts")

    def test_a_report_explains_the_refusal_of_the_engines_that_it_names(self):
        self.assertIsNone(self.departs(["refused"], "docker-new", None))
        self.assertEqual(self.departs(["refused"], "containerd", None), "refuses")

    def test_an_engine_that_is_said_to_refuse_must_refuse(self):
        self.assertEqual(self.departs(["refused"], "podman", "a"), "reads")

    def test_a_version_decides_where_the_table_names_one(self):
        self.assertIsNone(self.departs(["refused since"], "docker", "a"))
        self.assertEqual(self.departs(["refused since"], "docker-new", "a"), "reads")
        self.assertIsNone(self.departs(["refused until"], "docker-new", "a"))
        self.assertEqual(self.departs(["refused until"], "docker", "a"), "reads")

    def test_a_report_on_other_programs_explains_nothing(self):
        self.assertEqual(self.departs(["elsewhere"], "docker", "b"), "differs")
        self.assertEqual(self.departs(["another of umoci"], "containerd", "b"), "differs")
        self.assertIsNone(self.departs(["another of umoci"], "umoci", "b"))

    def test_the_one_of_docker_and_containerd_that_reads_is_followed(self):
        self.assertEqual(self.departs(["refused"], "containerd", "b"), "differs")


class Shrinking(unittest.TestCase):
    def test_only_pieces_that_a_departure_needs_stay(self):
        class Bench:
            def read(self, layers):
                has = any(form == "type 7" for layer in layers for form, _ in layer.pieces)
                return {engines.OURS: engines.Reading("a"), "docker": engines.Reading("b" if has else "a")}

        ambiguities = engines.Ambiguities.__new__(engines.Ambiguities)
        ambiguities.rows = {}
        least = engines.shrink(Bench(), ambiguities, headers.image(["type 7", "type 0"]), {("docker", "differs")})
        self.assertEqual([[form for form, _ in layer.pieces] for layer in least], [[], ["type 7"]])


class Members(unittest.TestCase):
    def read(self, data):
        return [(member.name, member.size) for member in tarfile.open(fileobj=io.BytesIO(data + b"\0" * 1024))]

    def test_a_record_counts_the_digits_of_its_length(self):
        for size in (1, 90, 91, 92, 93, 990, 991, 992):
            data = tarball.record(b"k", b"v" * size)
            self.assertEqual(int(data.split(b" ")[0]), len(data))

    def test_python_reads_what_is_valid(self):
        self.assertEqual(self.read(tarball.long(b"L", b"n" * 150) + tarball.file(b"short", 7)), [("n" * 150, 7)])
        self.assertEqual(self.read(tarball.pax([(b"path", b"p")]) + tarball.file(b"short", 600)), [("p", 600)])
        self.assertEqual(self.read(tarball.header(b"b", size=tarball.base256(3, 12)) + tarball.body(3)), [("b", 3)])

    def test_python_reads_each_sparse_dialect(self):
        regions = [(number * 1000, 9) for number in range(30)]
        after = tarball.file(b"after", 5)
        self.assertEqual(self.read(tarball.old_sparse(b"s", 40000, regions) + after), [("s", 40000), ("after", 5)])
        for version in b"0.0", b"0.1", b"1.0":
            self.assertEqual(self.read(tarball.pax_sparse(version, b"s", 40000, regions) + after), [("s", 40000), ("after", 5)])


class Forms(unittest.TestCase):
    def test_every_form_makes_an_image(self):
        for name in headers.FORMS:
            with self.subTest(name):
                layers = headers.image([name])
                self.assertTrue(all(len(data) for layer in layers for _, data in layer.pieces))

    def test_a_seed_gives_the_same_images(self):
        self.assertEqual(list(headers.images(20, 7)), list(headers.images(20, 7)))
        self.assertNotEqual(list(headers.images(20, 7)), list(headers.images(20, 8)))


if __name__ == "__main__":
    unittest.main()
