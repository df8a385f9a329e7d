"""Step limits: resources and permissions of the container, read and tried from inside without the image's libraries."""
import ctypes
import glob
import os
import pwd
import resource
import socket
import tempfile

from ncclcheck_probe.cgroup import cgroup_body
from ncclcheck_probe.environment import variables_of_interest
from ncclcheck_probe.facts import Facts, Unread, read_text
from ncclcheck_probe.interfaces import default_routes, interface_bodies
from ncclcheck_probe.mounts import mount_at
from ncclcheck_probe.rendezvous import rendezvous_body

RESOURCES = ("memlock", "nofile", "nproc", "stack", "core", "as")
NAMESPACES = ("net", "ipc", "pid", "uts", "mnt", "user", "cgroup")
SECCOMP_MODES = {"0": "disabled", "1": "strict", "2": "filter"}
DEVICE_NODES = ("/dev/nvidia*", "/dev/nvidia-caps/*", "/dev/nvidia-caps-imex-channels/*", "/dev/infiniband/*",
                "/dev/gdrdrv", "/dev/dxg")
# Settings of the kernel that TCP, RoCE with several NICs in a subnet, and memory beside the GPU's processor depend on.
SYSCTLS = ("net.core.rmem_max", "net.core.wmem_max", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
           "net.ipv4.tcp_congestion_control", "net.ipv4.tcp_mtu_probing", "net.ipv4.conf.all.arp_announce",
           "net.ipv4.conf.all.arp_ignore", "net.ipv4.conf.all.rp_filter", "kernel.numa_balancing",
           "vm.zone_reclaim_mode")
TIMEX_BYTES = 1024  # more than struct timex has, about 208
TIME_ERROR = 5  # adjtimex(2): the clock is not synchronised
RUNTIME_MARKS = ("/.dockerenv", "/run/.containerenv", "/.singularity.d")
# capabilities(7), by bit
CAPABILITIES = (
    "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE "
    "NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN "
    "SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP "
    "MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE").split()


def probe_limits(_plan, _report):
    facts = Facts()
    facts.read("shm", shm_body)
    facts.read("rlimits", rlimits)
    facts.read("affinity", lambda: sorted(os.sched_getaffinity(0)))
    facts.body["processors"] = os.cpu_count()
    facts.read("cgroup", cgroup_body)
    facts.read("memory", machine_memory)
    facts.read("user", user_body)
    facts.read("capabilities", capability_sets)
    facts.read("seccomp", lambda: SECCOMP_MODES.get(status_field("Seccomp"), status_field("Seccomp")))
    facts.read("no_new_privileges", lambda: status_field("NoNewPrivs") == "1")
    facts.read("hostname", socket.gethostname)
    facts.read("kernel", lambda: " ".join(os.uname()[index] for index in (0, 2, 3, 4)))
    facts.read("boot_id", read_text, "/proc/sys/kernel/random/boot_id")
    facts.read("sysctls", sysctls)
    facts.read("clock_synchronised", clock_synchronised)
    facts.read("namespaces", namespace_inodes)
    facts.read("process_1", process_1)
    facts.read("interfaces", interface_bodies)
    facts.read("default_routes", default_routes)
    facts.read("rendezvous", rendezvous_body)
    facts.read("devices", device_nodes)
    facts.read("writable", lambda: [writable_place(place) for place in ("/", "/tmp", os.environ.get("HOME")) if place])
    facts.body["working_folder"] = os.getcwd()
    facts.body["runtime_marks"] = [mark for mark in RUNTIME_MARKS if os.path.exists(mark)]
    facts.body["variables"] = variables_of_interest()
    return facts.body


def shm_body():
    """/dev/shm, which NCCL's shared-memory transport and PyTorch's data loaders use."""
    room = os.statvfs("/dev/shm")
    mount = mount_at("/dev/shm")
    return {"size_bytes": room.f_frsize * room.f_blocks, "free_bytes": room.f_frsize * room.f_bavail,
            "mount": mount and mount.kind, "options": mount and mount.options, "device": os.stat("/dev/shm").st_dev}


def rlimits():
    """{name: {soft, hard}}; -1 means unlimited."""
    found = {}
    for name in RESOURCES:
        soft, hard = resource.getrlimit(getattr(resource, "RLIMIT_" + name.upper()))
        found[name] = {"soft": soft, "hard": hard}
    return found


def machine_memory():
    """Memory of the whole machine, regardless of the control group's limit."""
    lines = (line.split(":", 1) for line in read_text("/proc/meminfo").splitlines())
    kib = {name: int(rest.split()[0]) for name, rest in lines}
    return {"total_bytes": kib["MemTotal"] << 10, "available_bytes": kib["MemAvailable"] << 10}


def user_body():
    facts = Facts()
    facts.body.update(uid=os.getuid(), gid=os.getgid(), groups=os.getgroups(), home=os.environ.get("HOME"))
    try:
        facts.body["name"] = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        facts.missing("name", "/etc/passwd has no entry for user %d" % os.getuid())
    return facts.body


def status_field(name):
    for line in read_text("/proc/self/status").splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return value.strip()
    raise Unread("/proc/self/status has no %s: the kernel is old, or emulates Linux" % name)


def capability_sets():
    return {name: capability_names(int(status_field(field), 16)) for name, field in
            (("effective", "CapEff"), ("permitted", "CapPrm"), ("bounding", "CapBnd"))}


def capability_names(bits):
    return ["CAP_" + (CAPABILITIES[bit] if bit < len(CAPABILITIES) else str(bit))
            for bit in range(bits.bit_length()) if bits >> bit & 1]


def sysctls():
    """{name: value} of those that the kernel has; a network namespace other than the host's lacks some."""
    paths = {name: "/proc/sys/" + name.replace(".", "/") for name in SYSCTLS}
    return {name: " ".join(read_text(path).split()) for name, path in paths.items() if os.path.exists(path)}


def clock_synchronised():
    """Whether the kernel's clock follows another one, by NTP or PTP."""
    state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.create_string_buffer(TIMEX_BYTES))  # zeros change nothing
    if state < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "adjtimex")
    return state != TIME_ERROR


def namespace_inodes():
    """{name: inode}. Equal inodes mean the same namespace, also between containers of one host."""
    return {name: os.stat("/proc/self/ns/" + name).st_ino for name in NAMESPACES
            if os.path.exists("/proc/self/ns/" + name)}


def process_1():
    """Name and first command word of process 1. The other words may be secrets."""
    return {"name": read_text("/proc/1/comm"), "command": read_text("/proc/1/cmdline").split("\0")[0]}


def device_nodes():
    """Device nodes of GPUs and RDMA, and whether their modes let this user read and write. They are not opened,
    because opening some of them (issm) changes the port's state."""
    paths = sorted(path for pattern in DEVICE_NODES for path in glob.glob(pattern) if not os.path.isdir(path))
    return [{"path": path, "permitted": os.access(path, os.R_OK | os.W_OK)} for path in paths]


def writable_place(place):
    """Tests by creating an unnamed file whether `place` is writable."""
    try:
        with tempfile.TemporaryFile(dir=place):
            return {"path": place, "writable": True, "why": None}
    except OSError as error:
        return {"path": place, "writable": False, "why": error.strerror}
