"""The script that checks a downloaded release, with releases that were changed on their way."""
import hashlib, json, os, pathlib, shutil, subprocess, tempfile, unittest

from releases import ROOT

VERIFY = ROOT / "scripts/packages/ci/verify"
STATEMENT = "ncclcheck-1.0.0.intoto.json"


def sha256(content):
    return hashlib.sha256(content).hexdigest()


class Verify(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "release"
        self.folder.mkdir()
        products = {"ncclcheck-1.0.0.tar.gz": b"a program", "install-ncclcheck": b"a script"}
        bill = {"metadata": {"component": {"hashes": [{"alg": "SHA-256", "content": sha256(b"a program")}]}}}
        statement = {
            "subject": [{"name": name, "digest": {"sha256": sha256(content)}} for name, content in products.items()],
            "predicate": {
                "buildDefinition": {"resolvedDependencies": [{"name": "source", "digest": {"gitCommit": "c0ffee"}}]},
                "runDetails": {"builder": {"id": "a builder"}},
            },
        }
        self.files = {**products, "ncclcheck-1.0.0.tar.gz.cdx.json": json.dumps(bill).encode(), STATEMENT: json.dumps(statement).encode()}
        self.sums = "".join(f"{sha256(content)}  {name}\n" for name, content in self.files.items())
        self.write()

    def write(self):
        for name, content in self.files.items():
            (self.folder / name).write_bytes(content)
        (self.folder / "SHA256SUMS").write_text(self.sums)

    def verify(self, *more, shell="sh", path=None):
        return subprocess.run([shell, VERIFY, self.folder, *more], env={"PATH": path or os.environ["PATH"]}, capture_output=True, text=True)

    def refused(self, *words):
        done = self.verify()
        self.assertEqual(done.returncode, 1, done.stderr)
        for word in (*words, "do not use this release"):
            self.assertIn(word, done.stderr)
        self.write()

    def test_a_whole_release_lacks_only_a_signature(self):
        done = self.verify()
        self.assertEqual(done.stdout, "checksums and provenance of 2 products, 1 bills of materials\nbuilt from commit c0ffee by a builder\n")
        self.assertIn("no signature was checked", done.stderr)
        self.assertEqual(done.returncode, 3)
        (self.folder / "install-ncclcheck").unlink()
        self.assertIn("provenance of 1 products", self.verify().stdout)

    def test_what_was_changed_is_refused(self):
        (self.folder / "install-ncclcheck").write_bytes(b"another script")
        self.refused("does not have the checksum of install-ncclcheck")
        (self.folder / "unknown").write_bytes(b"")
        self.refused("does not have the checksum of unknown")
        (self.folder / "unknown").unlink()
        # Whoever changes the checksums too is refused by the statement, and by the bill.
        for name, why in (("install-ncclcheck", f"{STATEMENT} does not describe install-ncclcheck"), ("ncclcheck-1.0.0.tar.gz.cdx.json", "describes another file")):
            other = self.files[name].replace(b"a script", b"a virus").replace(sha256(b"a program").encode(), sha256(b"").encode())
            self.assertNotEqual(other, self.files[name])
            (self.folder / name).write_bytes(other)
            (self.folder / "SHA256SUMS").write_text(self.sums.replace(sha256(self.files[name]), sha256(other)))
            self.refused(why)
        for name, why in ((STATEMENT, "does not describe"), ("ncclcheck-1.0.0.tar.gz.cdx.json", "describes another file")):
            (self.folder / name).write_bytes(b"")
            (self.folder / "SHA256SUMS").write_text(self.sums.replace(sha256(self.files[name]), sha256(b"")))
            self.refused(why)

    def test_a_signature_is_required_of_each_product(self):
        # A stand-in: the real `gh` asks GitHub.
        tools = self.folder.parent / "tools"
        tools.mkdir()
        gh = tools / "gh"
        path = f"{tools}:{os.environ['PATH']}"
        for script, status, word in (("exit 0", 0, "signed by a workflow of owner/name"), ('[ "$3" != install-ncclcheck ]', 1, "no signature of owner/name for install-ncclcheck")):
            gh.write_text(f'#!/bin/sh\n[ "$1 $2 $4 $5" = "attestation verify --repo owner/name" ] || exit 9\n{script}\n')
            gh.chmod(0o755)
            done = self.verify("owner/name", path=path)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(word, done.stdout + done.stderr)

    def test_what_is_missing_is_said(self):
        bare = self.folder.parent / "bare"
        bare.mkdir()
        for name in ("sh", "sha256sum", "sed", "grep", "cut"):
            (bare / name).symlink_to(shutil.which(name))
        for done, word in (
            (self.verify(path=str(bare)), "needs jq"),
            (subprocess.run(["sh", VERIFY, "/nonexistent"], capture_output=True, text=True), "no such folder"),
            (subprocess.run(["sh", VERIFY], capture_output=True, text=True), "usage: verify FOLDER"),
        ):
            self.assertEqual(done.returncode, 2)
            self.assertIn(word, done.stderr)
        (self.folder / STATEMENT).unlink()
        self.assertIn("needs one statement", self.verify().stderr)


if __name__ == "__main__":
    unittest.main()
