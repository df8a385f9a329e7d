"""Shared libraries that this process has mapped."""
import os

from ncclcheck_probe.facts import read_text

DELETED = " (deleted)"


def mapped_libraries():
    """Sorted paths of all mapped shared libraries, from the kernel, so that any way of loading them counts."""
    found = set()
    for line in read_text("/proc/self/maps", limit=64 << 20).splitlines():
        fields = line.split(None, 5)
        path = fields[5] if len(fields) == 6 else ""
        path = path[:-len(DELETED)] if path.endswith(DELETED) else path
        name = os.path.basename(path)
        if path.startswith("/") and (name.endswith(".so") or ".so." in name):
            found.add(path)
    return sorted(found)


def libraries_part(when):
    return {"kind": "libraries", "when": when, "paths": mapped_libraries()}
