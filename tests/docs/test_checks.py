"""The checks of the documentation notice what is wrong."""
import importlib.machinery, importlib.util, pathlib, re, shutil, subprocess, tempfile, unittest

HERE = pathlib.Path(__file__).resolve().parent


def script(path):
    loader = importlib.machinery.SourceFileLoader(path.name.replace("-", "_"), str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


EXAMPLES, LINKS, PAGES = script(HERE / "examples"), script(HERE / "links"), script(HERE.parents[1] / "scripts/book-pages")

MUTANTS, LICENSES = script(HERE.parents[1] / "scripts/mutants"), script(HERE.parents[1] / "scripts/packages/licenses")
PLACE = script(HERE.parents[1] / "scripts/place")


class Paths(unittest.TestCase):
    """What texts and scripts say of the tree is there: a renamed file leaves no mention of its old name."""
    ROOT = HERE.parents[1]

    def test_paths_in_texts_exist(self):
        tracked = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=self.ROOT, check=True, capture_output=True, text=True)
        ends = {"/".join(parts[start:]) for path in tracked.stdout.split() if (self.ROOT / path).exists()
                for parts in [path.split("/")] for start in range(len(parts))}
        folders = {"/".join(parts[:end]) for path in ends for parts in [path.split("/")] for end in range(1, len(parts))}
        texts = [self.ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Cargo.toml", "rules/tables/README.md")]
        texts += sorted((self.ROOT / "crates").glob("*/README.md"))
        named = r"`((?:src|crates|tests|docs|rules|scripts|fuzz|fixtures|packages)/[a-z0-9_./-]+|[a-z_]+/[a-z0-9_/]+\.(?:rs|py|yaml))`"
        found = [(text.name, path) for text in texts + sorted((self.ROOT / "docs").rglob("*.md")) for path in re.findall(named, text.read_text())]
        self.assertGreater(len(found), 50)
        missing = [f"{text}: {path}" for text, path in found if path.rstrip("/") not in ends and path.rstrip("/") not in folders]
        self.assertEqual(missing, [])

    def test_recordings_name_nothing_of_the_machine_that_made_them(self):
        recordings = "".join(path.read_text() for path in (self.ROOT / "fixtures").rglob("*.jsonl")).replace('\\"', '"')
        self.assertEqual(set(re.findall(r'"working_folder":"([^"]*)"', recordings)), {"/", "/root", "/srv/job"})
        self.assertEqual(set(re.findall(r'"process_1":{"name":"([^"]*)"', recordings)), {"init", "python3"})

    def test_modules_of_mutants_exist(self):
        self.assertTrue(MUTANTS.choose(MUTANTS.MODULES, MUTANTS.tracked()))


class Licenses(unittest.TestCase):
    def texts(self, license, *files, name="some"):
        with tempfile.TemporaryDirectory() as folder:
            for file in files:
                path = pathlib.Path(folder, file)
                path.parent.mkdir(exist_ok=True)
                path.write_text(f"text of {file}")
            package = {"name": name, "version": "1.0.0", "license": license, "license_file": None, "manifest_path": f"{folder}/Cargo.toml"}
            return LICENSES.part(package)[1][1]

    def test_texts_of_a_crate(self):
        self.assertEqual(self.texts("MIT", "LICENSE-MIT", "c/COPYING", "NOTICE", "license.rs"), ["text of LICENSE-MIT", "text of c/COPYING", "text of NOTICE"])
        self.assertEqual(self.texts("MIT", "NOTICE"), [], "a notice is not a license")
        self.assertIn("Apache License", self.texts("MIT/Apache-2.0")[0])
        self.assertEqual(self.texts("MIT AND Apache-2.0"), [])
        self.assertIn("Permission is hereby granted", self.texts("MIT", name="cel")[0])

    def test_each_text_once(self):
        text = LICENSES.document({"a 1": ("MIT", ["one\ntext"]), "b 2": ("MIT", ["one text\n", "two"])})
        self.assertIn("\na 1: MIT (1)\nb 2: MIT (1, 2)\n", text)
        self.assertEqual((text.count("one\ntext"), text.count("one text")), (1, 0))


class Place(unittest.TestCase):
    """Where the project is published has one place in the repository, and naming it is one command."""
    ROOT = HERE.parents[1]

    def test_all_files_name_the_same_place(self):
        mentions, problems = PLACE.check(self.ROOT, PLACE.tracked())
        self.assertEqual(problems, [])
        self.assertGreater(mentions, 20)

    def test_a_place_is_named_everywhere(self):
        with tempfile.TemporaryDirectory() as name:
            root, files = pathlib.Path(name), PLACE.tracked()
            for file in files:
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.ROOT / file, root / file)
            mentions, _ = PLACE.check(root, files)
            # The second one begins as the image does.
            for host in ("forge.test", "images.test"):
                chosen = {"repository": f"https://{host}/some/ncclcheck", "image": "images.test/some/ncclcheck", "contact": f"some@{host}"}
                PLACE.name(root, files, **chosen)
                self.assertEqual(PLACE.place(root) | chosen, PLACE.place(root))
                self.assertEqual(PLACE.check(root, files), (mentions, []))
            (root / "README.md").write_text("https://forge.test/other/ncclcheck and registry.test/ncclcheck:1 <x@y.test>\nuses: a/ncclcheck@v1")
            self.assertEqual(len(PLACE.check(root, files)[1]), 4)
            (root / "README.md").write_text("OWNER/ncclcheck")
            self.assertEqual(PLACE.check(root, files)[1], ["README.md: says that there is no place yet"])


