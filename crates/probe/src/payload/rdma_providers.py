"""
The providers of libibverbs: one library per device family, which libibverbs finds through its configuration and loads.

Their location is compiled into libibverbs (libibverbs/dynamic_driver.c of rdma-core), so it is read from that file.
"""

import ctypes
import os
import re

from ncclcheck_probe.readings import Readings, Unread, errno_name, known
from ncclcheck_probe.sysfs import folder_names, kernel_text


def provider_body(libibverbs):
    """The providers that `libibverbs` (path of its file, or None) is configured to load, and whether they load."""
    body = Readings(from_environment=provider_environment())
    body.read_together(["config_folder", "library_pattern"],
                       lambda: provider_places(known(libibverbs, "libibverbs' own file")))
    body.read("configured", lambda: provider_names(known(body.fields["config_folder"], "its configuration")))
    names = [provider["name"] for provider in body.fields["configured"] or []] + body.fields["from_environment"]
    body.read("libraries", lambda: [provider_library(name, known(body.fields["library_pattern"], "its search path"))
                                    for name in names])
    return body.body()


def provider_places(libibverbs):
    """
    (folder of the .driver files, pattern of the libraries' paths), both compiled into libibverbs.

    The pattern's suffix has the version of the private interface that providers are built for: lib%s-rdmav34.so.
    """
    try:
        with open(libibverbs, "rb") as file:
            content = file.read()
    except OSError as error:
        raise Unread("%s: %s" % (libibverbs, errno_name(error.errno))) from None
    folder = re.search(rb"\0(/[^\0%\s]*/libibverbs\.d)\0", content)
    pattern = re.search(rb"\0((?:/[^\0%\s]*/)?lib%s-rdmav\d+\.so)\0", content)
    if not folder or not pattern:
        raise Unread("%s does not contain the paths of its configuration and providers" % libibverbs)
    return folder.group(1).decode(), pattern.group(1).decode()


def provider_environment():
    """Providers that RDMAV_DRIVERS, or else IBV_DRIVERS, names."""
    text = os.environ.get("RDMAV_DRIVERS", os.environ.get("IBV_DRIVERS", ""))
    return [name for name in re.split("[:;]", text) if name]


def provider_names(folder):
    """Providers that the configuration names, each with its file."""
    if not os.path.isdir(folder):
        raise Unread("%s does not exist" % folder)
    return [{"name": words[1], "file": "%s/%s" % (folder, name)}
            for name in folder_names(folder)
            for words in map(str.split, kernel_text("%s/%s" % (folder, name)).splitlines())
            if len(words) > 1 and words[0] == "driver"]


def provider_library(name, pattern):
    """Loads a provider as libibverbs does: from the provider folder first, then by dlopen's search."""
    bare = os.path.basename(pattern)
    paths = [name + bare.replace("lib%s", "")] if name.startswith("/") else [pattern % name, bare % name]
    errors = []
    for path in paths:
        try:
            ctypes.CDLL(path)
            return {"name": name, "loads": True, "library": os.path.realpath(path) if "/" in path else path}
        except OSError as error:
            errors.append(str(error))
    # The first error has the reason if the library is in its folder, the last one if it is nowhere.
    return {"name": name, "loads": False, "error": errors[0 if os.path.exists(paths[0]) else -1]}


def provider_missing(providers):
    """(cause, sentence): the reason why no provider claims a device whose node can be opened."""
    if providers["config_folder"] is None:
        return "unknown", "libibverbs' providers are not known: %s" % providers["unread"]["config_folder"]
    if providers["configured"] is None:
        return "no_provider_config", "libibverbs has no providers: %s" % providers["unread"]["configured"]
    failed = [library for library in providers["libraries"] if not library["loads"]]
    if failed and len(failed) == len(providers["libraries"]):
        return "no_provider_loads", "none of the %d configured providers can be loaded, for example %s: %s" % (
            len(failed), failed[0]["name"], failed[0]["error"])
    if failed:
        return "provider_not_loaded", "no loadable provider claims it, and these do not load: %s" % "; ".join(
            "%s: %s" % (library["name"], library["error"]) for library in failed)
    return "provider_not_configured", "no configured provider claims it: %s" % (
        ", ".join(library["name"] for library in providers["libraries"]) or "there are none")
