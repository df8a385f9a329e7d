"""C libraries through ctypes: dlopen finds them as it would in training, and every call has a declared signature."""

import ctypes

from ncclcheck_probe.readings import Unread, errno_name


class ForeignLibrary:
    """A C library in this process. `signatures` maps each callable function to (result, parameters...)."""

    def __init__(self, soname, signatures):
        self.soname = soname
        self.signatures = signatures
        try:
            self.handle = ctypes.CDLL(soname, use_errno=True)
        except OSError as error:
            raise Unread("dlopen: %s" % error) from None

    def function(self, name):
        """The declared function `name`."""
        try:
            function = getattr(self.handle, name)
        except AttributeError:
            raise Unread("this %s has no %s" % (self.soname, name)) from None
        function.restype, *function.argtypes = self.signatures[name]
        return function

    def has(self, name):
        """True if the library exports `name`."""
        return hasattr(self.handle, name)

    def path(self, name):
        """The file with the code of the function `name`: the one that dlopen chose, with symbolic links resolved."""
        address = ctypes.cast(self.function(name), ctypes.c_void_p).value
        for first, last, path in mapped_files():
            if first <= address < last:
                return path
        raise Unread("/proc/self/maps lists no file at the address of %s" % name)


def mapped_files():
    """(start address, end address, path) of each file mapped into this process; the end is exclusive."""
    try:
        with open("/proc/self/maps", errors="surrogateescape") as maps:
            lines = maps.read().splitlines()
    except OSError as error:
        raise Unread("/proc/self/maps: %s" % errno_name(error.errno)) from None
    for line in lines:
        # address perms offset dev inode path: proc(5); the path may hold spaces.
        words = line.split(None, 5)
        if len(words) == 6 and words[5].startswith("/"):
            first, last = words[0].split("-")
            yield int(first, 16), int(last, 16), words[5]
