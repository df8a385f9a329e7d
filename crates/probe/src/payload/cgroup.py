"""The control group (cgroup v1 or v2) of this process, and its limits."""
import os

from ncclcheck_probe.facts import Facts, Unread, read_text
from ncclcheck_probe.mounts import mounts

UNLIMITED = -1
V1_UNLIMITED = 1 << 62  # cgroup v1 writes the largest page-aligned number for "no limit"


def cgroup_body():
    facts = Facts()
    facts.read("version", cgroup_version)
    facts.read("cpuset", nearest_text, "cpuset", "cpuset.cpus.effective", "cpuset.effective_cpus")
    facts.read("cpu_quota", cpu_quota)
    facts.read("memory_max_bytes", least_limit, "memory", "memory.max", "memory.limit_in_bytes")
    facts.read("memory_current_bytes", group_number, "memory", "memory.current", "memory.usage_in_bytes")
    facts.read("pids_max", least_limit, "pids", "pids.max", "pids.max")
    facts.read("pids_current", group_number, "pids", "pids.current", "pids.current")
    return facts.body


def cgroup_version():
    """2 or 1. A host may mount both; its version 2 hierarchy then has no controllers, so this returns 1."""
    kinds = [mount.kind for mount in mounts() if mount.kind in ("cgroup", "cgroup2")]
    if not kinds:
        raise Unread("no cgroup file system is mounted here")
    return 1 if "cgroup" in kinds else 2


def group_folders(controller):
    """The controller's folder for this process and its ancestors up to the mount, each of which may set a limit."""
    version = cgroup_version()
    mount = next((mount for mount in mounts() if
                  (mount.kind == "cgroup2" if version == 2 else mount.kind == "cgroup" and
                   controller in mount.super_options)), None)
    if mount is None:
        raise Unread("the cgroup controller %s is not mounted here" % controller)
    # A container in its host's cgroup namespace reads the host's path here, which does not exist below its own mount.
    path = os.path.relpath(group_path(controller, version), mount.root)
    folder = os.path.normpath(os.path.join(mount.point, path))
    if path.startswith("..") or not os.path.isdir(folder):
        folder = mount.point
    found = [folder]
    while folder != mount.point:
        folder = os.path.dirname(folder)
        found.append(folder)
    return found


def group_path(controller, version):
    for line in read_text("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "" if version == 2 else controller in controllers.split(","):
            return path
    raise Unread("/proc/self/cgroup does not name the controller %s" % controller)


def group_texts(controller, name_v2, name_v1):
    """Contents of a file in this group and its ancestors, nearest first."""
    name = name_v2 if cgroup_version() == 2 else name_v1
    paths = [os.path.join(folder, name) for folder in group_folders(controller)]
    found = [read_text(path) for path in paths if os.path.exists(path)]
    if not found:
        raise Unread("%s does not exist: this is the root group, which has no limits, or the controller %s is not "
                     "enabled" % (paths[0], controller))
    return found


def nearest_text(controller, name_v2, name_v1):
    return group_texts(controller, name_v2, name_v1)[0]


def group_number(controller, name_v2, name_v1):
    return int(nearest_text(controller, name_v2, name_v1))


def least_limit(controller, name_v2, name_v1):
    """The effective limit: the least of those of this group and its ancestors; -1 if there is none."""
    limits = [UNLIMITED if value == "max" else int(value) for value in group_texts(controller, name_v2, name_v1)]
    limits = [limit for limit in limits if 0 <= limit < V1_UNLIMITED]
    return min(limits) if limits else UNLIMITED


def cpu_quota():
    """Number of CPUs whose time the group may use; -1 if unlimited."""
    if cgroup_version() == 2:
        pairs = [value.split() for value in group_texts("cpu", "cpu.max", "")]
    else:
        pairs = zip(group_texts("cpu", "", "cpu.cfs_quota_us"), group_texts("cpu", "", "cpu.cfs_period_us"))
    quotas = [int(quota) / int(period) for quota, period in pairs if quota not in ("max", "-1")]
    return min(quotas) if quotas else UNLIMITED