class Examples(unittest.TestCase):
    def test_output_is_compared_whole(self):
        self.assertTrue(EXAMPLES.matches("a\nb\n", "a\nb\n"))
        for shown in ("a\n", "b\n", "a\nb\nc\n", "", "...\nc\n", "...\na\nb\n"):
            self.assertFalse(EXAMPLES.matches(shown, "a\nb\n"), shown)
        self.assertTrue(EXAMPLES.matches("a\n...\nd\n", "a\nb\nc\nd\n"))

    def test_commands_run_in_turn_with_files_and_status(self):
        text = "```yaml file=a.yaml\nx: 1\n```\n```console\n$ cat a.yaml; \\\nfalse\n$ echo $?\n$ echo 'b\nc'\n```\n"
        self.assertEqual([actual for _, _, actual in EXAMPLES.run_page(text, pathlib.Path("/bin/true"))], ["x: 1\n", "1\n", "b\nc\n"])

    def test_the_program_under_test_runs(self):
        (_, expected, actual), = EXAMPLES.run_page("```console\n$ ncclcheck hello\nbye\n```\n", pathlib.Path("/bin/echo"))
        self.assertEqual((expected, actual), ("bye\n", "hello\n"))

    def test_rewriting_keeps_all_else(self):
        text = "before\n```sh\n$ no\n```\n```console\n$ echo new\nold\n$ echo kept\n...\n```\nafter\n"
        results = EXAMPLES.run_page(text, pathlib.Path("/bin/true"))
        self.assertEqual(EXAMPLES.rewritten(text, results), text.replace("old", "new"))


class Links(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        (self.folder / "a.html").write_text('<h1 id="one"></h1><a href="https://example.com/">x</a>')
        (self.folder / "a.md").write_text("# One `two`: three\n\n    text\n")

    def test_pages(self):
        for target, is_broken in [("a.html", False), ("a.html#one", False), ("#two", True), ("a.html#two", True), ("c.html", True), ("..", True)]:
            (self.folder / "b.html").write_text(f'<a href="{target}">x</a>')
            self.assertEqual(LINKS.book(self.folder), (2, [f"b.html: {target}"] if is_broken else []), target)

    def test_markdown(self):
        page = self.folder / "b.md"
        for target, is_broken in [("a.md", False), ("a.md#one-two-three", False), ("a.md#one", True), ("c.md", True), ("https://example.com", False)]:
            page.write_text(f"[x]({target}) and `[y](nothing)`\n```sh\n[z](nothing)\n```\n")
            self.assertEqual(LINKS.markdown([page]), [f"{page}: {target}"] if is_broken else [], target)


class Symptoms(unittest.TestCase):
    RULES = {"a/b": {"title": "t", "fix": "Do this:\n\n```dockerfile\nRUN x | y\nRUN z\n```", "raw": "it's broken"}}
    PATTERNS = {"p": {"example": "host:1:2 [0] a.cc:1 NCCL WARN Out of luck", "meaning": "no luck"}}

    def test_faults_are_reported(self):
        for row, count in [
            ({"text": "It's Broken", "rules": ["a/b"]}, 0),
            ({"text": "all is well", "rules": ["a/b"]}, 1),
            ({"text": "all is well", "rules": ["a/b"], "source": "a book"}, 0),
            ({"text": "it's broken", "rules": ["a/b", "a/c"]}, 1),
            ({"log": "p", "rules": ["a/b"]}, 0),
            ({"log": "q", "rules": ["a/b"]}, 1),
            ({"log": "p"}, 1),
        ]:
            self.assertEqual(len(list(PAGES.faults(row, self.PATTERNS, self.RULES))), count, row)

    def test_rows(self):
        expected = "| `Out of luck`<br>No luck. | [a/b](rules/a/b.md)<br>Do this: `RUN x \\| y` |\n"
        self.assertEqual(PAGES.line({"log": "p", "rules": ["a/b"]}, self.PATTERNS, self.RULES), expected)


if __name__ == "__main__":
    unittest.main()
