"""The step `rdma`: RDMA devices in sysfs, and the operations that this container can actually do with each of them."""

import contextlib
import ctypes
import mmap
import os
import resource

from ncclcheck_probe.gpu_direct import gpu_direct_body
from ncclcheck_probe.infiniband import VERBS_CLASS, rdma_device_folder, rdma_device_names, rdma_device_readings
from ncclcheck_probe.infiniband import rdma_port_numbers, rdma_port_readings
from ncclcheck_probe.nccl_gid import NcclGidTable, nccl_gid_choices, nccl_gid_type_reader
from ncclcheck_probe.queue_pairs import PortAddress
from ncclcheck_probe.rdma_providers import provider_body, provider_missing
from ncclcheck_probe.readings import Readings, Unread, errno_name, known
from ncclcheck_probe.sysfs import folder_names, kernel_text
from ncclcheck_probe.verbs import VERBS_ACCESS_LOCAL_WRITE, VERBS_ACCESS_REMOTE_READ, VERBS_ACCESS_REMOTE_WRITE
from ncclcheck_probe.verbs import VERBS_LINK_LAYERS, VERBS_PORT_STATES, Verbs, VerbsError, verbs_mtu_bytes
from ncclcheck_probe.verbs_ping import ping_body

RDMA_NODES = "/dev/infiniband"
CAP_IPC_LOCK = 14
# NCCL registers rings of a few kB and buffers of megabytes. 64 MiB exceeds the 8 MiB that many systems allow.
REGION_SIZES = [4 << 10, 1 << 20, 64 << 20]


def probe_rdma(plan, _report):
    return rdma(plan)


def rdma(plan):
    """The body of the step. `plan` may have `memory_region_bytes`, the sizes to register."""
    sizes = plan.get("memory_region_bytes", REGION_SIZES)
    host = RdmaHost()
    with contextlib.ExitStack() as stack:
        devices = [RdmaDevice(host, name).body(stack, sizes) for name in host.sysfs_names]
        return {
            "libibverbs": host.libibverbs,
            "providers": host.providers,
            "device_nodes": host.nodes,
            "memlock": memlock_body(),
            "devices": devices,
            "gpu_direct": gpu_direct_body(host.verbs, host.opened),
        }


class RdmaHost:
    """State that all devices share: libibverbs, its providers, the device nodes."""

    def __init__(self):
        library = Readings()
        self.sysfs_names = library.read("sysfs_devices", rdma_device_names) or []
        self.verbs = library.read("library", Verbs)
        self.listed = {}
        self.opened = {}
        self.nodes = [device_node(name) for name in device_node_names()]
        if self.verbs is None:
            library.give_up(["verbs_devices", "warnings"], library.unread["library"])
        else:
            library.read("library", self.verbs.library.path, "ibv_get_device_list")
            library.read_together(["verbs_devices", "warnings"], self.list_devices)
        self.providers = provider_body(library.fields["library"])
        self.libibverbs = library.body()

    def list_devices(self):
        """Names of the devices in ibv_get_device_list, and its warnings."""
        self.listed, warnings = self.verbs.device_list()
        return sorted(self.listed), warnings

    def why_unlisted(self, uverbs):
        """(cause, sentence): the reason why libibverbs does not list a device that sysfs shows."""
        if self.verbs is None:
            return "no_libibverbs", self.libibverbs["unread"]["library"]
        if self.libibverbs["verbs_devices"] is None:
            return "list_fails", self.libibverbs["unread"]["verbs_devices"]
        return self.why_no_node(uverbs) or provider_missing(self.providers)

    def why_no_node(self, uverbs):
        """(cause, sentence) if the device has no node, or its node is missing or does not open; else None."""
        if uverbs is None:
            return "no_uverbs", "the kernel offers no verbs for it"
        path = "%s/%s" % (RDMA_NODES, uverbs)
        node = next((node for node in self.nodes if node["path"] == path), None)
        if node is None or not node["exists"]:
            return "no_device_node", "%s is not in this container: run with --device %s" % (path, RDMA_NODES)
        if not node["opens"]:
            return "device_node_denied", "%s cannot be opened: %s" % (path, node["error"])
        return None


