"""Lists the root file system that an engine would give a container, from the folders of an image's layers."""
import contextlib, ctypes, os, pathlib, tempfile

import listing

MNT_DETACH = 2
libc = ctypes.CDLL(None, use_errno=True)


def checked(result):
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def mount(kind, target, options=""):
    checked(libc.mount(kind.encode(), os.fsencode(target), kind.encode(), 0, options.encode()))


def unmount(target):
    checked(libc.umount2(os.fsencode(target), MNT_DETACH))


@contextlib.contextmanager
def merged(folders, work):
    """A mount of layers' folders, the top one first, with the options that Docker, Podman and containerd use: an empty upper folder,
    which is the container's, and `index=off`."""
    at = pathlib.Path(tempfile.mkdtemp(dir=work))
    for name in "um", "w", "m":
        (at / name).mkdir()
    mount("overlay", at / "m", "index=off,lowerdir=%s,upperdir=%s,workdir=%s" % (":".join(map(str, folders)), at / "um", at / "w"))
    try:
        yield at / "m"
    finally:
        unmount(at / "m")


def of_graph(data, work):
    """The listing of an image, of which Docker's or Podman's `inspect` shows this as its graph driver's data."""
    with merged([data["UpperDir"]] + data.get("LowerDir", "").split(":") * ("LowerDir" in data), work) as root:
        return listing.of_folder(root)
