"""The step `topology`: paths between GPUs and RDMA devices, and peer access between GPUs."""

import collections

from ncclcheck_probe.cuda_driver import CUDA_P2P_ATTRIBUTES, CudaDriver
from ncclcheck_probe.infiniband import rdma_device_names, rdma_pci_path
from ncclcheck_probe.nvml import NVML_AFFINITY_SCOPE_NODE, NVML_CPU_SET_WORDS, NVML_NODE_SET_WORDS, NvmlError
from ncclcheck_probe.nvml import NVML_NVLINK_REMOTE_TYPES, NVML_P2P_CAPABILITIES, NVML_P2P_STATUSES
from ncclcheck_probe.nvml import NVML_TOPOLOGY_WORDS, nvlink_states, nvml_gpu_count, nvml_word, open_nvml
from ncclcheck_probe.pci import pci_isolation, pci_numa_node, pci_path, pci_relation
from ncclcheck_probe.readings import Readings, Unread, known
from ncclcheck_probe.sysfs import folder_names, kernel_text, number_ranges


def probe_topology(plan, _report):
    return topology(plan)


def topology(plan):
    """The body of the step, with every GPU and RDMA device. `plan` has no options for it."""
    nvml = open_nvml()
    handles = topology_handles(nvml)
    gpus_seen = [topology_gpu(nvml, index, handle) for index, handle in handles.items()]
    nics = [topology_nic(name) for name in topology_nic_names()]
    pairs = topology_gpu_pairs(nvml, gpus_seen, handles)
    return {
        "gpus": gpus_seen,
        "nics": nics,
        "matrix": topology_matrix(gpus_seen, nics, pairs),
        "gpu_pairs": pairs,
        "iommu": topology_iommu(),
    }


def topology_handles(nvml):
    """NVML's handle of each GPU that it can open, by index."""
    handles = {}
    for index in range(nvml_gpu_count(nvml)):
        try:
            handles[index] = nvml.device(index)
        except NvmlError:
            continue  # The step `gpus` reports it, with the reason.
    return handles


def topology_gpu(nvml, index, handle):
    """One GPU: its attachment, its affinities and its NVLinks."""
    gpu = Readings(name="GPU%d" % index, index=index)
    gpu.read("uuid", nvml.text, "nvmlDeviceGetUUID", handle)
    address = gpu.read("pci_bus_id", nvml.pci_bus_id, "nvmlDeviceGetPciInfo_v3", handle)
    gpu.read("cpu_affinity", topology_affinity, nvml, "nvmlDeviceGetCpuAffinity", handle, NVML_CPU_SET_WORDS)
    gpu.read("numa_affinity", topology_affinity, nvml, "nvmlDeviceGetMemoryAffinity", handle, NVML_NODE_SET_WORDS,
             NVML_AFFINITY_SCOPE_NODE)
    gpu.read("gpu_numa_id", nvml.value, "nvmlDeviceGetNumaNodeId", handle)
    gpu.read("nvlink_ends", topology_nvlink_ends, nvml, handle)
    topology_attachment(gpu, address, lambda: pci_path(known(address, "its PCI address")))
    return gpu.body()


def topology_nic_names():
    """Names of RDMA devices; empty if this container's sysfs cannot list them."""
    try:
        return rdma_device_names()
    except Unread:
        return []


def topology_nic(name):
    """One RDMA device and its attachment."""
    nic = Readings(name=name)
    path = nic.read("pci_bus_id", lambda: rdma_pci_path(name)[-1])
    topology_attachment(nic, path, lambda: rdma_pci_path(name))
    return nic.body()


def topology_attachment(device, address, find_path):
    """Adds a PCI device's path from the host bridge, its NUMA node and its isolation, from sysfs."""
    path = device.read("pci_path", find_path)
    device.read("numa_node", lambda: pci_numa_node(known(address, "its PCI address")))
    device.read("isolation", lambda: pci_isolation(address, known(path, "its PCI path")))


def topology_affinity(nvml, function, handle, words, *scope):
    """A set of CPUs or NUMA nodes, formatted as `0-31,64-95`."""
    numbers = nvml.numbers(function, handle, words, *scope)
    if not numbers:
        raise Unread("%s: an empty set" % function)
    return number_ranges(numbers)


def topology_nvlink_ends(nvml, handle):
    """Number of active NVLinks per end: `switch`, or the PCI address of a GPU."""
    ends = collections.Counter()
    for link, state in nvlink_states(nvml, handle):
        if isinstance(state, NvmlError):
            raise state
        if state:
            ends[topology_nvlink_end(nvml, handle, link)] += 1
    return dict(ends)


def topology_nvlink_end(nvml, handle, link):
    """
    The remote end of one active NVLink.

    A virtual machine may hide the remote end. It then counts as a switch, as in NCCL (src/graph/xml.cc).
    """
    kind = nvml_word(NVML_NVLINK_REMOTE_TYPES, nvml.value("nvmlDeviceGetNvLinkRemoteDeviceType", handle, link))
    if kind == "gpu":
        return nvml.pci_bus_id("nvmlDeviceGetNvLinkRemotePciInfo_v2", handle, link)
    return "switch" if kind == "unknown" else kind