class RdmaDevice:
    """One RDMA device of sysfs."""

    def __init__(self, host, name):
        self.host, self.name = host, name
        self.readings = rdma_device_readings(name)

    def body(self, stack, sizes):
        """The device's sysfs attributes and the outcome of using it. `stack` keeps it open until all devices are done,
        because GPU memory is registered with them afterwards."""
        device = self.readings
        context, pd = self.open(stack), None
        if context is None:
            device.give_up(["attributes", "steps", "memory_regions"], "the device is not open")
        else:
            device.read("attributes", self.attributes, context)
            device.fields["steps"], pd = self.steps(stack, context)
        if pd is not None:
            self.host.opened[self.name] = pd
            device.fields["memory_regions"] = [memory_region(self.host.verbs, pd, size) for size in sizes]
        elif context is not None:
            device.give_up(["memory_regions"], "there is no protection domain")
        device.read("ports", lambda: [self.port(number, context, pd) for number in rdma_port_numbers(self.name)])
        return device.body()

    def open(self, stack):
        """The device's context, or None with the reason as a word in `closed_cause` and a text in `closed_because`."""
        handle, uverbs = self.host.listed.get(self.name), self.readings.fields["uverbs"]
        closed = None if handle else self.host.why_unlisted(uverbs)
        if closed is None:
            try:
                context = self.host.verbs.new("ibv_open_device", handle)
            except Unread as why:
                closed = self.host.why_no_node(uverbs) or ("open_fails", str(why))
        self.readings.fields.update(listed=handle is not None, opens=closed is None)
        if closed:
            self.readings.fields.update(zip(("closed_cause", "closed_because"), closed))
            return None
        stack.callback(self.host.verbs.library.function("ibv_close_device"), context)
        return context

    def attributes(self, context):
        """The attributes that ibv_query_device returns."""
        attributes = self.host.verbs.query_device(context)
        return {
            "fw_ver": attributes.fw_ver.decode("ascii", "replace"),
            "vendor_id": "0x%04x" % attributes.vendor_id,
            "vendor_part_id": attributes.vendor_part_id,
            "phys_port_cnt": attributes.phys_port_cnt,
            "max_qp": attributes.max_qp,
            "max_cq": attributes.max_cq,
            "max_mr": attributes.max_mr,
            "max_mr_size_bytes": attributes.max_mr_size,
        }

    def steps(self, stack, context):
        """([outcome of each step], protection domain or None)."""
        verbs, outcomes, pd = self.host.verbs, [], None
        try:
            pd = verbs.new("ibv_alloc_pd", context)
            stack.callback(verbs.library.function("ibv_dealloc_pd"), pd)
            outcomes.append({"step": "alloc_pd", "ok": True})
            cq = verbs.new("ibv_create_cq", context, 1, None, None, 0)
            verbs.library.function("ibv_destroy_cq")(cq)
            outcomes.append({"step": "create_cq", "ok": True})
        except Unread as why:
            outcomes.append({"step": "create_cq" if pd else "alloc_pd", "ok": False, "error": str(why)})
        return outcomes, pd

    def port(self, number, context, pd):
        """One port: its sysfs and verbs attributes, the GID index that NCCL would select, and the ping."""
        port = rdma_port_readings(self.name, number)
        if context is None:
            port.give_up(["verbs", "nccl_gid", "ping"], "the device is not open")
            return port.body()
        port.read("verbs", verbs_port, self.host.verbs, context, number)
        port.read("nccl_gid", self.nccl_gid, context, port.fields)
        if pd is None:
            port.give_up(["ping"], "there is no protection domain")
        else:
            port.fields["ping"] = self.ping(context, pd, port.fields)
        return port.body()

    def nccl_gid(self, context, port):
        """NCCL's GID choices for a port whose query succeeded."""
        verbs = known(port["verbs"], "the port's verbs attributes")
        table = NcclGidTable(
            verbs["gid_table_length"], lambda index: self.host.verbs.query_gid(context, port["port"], index),
            nccl_gid_type_reader("%s/ports/%d" % (rdma_device_folder(self.name), port["port"])))
        return nccl_gid_choices(table, verbs["link_layer"])

    def ping(self, context, pd, port):
        """The ping through one port."""
        try:
            address = self.address(context, port)
        except Unread as why:
            return {"passed": [], "failed": "address", "error": str(why)}
        return ping_body(self.host.verbs, context, pd, address)

    def address(self, context, port):
        """The address of a port, with the GID index that current NCCL releases would select."""
        verbs, number = self.host.verbs, port["port"]
        attributes = verbs.query_port(context, number)
        if VERBS_LINK_LAYERS.get(attributes.link_layer) == "InfiniBand":
            return PortAddress(attributes, number, None, None)
        index = known((port["nccl_gid"] or [{"index": None}])[-1]["index"], "the GID index of NCCL")
        return PortAddress(attributes, number, index, verbs.query_gid(context, number, index))


