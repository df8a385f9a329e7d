"""The mounts that this process sees."""
import os
from collections import namedtuple

from ncclcheck_probe.facts import read_text

Mount = namedtuple("Mount", "root point options kind source super_options")


def mounts():
    """Entries of /proc/self/mountinfo in file order. A later mount hides an earlier one on the same point (proc(5))."""
    found = []
    for line in read_text("/proc/self/mountinfo", limit=16 << 20).splitlines():
        fields, _, rest = line.partition(" - ")
        fields, rest = fields.split(), rest.split(" ")
        found.append(Mount(unescaped(fields[3]), unescaped(fields[4]), fields[5].split(","), rest[0],
                           unescaped(rest[1]), rest[2].split(",")))
    return found


def unescaped(name):
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        name = name.replace(code, character)
    return name


def mount_at(point):
    """The mount whose mount point is this folder; None for an ordinary folder."""
    return next((mount for mount in reversed(mounts()) if mount.point == point), None)


def mount_of(path):
    """The mount that a path without links lies on."""
    around = [mount for mount in mounts() if os.path.commonpath((mount.point, path)) == mount.point]
    return max(reversed(around), key=lambda mount: len(mount.point))
