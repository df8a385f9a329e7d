"""The script that downloads a release, against servers and machines that are not as it expects."""
import hashlib, os, pathlib, shutil, subprocess, tempfile, unittest

from releases import NAME, ROOT, VERSION, archive, require_answers, served, small_program, write

INSTALL = ROOT / "scripts/packages/ci/install"


setUpModule = require_answers


class Install(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.releases, self.target = self.folder / "releases", self.folder / "bin"
        self.sha256 = write(self.releases)
        self.release = self.releases / f"v{VERSION}"

    def install(self, url=None, version=VERSION, target=None, shell="sh", **environment):
        with served(self.releases) as (own, asked):
            done = subprocess.run([shell, INSTALL, url or own, version, target or self.target], env={"PATH": os.environ["PATH"], **environment}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        self.asked = asked
        return done

    def assert_refused(self, done, *words):
        self.assertEqual(done.returncode, 2, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertIn("help: ", done.stderr)
        self.assertEqual(list(self.target.glob("*")) + list(self.target.glob(".*")), [], "nothing is left")

    def tools(self, *names):
        """A folder for PATH with only these programs."""
        folder = self.folder / "-".join(("path", *names))
        folder.mkdir()
        common = ("sh", "sed", "uname", "mkdir", "mktemp", "rm", "mv", "tar", "gzip", "sha256sum", "cut", "cat", "tr", "grep", "getconf")
        for name in (*common, *names):
            (folder / name).symlink_to(shutil.which(name))
        return str(folder)

    def test_program_is_installed_and_kept(self):
        for version in (VERSION, f"v{VERSION}"):
            done = self.install(version=version, NCCLCHECK_SHA256=self.sha256)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual([path.name for path in self.target.iterdir()], ["ncclcheck"])
            version_of = subprocess.run([self.target / "ncclcheck", "--version"], capture_output=True, text=True).stdout
            self.assertEqual(version_of.splitlines()[0], f"ncclcheck {VERSION}")
        self.assertEqual(self.asked, [], "the second time, nothing is downloaded")

    def test_wget_is_enough(self):
        if shutil.which("wget") is None:
            self.skipTest("no wget on this machine")
        self.assertEqual(self.install(PATH=self.tools("wget")).returncode, 0)
        shutil.rmtree(self.target)
        self.assert_refused(self.install(version="9.9.9", PATH=f"{self.folder}/path-wget"), "no SHA256SUMS of version 9.9.9")

    def test_no_tool_for_the_download(self):
        self.assert_refused(self.install(PATH=self.tools()), "needs curl or wget")

    def test_folder_of_files(self):
        self.assertEqual(self.install(url=self.releases.as_uri()).returncode, 0)
        shutil.rmtree(self.target)
        self.assert_refused(self.install(url=self.releases.as_uri(), version="9.9.9"), "no SHA256SUMS of version 9.9.9")

    def test_changed_archive(self):
        (self.release / f"{NAME}.tar.gz").write_bytes(archive(b"#!/bin/sh\necho ncclcheck forged\n"))
        self.assert_refused(self.install(), self.sha256, "nothing was installed")

    def test_changed_archive_and_sums(self):
        content = archive(small_program() + b"# forged\n")
        (self.release / f"{NAME}.tar.gz").write_bytes(content)
        (self.release / "SHA256SUMS").write_text(f"{hashlib.sha256(content).hexdigest()}  {NAME}.tar.gz\n")
        self.assert_refused(self.install(NCCLCHECK_SHA256=self.sha256), self.sha256, "nothing was installed")

    def test_missing_version(self):
        self.assert_refused(self.install(version="9.9.9"), "no SHA256SUMS of version 9.9.9", "404")

    def test_no_version_at_all(self):
        for version in ("../..", "1 0", "latest/x"):
            self.assert_refused(self.install(version=version), "no version of a release")

    def test_release_without_this_machine(self):
        (self.release / "SHA256SUMS").write_text(f"{self.sha256}  {NAME}-other.tar.gz\n{self.sha256}  x{NAME}.tar.gz\n")
        self.assert_refused(self.install(), f"does not name {NAME}.tar.gz")
        (self.release / "SHA256SUMS").write_text("<html>Sign in</html>\n")
        self.assert_refused(self.install(), f"does not name {NAME}.tar.gz")

    def test_no_network(self):
        with served(self.releases) as (url, _):
            pass
        self.assert_refused(self.install(url=url), f"{url}/v{VERSION}/SHA256SUMS could not be downloaded")

    def test_plain_http_to_another_machine(self):
        self.assert_refused(self.install(url="http://releases.example"), "no URL of releases")

    def test_folder_that_cannot_be_written(self):
        blocked = self.folder / "file"
        blocked.write_text("")
        self.assert_refused(self.install(target=blocked / "bin"), f"cannot write to {blocked}/bin")

    def test_program_that_does_not_run(self):
        content = archive(b"#!/nonexistent/interpreter\n")
        (self.release / f"{NAME}.tar.gz").write_bytes(content)
        (self.release / "SHA256SUMS").write_text(f"{hashlib.sha256(content).hexdigest()}  {NAME}.tar.gz\n")
        done = self.install()
        self.assertEqual(done.returncode, 2)
        self.assertIn("does not run on this machine", done.stderr)
        self.assertEqual(list(self.target.iterdir()), [])

    def test_usage(self):
        done = subprocess.run(["sh", INSTALL], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage: install RELEASES VERSION FOLDER", done.stderr)


if __name__ == "__main__":
    unittest.main()