def topology_gpu_pairs(nvml, gpus_seen, handles):
    """Every ordered pair of GPUs, because peer access may differ by direction."""
    cuda = CudaPeers()
    return [topology_gpu_pair(nvml, cuda, gpu, peer, handles)
            for gpu in gpus_seen for peer in gpus_seen if gpu is not peer]


def topology_gpu_pair(nvml, cuda, gpu, peer, handles):
    """The path from `gpu` to `peer`, and whether the driver (NVML) and CUDA allow peer access on it."""
    handle, peer_handle = handles[gpu["index"]], handles[peer["index"]]
    pair = Readings(**{"from": gpu["name"], "to": peer["name"]})
    pair.read("ancestor", lambda: nvml_word(NVML_TOPOLOGY_WORDS, nvml.value(
        "nvmlDeviceGetTopologyCommonAncestor", handle, peer_handle)))
    pair.read("nvlinks", topology_nvlinks_between, gpu, peer)
    for name, capability in NVML_P2P_CAPABILITIES.items():
        pair.read("p2p_%s" % name, lambda number=capability: nvml_word(NVML_P2P_STATUSES, nvml.value(
            "nvmlDeviceGetP2PStatus", handle, peer_handle, number)))
    pair.read("cuda_can_access", cuda.can_access, gpu, peer)
    for name, attribute in CUDA_P2P_ATTRIBUTES.items():
        pair.read("cuda_%s" % name, cuda.attribute, attribute, gpu, peer)
    return pair.body()


def topology_nvlinks_between(gpu, peer):
    """Number of NVLinks between two GPUs: the direct ones, else the lower count of their links to switches."""
    ends = known(gpu["nvlink_ends"], "the remote ends of the NVLinks of %s" % gpu["name"])
    peer_ends = known(peer["nvlink_ends"], "the remote ends of the NVLinks of %s" % peer["name"])
    direct = ends.get(peer["pci_bus_id"], 0)
    return direct or min(ends.get("switch", 0), peer_ends.get("switch", 0))


class CudaPeers:
    """CUDA's devices by PCI address. Its ordinals follow CUDA_VISIBLE_DEVICES and are not NVML's indices."""

    def __init__(self):
        self.devices = {}
        self.unread = None
        try:
            self.driver = CudaDriver()
            self.driver.initialize()
            for device in self.driver.devices():
                self.devices[self.driver.pci_bus_id(device)] = device
        except Unread as why:
            self.unread = str(why)

    def device(self, gpu):
        """CUDA's handle of a GPU that NVML lists."""
        if self.unread:
            raise Unread(self.unread)
        if gpu["pci_bus_id"] not in self.devices:
            raise Unread("CUDA does not offer %s (%s)" % (gpu["name"], gpu["pci_bus_id"]))
        return self.devices[gpu["pci_bus_id"]]

    def can_access(self, gpu, peer):
        """The result of cuDeviceCanAccessPeer."""
        device, peer_device = self.device(gpu), self.device(peer)
        return bool(self.driver.number("cuDeviceCanAccessPeer", device, peer_device))

    def attribute(self, attribute, gpu, peer):
        """The value of a CU_DEVICE_P2P_ATTRIBUTE_*."""
        device, peer_device = self.device(gpu), self.device(peer)
        return self.driver.number("cuDeviceGetP2PAttribute", attribute, device, peer_device)


def topology_matrix(gpus_seen, nics, pairs):
    """`nvidia-smi topo -m`: a word for each pair of devices. An unknown one is null, and `unread` has the reason."""
    devices = gpus_seen + nics
    gpu_pairs = {(pair["from"], pair["to"]): pair for pair in pairs}
    names = [device["name"] for device in devices]
    rows, unread = [], {}
    for device in devices:
        row = Readings()
        for other in devices:
            row.read(other["name"], topology_word, device, other, gpu_pairs)
        rows.append([row.fields[name] for name in names])
        unread.update({"%s %s" % (device["name"], name): why for name, why in row.unread.items()})
    return {"names": names, "rows": rows, "unread": unread}


def topology_word(device, other, gpu_pairs):
    """One cell: X, NVn, PIX, PXB, PHB, NODE or SYS."""
    if device is other:
        return "X"
    pair = gpu_pairs.get((device["name"], other["name"]))
    if pair is None:
        # If firmware names no NUMA node for either device, the machine has only one.
        return pci_relation(known(device["pci_path"], "the PCI path of %s" % device["name"]),
                            known(other["pci_path"], "the PCI path of %s" % other["name"]),
                            device["numa_node"] == other["numa_node"])
    if pair["nvlinks"]:
        return "NV%d" % pair["nvlinks"]
    if pair["nvlinks"] is None:
        raise Unread(pair["unread"]["nvlinks"])
    return known(pair["ancestor"], "the common ancestor")


def topology_iommu():
    """The host's IOMMUs, and the parameters for them and for ACS on the kernel's command line."""
    iommu = Readings()
    iommu.read("units", folder_names, "/sys/class/iommu")
    iommu.read("kernel_parameters", lambda: [word for word in kernel_text("/proc/cmdline").split()
                                             if "iommu" in word or "acs" in word])
    return iommu.body()
