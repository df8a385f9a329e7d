"""The step storage: folders by their variables and defaults, and what a trial in them says."""
import getpass
import os
import resource
import tempfile
import unittest
from unittest import mock

from harness import Payload, module

NAMING = ("HOME", "TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TRITON_HOME", "NCCL_DEBUG_FILE")


class Storage(Payload):
    """Runs of the step."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)

    def folders(self, variables, **more):
        """The folders of a run with these variables, by what is kept there."""
        others = {name: value for name, value in os.environ.items() if name not in NAMING}
        event = self.last(self.run_plan({"steps": ["storage"]}, env=dict(others, **variables), **more))
        self.assertEqual(event["event"], "result")
        return {folder["use"]: folder for folder in event["body"]["folders"]}

    def test_variables_name_the_folders(self):
        variables = {name: os.path.join(self.folder, name) for name in NAMING if name != "TRITON_HOME"}
        for name in ("HOME", "TMPDIR"):
            os.mkdir(variables[name])
        folders = self.folders(dict(variables, NCCL_DEBUG_FILE=variables["NCCL_DEBUG_FILE"] + "/%p.%h/log"), cwd=self.folder)
        self.assertEqual({use: folder["named_by"] for use, folder in folders.items()}, {
            "home folder": "HOME", "temporary files": "TMPDIR", "working directory": None,
            "cache of torch.compile": "TORCHINDUCTOR_CACHE_DIR", "cache of Triton": "TRITON_CACHE_DIR",
            "log of NCCL": "NCCL_DEBUG_FILE"})
        self.assertEqual(folders["working directory"]["path"], self.folder)
        # NCCL makes no folder for its log, the caches make theirs.
        self.assertEqual(folders["log of NCCL"]["error"], "ENOENT")
        self.assertNotIn("%", folders["log of NCCL"]["path"])
        cache = folders["cache of Triton"]
        self.assertEqual((cache["path"], cache["existing"], cache["error"]),
                         (variables["TRITON_CACHE_DIR"], self.folder, None))
        self.assertGreater(cache["free_bytes"], 0)
        self.assertTrue(cache["mount"].startswith("/") and cache["file_system"])
        self.assertEqual(sorted(os.listdir(self.folder)), ["HOME", "TMPDIR"], "something was left behind")

    def test_defaults_name_the_others(self):
        folders = self.folders({"HOME": self.folder, "NCCL_DEBUG_FILE": "/dev/stderr"})
        self.assertNotIn("log of NCCL", folders)
        paths = {use: (folder["path"], folder["named_by"]) for use, folder in folders.items()}
        self.assertEqual(paths["temporary files"], ("/tmp", "default"))
        self.assertEqual(paths["cache of torch.compile"], ("/tmp/torchinductor_" + getpass.getuser(), "default"))
        self.assertEqual(paths["cache of Triton"], (self.folder + "/.triton/cache", "default"))
        triton = self.folders({"HOME": "/", "TRITON_HOME": self.folder})["cache of Triton"]
        self.assertEqual((triton["path"], triton["named_by"]), (self.folder + "/.triton/cache", "TRITON_HOME"))


class Pieces(unittest.TestCase):
    """Pieces of the step that need no process."""

    def setUp(self):
        self.storage = module("storage")

    def test_a_user_without_a_name_has_neither_a_home_nor_a_cache(self):
        nobody = mock.patch("pwd.getpwuid", side_effect=KeyError("getpwuid(): uid not found: 7"))
        with nobody, mock.patch.dict(os.environ, clear=True):
            folders = {folder["use"]: folder for folder in self.storage.probe_storage(None, None)["folders"]}
        for use, why in (("home folder", "HOME is not set, and /etc/passwd has no entry"),
                         ("cache of torch.compile", "neither USER nor /etc/passwd names user %d" % os.getuid()), ("cache of Triton", "HOME is not set")):
            self.assertIn(why, folders[use]["unnamed"])
            self.assertIsNone(folders[use]["path"])
        self.assertIsNone(folders["temporary files"]["unnamed"])

    def test_what_torch_makes_of_a_user_without_a_name(self):
        unnamed = "torch.compile needs the user's name for a path%s, but neither USER nor /etc/passwd names user 7"
        for release, variables, expected in (
                ((2, 7), {}, unnamed % ""), ((2, 7), {"TORCHINDUCTOR_CACHE_DIR": "/c"}, ("/c", "TORCHINDUCTOR_CACHE_DIR")),
                ((2, 9), {"TORCHINDUCTOR_CACHE_DIR": "/c"}, unnamed % " also with TORCHINDUCTOR_CACHE_DIR"),
                ((2, 9), {"TORCHINDUCTOR_CACHE_DIR": "/c", "USER": "u"}, ("/c", "TORCHINDUCTOR_CACHE_DIR")),
                ((2, 13), {"TORCHINDUCTOR_CACHE_DIR": "/c"}, ("/c", "TORCHINDUCTOR_CACHE_DIR")),
                ((2, 13), {}, (tempfile.gettempdir() + "/torchinductor_uid_7", "default"))):
            nobody = mock.patch("pwd.getpwuid", side_effect=KeyError("getpwuid(): uid not found: 7"))
            with nobody, mock.patch.dict(os.environ, variables, clear=True), mock.patch.object(os, "getuid", lambda: 7), \
                    mock.patch.object(self.storage, "torch_release", lambda release=release: release):
                try:
                    answer = self.storage.inductor_cache()
                except self.storage.Unread as why:
                    answer = str(why)
            self.assertEqual(answer, expected, (release, variables))

    def test_the_release_of_torch(self):
        for version, release in (("2.9.0+cu128", (2, 9)), ("2.13.1", (2, 13)), ("nightly", (0, 0))):
            with mock.patch.object(self.storage.metadata, "version", lambda _, version=version: version):
                self.assertEqual(self.storage.torch_release(), release)
        missing = self.storage.metadata.PackageNotFoundError("torch")
        with mock.patch.object(self.storage.metadata, "version", side_effect=missing):
            self.assertEqual(self.storage.torch_release(), (0, 0))

    def test_a_home_of_the_table_of_users(self):
        with mock.patch.dict(os.environ, clear=True):
            self.assertEqual(self.storage.home_folder()[1], "/etc/passwd")

    def test_what_is_no_folder(self):
        with tempfile.NamedTemporaryFile() as file:
            body = self.storage.folder_body("x", lambda: (file.name + "/deeper", "X"), True)
        self.assertEqual((body["existing"], body["error"]), (file.name, "ENOTDIR"))

    def test_a_file_that_can_be_made_and_not_written(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_FSIZE, (soft, hard))
        with tempfile.TemporaryDirectory() as folder:
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
            self.assertEqual(self.storage.trial_error(folder), "EFBIG")
            self.assertEqual(os.listdir(folder), [])

    def test_modes_by_owner_group_and_others(self):
        status = lambda mode, uid=1, gid=1: mock.Mock(st_mode=mode, st_uid=uid, st_gid=gid)  # noqa: E731
        for user, groups, folder, permitted in (
                (1, [5], status(0o700), True), (1, [5], status(0o500), False), (1, [5], status(0o077), False),
                (2, [1], status(0o730), True), (2, [1], status(0o707), False), (2, [5], status(0o772), False),
                (2, [5], status(0o773), True), (0, [0], status(0o000), True)):
            with mock.patch.multiple(os, getuid=lambda user=user: user, getgid=lambda: 9, getgroups=lambda groups=groups: groups,
                                     stat=lambda _, folder=folder: folder):
                self.assertEqual(self.storage.mode_permits("/x"), permitted, (user, groups, oct(folder.st_mode)))

    def test_the_mount_of_a_path(self):
        mounts = module("mounts")
        table = [mounts.Mount("/", point, [], kind, "x", []) for point, kind in
                 (("/", "overlay"), ("/data", "nfs4"), ("/data/a", "ext4"), ("/data", "tmpfs"))]
        with mock.patch.object(mounts, "mounts", lambda: table):
            found = [mounts.mount_of(path).kind for path in ("/", "/database", "/data", "/data/b", "/data/a/c")]
        self.assertEqual(found, ["overlay", "overlay", "tmpfs", "tmpfs", "ext4"])
