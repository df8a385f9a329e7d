import importlib.machinery, importlib.util, io, pathlib, sys, tarfile, unittest

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
class Departures(unittest.TestCase):
    def departs(self, ours, theirs):
        return engines.departures({"docker": engines.Reading(theirs), engines.OURS: engines.Reading(ours)})

    def test_agreement_is_no_departure(self):
        self.assertEqual(self.departs("a", "a"), set())
        self.assertEqual(self.departs(None, None), set())

    def test_each_difference_is_one(self):
        self.assertEqual(self.departs("a", "b"), {("docker", "differs")})
        self.assertEqual(self.departs("a", None), {("docker", "refuses")})
        self.assertEqual(self.departs(None, "a"), {("docker", "accepts")})


class Shrinking(unittest.TestCase):
    def test_only_pieces_that_a_departure_needs_stay(self):
        class Bench:
            def read(self, layers):
                has = any(form == "type 7" for layer in layers for form, _ in layer.pieces)
                return {engines.OURS: engines.Reading("a"), "docker": engines.Reading("b" if has else "a")}

        least = engines.shrink(Bench(), headers.image(["type 7", "type 0"]), {("docker", "differs")})
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
