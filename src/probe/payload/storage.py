"""Step storage: the folders that training writes to without being asked. Can files be made there, and how much room is left?"""
import functools
import getpass
import os
import pwd
import re
import socket
import tempfile

from ncclcheck_probe.facts import Facts, Unread, in_words
from ncclcheck_probe.mounts import mount_of
from ncclcheck_probe.readings import errno_name

TRIAL = bytes(16 << 10)  # enough for a block of its own on every file system
FOLDER_FIELDS = ("use", "path", "named_by", "unnamed", "existing", "error", "permitted", "mount", "file_system",
                 "free_bytes", "free_inodes")


def probe_storage(_plan, _report):
    # A cache makes its folder where that is missing; the others need it to be there.
    places = [("home folder", home_folder, True), ("temporary files", temporary_folder, False),
              ("working folder", lambda: (os.getcwd(), None), False),
              ("cache of torch.compile", inductor_cache, True), ("cache of Triton", triton_cache, True)]
    if not os.environ.get("NCCL_DEBUG_FILE", "/dev/").startswith(("/dev/", "/proc/")):
        places.append(("log of NCCL", nccl_log_folder, False))
    return {"folders": [folder_body(*place) for place in places]}


def home_folder():
    """As os.path.expanduser finds it."""
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
    """By torch/_inductor/runtime/cache_dir_utils.py. Python passes over a TMPDIR that takes no files."""
    given = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if given:
        return given, "TORCHINDUCTOR_CACHE_DIR"
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        raise Unread("it has the user's name, and neither USER nor /etc/passwd has one for user %d" %
                     os.getuid()) from None
    return os.path.join(tempfile.gettempdir(), "torchinductor_" + re.sub(r'[\\/:*?"<>|]', "_", user)), "default"


def triton_cache():
    """By Triton's python/triton/knobs.py, of kernels that torch.compile did not make."""
    given = os.environ.get("TRITON_CACHE_DIR")
    if given:
        return given, "TRITON_CACHE_DIR"
    home = os.environ.get("TRITON_HOME")
    folder, named_by = (home, "TRITON_HOME") if home else (home_folder()[0], "default")
    return os.path.join(folder, ".triton", "cache"), named_by


def nccl_log_folder():
    """By NCCL's src/debug.cc."""
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
    facts.body.update(path=path, named_by=named_by, existing=existing, error=trial_error(existing if is_made else path))
    facts.read("permitted", mode_permits, existing)
    facts.read("mount", lambda: mount_of(os.path.realpath(existing)).point)
    facts.read("file_system", lambda: mount_of(os.path.realpath(existing)).kind)
    facts.read("free_bytes", free_bytes, existing)
    facts.read("free_inodes", free_inodes, existing)
    return facts.body


def existing_folder(path):
    """The path, or the nearest of those above it that is there."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return path


@functools.lru_cache(None)
def trial_error(folder):
    """The name of the error with which a small file cannot be made and written there; None if it can. The file has no name
    where the kernel offers that, and is gone in any case."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(TRIAL)
            file.flush()
            os.fsync(file.fileno())  # some file systems count against a quota only now
    except OSError as error:
        return errno_name(error.errno)
    return None


def mode_permits(folder):
    """Whether the folder's mode lets this user make files there, whatever mounts and capabilities allow."""
    status = os.stat(folder)
    if os.getuid() == 0:
        return True
    group = status.st_gid in [os.getgid()] + os.getgroups()
    shift = 6 if status.st_uid == os.getuid() else 3 if group else 0
    return status.st_mode >> shift & 0o3 == 0o3


def free_bytes(folder):
    room = os.statvfs(folder)
    return room.f_frsize * room.f_bavail


def free_inodes(folder):
    """None on a file system that makes them as they are needed."""
    room = os.statvfs(folder)
    return room.f_favail if room.f_files else None