def verbs_port(verbs, context, number):
    """The attributes that ibv_query_port returns, and the P_Keys."""
    attributes = verbs.query_port(context, number)
    port = Readings(
        state=VERBS_PORT_STATES.get(attributes.state, str(attributes.state)),
        link_layer=VERBS_LINK_LAYERS.get(attributes.link_layer, str(attributes.link_layer)),
        lid=attributes.lid, sm_lid=attributes.sm_lid, gid_table_length=attributes.gid_tbl_len)
    port.read("active_mtu_bytes", verbs_mtu_bytes, attributes.active_mtu)
    port.read("max_mtu_bytes", verbs_mtu_bytes, attributes.max_mtu)
    port.read("pkeys", verbs_pkeys, verbs, context, number, attributes.pkey_tbl_len)
    return port.body()


def verbs_pkeys(verbs, context, number, length):
    """The nonempty P_Keys of a port, formatted as 0xffff."""
    pkeys = [verbs.query_pkey(context, number, index) for index in range(length)]
    return ["0x%04x" % pkey for pkey in pkeys if pkey]


def memory_region(verbs, pd, size):
    """Tries to register `size` bytes of this process, which RLIMIT_MEMLOCK limits unless CAP_IPC_LOCK is set."""
    access = VERBS_ACCESS_LOCAL_WRITE | VERBS_ACCESS_REMOTE_WRITE | VERBS_ACCESS_REMOTE_READ
    try:
        memory = mmap.mmap(-1, size)
    except OSError as error:
        return {"bytes": size, "ok": False, "error": "mmap: %s" % errno_name(error.errno)}
    view = ctypes.c_char.from_buffer(memory)
    try:
        region = verbs.new("ibv_reg_mr", pd, ctypes.addressof(view), size, access)
    except VerbsError as error:
        return {"bytes": size, "ok": False, "error": error.error}
    verbs.library.function("ibv_dereg_mr")(region)
    return {"bytes": size, "ok": True}


def memlock_body():
    """The limit on locked memory, and the capability that lifts it without changing the limit's value."""
    soft, hard = map(memlock_bytes, resource.getrlimit(resource.RLIMIT_MEMLOCK))
    memlock = Readings(soft_bytes=soft, hard_bytes=hard)
    memlock.read("cap_ipc_lock", lambda: bool(effective_capabilities() >> CAP_IPC_LOCK & 1))
    return memlock.body()


def memlock_bytes(limit):
    """The limit in bytes, or "unlimited"."""
    return "unlimited" if limit == resource.RLIM_INFINITY else limit


def effective_capabilities():
    """CapEff of this process, as bits."""
    for line in kernel_text("/proc/self/status").splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    raise Unread("/proc/self/status has no CapEff")


def device_node_names():
    """Names of the nodes that the kernel's devices need, and of those that exist."""
    try:
        needed = [name for name in folder_names(VERBS_CLASS) if name.startswith("uverbs")]
        present = folder_names(RDMA_NODES)
    except Unread:
        return []
    return needed + ["rdma_cm"] * bool(needed) + [name for name in present if name not in needed + ["rdma_cm"]]


def device_node(name):
    """
    One node below /dev/infiniband: whether it exists and opens.

    Opens only the nodes that NCCL's libraries open, because opening an issm node would announce a subnet manager.
    """
    path = "%s/%s" % (RDMA_NODES, name)
    node = {"path": path, "exists": os.path.exists(path)}
    if node["exists"] and (name.startswith("uverbs") or name == "rdma_cm"):
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
            node["opens"] = True
        except OSError as error:
            node.update(opens=False, error=errno_name(error.errno))
    return node
