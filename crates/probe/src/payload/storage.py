"""Step storage: writes a small file to each folder that training uses by default, and reads the free space there."""
import functools
import getpass
import os
import pwd
import re
import socket
import tempfile
from importlib import metadata

from ncclcheck_probe.facts import Facts, Unread, in_words
from ncclcheck_probe.mounts import mount_of
from ncclcheck_probe.readings import errno_name

TRIAL = bytes(16 << 10)  # needs a block of its own on every file system
FOLDER_FIELDS = ("use", "path", "named_by", "unnamed", "existing", "error", "permitted", "mount", "file_system",
                 "free_bytes", "free_inodes")


def probe_storage(_plan, _report):
    # A cache creates its folder if it is missing; the other folders must exist.
    places = [("home folder", home_folder, True), ("temporary files", temporary_folder, False),
              ("working directory", lambda: (os.getcwd(), None), False),
              ("cache of torch.compile", inductor_cache, True), ("cache of Triton", triton_cache, True)]
    if not os.environ.get("NCCL_DEBUG_FILE", "/dev/").startswith(("/dev/", "/proc/")):
        places.append(("log of NCCL", nccl_log_folder, False))
    return {"folders": [folder_body(*place) for place in places]}


def home_folder():
    """Follows os.path.expanduser."""
    if "HOME" in os.environ:
        return os.environ["HOME"] or "/", "HOME"
    try:
        return pwd.getpwuid(os.getuid()).pw_dir, "/etc/passwd"
    except KeyError:
        raise Unread("HOME is not set, and /etc/passwd has no entry for user %d" % os.getuid()) from None


def temporary_folder():
    given = os.environ.get("TMPDIR")
    return (given, "TMPDIR") if given else ("/tmp", "default")


def inductor_cache():
    """Follows torch/_inductor/runtime/cache_dir_utils.py. Python skips a TMPDIR that it cannot write to."""
    given = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    release = torch_release()
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        # Since 2.13 torch has a name of its own for such a user. From 2.8 to 2.12 it needs one also for a cache that is
        # given: torch/_inductor/codecache.py makes the default path when it is imported.
        user = "uid_%d" % os.getuid() if release >= (2, 13) else None
    if given and (user or release < (2, 8)):
        return given, "TORCHINDUCTOR_CACHE_DIR"
    if user is None:
        also = " also with TORCHINDUCTOR_CACHE_DIR" if given else ""
        raise Unread("torch.compile needs the user's name for a path%s, but neither USER nor /etc/passwd names "
                     "user %d" % (also, os.getuid()))
    return os.path.join(tempfile.gettempdir(), "torchinductor_" + re.sub(r'[\\/:*?"<>|]', "_", user)), "default"


def torch_release():
    """Returns major and minor release of the installed torch, without importing it; (0, 0) if it has no metadata."""
    try:
        found = re.match(r"(\d+)\.(\d+)", metadata.version("torch"))
    except metadata.PackageNotFoundError:
        found = None
    return (int(found[1]), int(found[2])) if found else (0, 0)


def triton_cache():
    """Follows Triton's python/triton/knobs.py, for kernels that torch.compile did not generate."""
    given = os.environ.get("TRITON_CACHE_DIR")
    if given:
        return given, "TRITON_CACHE_DIR"
    home = os.environ.get("TRITON_HOME")
    folder, named_by = (home, "TRITON_HOME") if home else (home_folder()[0], "default")
    return os.path.join(folder, ".triton", "cache"), named_by


def nccl_log_folder():
    """Follows NCCL's src/debug.cc."""
    folder = os.path.dirname(os.environ["NCCL_DEBUG_FILE"])
    return folder.replace("%h", socket.gethostname()).replace("%p", str(os.getpid())), "NCCL_DEBUG_FILE"


def folder_body(use, named, is_made):
    facts = Facts()
    facts.body.update(dict.fromkeys(FOLDER_FIELDS), use=use)
    try:
        path, named_by = named()
    except (Unread, OSError) as why:
        facts.body["unnamed"] = in_words(why)
        return facts.body
    path = os.path.abspath(path)
    existing = existing_folder(path)
    error = trial_error(existing if is_made else path)
    facts.body.update(path=path, named_by=named_by, existing=existing, error=error)
    facts.read("permitted", mode_permits, existing)
    facts.read("mount", lambda: mount_of(os.path.realpath(existing)).point)
    facts.read("file_system", lambda: mount_of(os.path.realpath(existing)).kind)
    facts.read("free_bytes", room_bytes, existing)
    facts.read("free_inodes", room_inodes, existing)
    return facts.body


def existing_folder(path):
    """Returns the path or its nearest existing ancestor."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return path


@functools.lru_cache(None)
def trial_error(folder):
    """Returns the name of the error of creating and writing a small file there, or None if that works. The file is
    removed; it never has a name if the kernel supports O_TMPFILE."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(TRIAL)
            file.flush()
            os.fsync(file.fileno())  # some file systems enforce a quota only here
    except OSError as error:
        return errno_name(error.errno)
    return None


def mode_permits(folder):
    """Returns True if the folder's mode lets this user create files, regardless of mounts and capabilities."""
    status = os.stat(folder)
    if os.getuid() == 0:
        return True
    group = status.st_gid in [os.getgid()] + os.getgroups()
    shift = 6 if status.st_uid == os.getuid() else 3 if group else 0
    return status.st_mode >> shift & 0o3 == 0o3


def room_bytes(folder):
    room = os.statvfs(folder)
    return room.f_frsize * room.f_bavail


def room_inodes(folder):
    """Returns None for a file system that allocates inodes on demand."""
    room = os.statvfs(folder)
    return room.f_favail if room.f_files else None
