"""PCI devices in sysfs: their path, the relation between two of them, and redirection of their traffic."""

import os
import re
import struct

from ncclcheck_probe.readings import Readings, Unread, errno_name
from ncclcheck_probe.sysfs import folder_names, kernel_number, kernel_text

PCI_DEVICES = "/sys/bus/pci/devices"
PCI_EXTENDED_CAPABILITIES = 0x100
PCI_CAPABILITY_ACS = 0x000D
# Bits of the ACS control register (PCI Express Base Specification, Access Control Services), with lspci's names.
# Request and completion redirect send traffic between neighbouring devices up to the root complex.
PCI_ACS_CONTROLS = {0: "SrcValid", 1: "TransBlk", 2: "ReqRedir", 3: "CmpltRedir", 4: "UpstreamFwd", 5: "EgressCtrl",
                    6: "DirectTrans"}


def pci_path(address):
    """Path from the host bridge down to the device: ["pci0000:3a", "0000:3a:00.0", "0000:3b:00.0"]."""
    link = "%s/%s" % (PCI_DEVICES, address)
    if not os.path.exists(link):
        raise Unread("%s: no such device; this container does not see the host's /sys" % link)
    return pci_components(os.path.realpath(link))


def pci_components(path):
    """The PCI part of a path below /sys/devices. Virtual machines have other buses above the host bridge."""
    parts = path.split("/")
    for position, part in enumerate(parts):
        if re.match(r"pci[0-9a-f]+:[0-9a-f]+$", part):
            return parts[position:]
    raise Unread("%s is not on a PCI bus" % path)


def pci_numa_node(address):
    """The device's NUMA node, from firmware."""
    node = kernel_number("%s/%s/numa_node" % (PCI_DEVICES, address))
    if node < 0:
        raise Unread("firmware names no NUMA node for %s" % address)
    return node


def pci_link_gts(address, which):
    """`current` or `max` speed of the device's PCIe link, in GT/s per lane."""
    path = "%s/%s/%s_link_speed" % (PCI_DEVICES, address, which)
    text = kernel_text(path)
    match = re.match(r"([\d.]+) GT/s", text)
    if not match:
        raise Unread("%s: %s" % (path, text))
    return float(match.group(1))


def pci_relation(path, other, same_node):
    """
    The relation between two PCI paths, as `nvidia-smi topo -m` names it.

    PIX: at most one PCIe bridge. PXB: several, none of them a host bridge. PHB: a host bridge. NODE: two host bridges
    of one NUMA node. SYS: the interconnect between NUMA nodes. In sysfs a switch is one upstream bridge and one
    downstream bridge per port, so the paths of two devices of one switch differ from its ports on, and each has one
    bridge below the part that they share.
    """
    shared = len(os.path.commonprefix([path, other]))
    if shared == 0:
        return "NODE" if same_node else "SYS"
    if shared == 1:
        return "PHB"
    bridges_apart = max(len(path), len(other)) - shared - 1
    return "PIX" if bridges_apart <= 1 else "PXB"


def pci_isolation(address, path):
    """Remapping and redirection of a device's traffic: its IOMMU group, and ACS in the bridges above it."""
    readings = Readings()
    group = "%s/%s/iommu_group" % (PCI_DEVICES, address)
    if os.path.exists(group):
        readings.fields["iommu_group"] = int(os.path.basename(os.path.realpath(group)))
        readings.read("iommu_group_type", kernel_text, group + "/type")
        readings.read("iommu_group_devices", folder_names, group + "/devices")
    else:
        readings.give_up(["iommu_group", "iommu_group_type", "iommu_group_devices"],
                         "%s does not exist: no IOMMU, or one that is off" % group)
    readings.fields["bridges"] = [pci_bridge(bridge) for bridge in path[1:-1]]
    return readings.body()


def pci_bridge(address):
    """A PCI bridge and its enabled ACS controls."""
    readings = Readings(pci_bus_id=address)
    readings.read("acs_controls", pci_acs_controls, address)
    return readings.body()


def pci_acs_controls(address):
    """Names of the enabled ACS controls of a bridge; empty if it has no ACS capability."""
    path = "%s/%s/config" % (PCI_DEVICES, address)
    try:
        with open(path, "rb") as file:
            config = file.read()
    except OSError as error:
        raise Unread("%s: %s" % (path, errno_name(error.errno))) from None
    if len(config) <= PCI_EXTENDED_CAPABILITIES:
        raise Unread("%s: only %d bytes can be read: the rest needs CAP_SYS_ADMIN" % (path, len(config)))
    offset = pci_extended_capability(config, PCI_CAPABILITY_ACS)
    if offset is None:
        return []
    control, = struct.unpack_from("<H", config, offset + 6)
    return [name for bit, name in PCI_ACS_CONTROLS.items() if control >> bit & 1]


def pci_extended_capability(config, wanted):
    """The offset of an extended capability in a device's configuration space, or None."""
    offset, seen = PCI_EXTENDED_CAPABILITIES, set()
    while PCI_EXTENDED_CAPABILITIES <= offset <= len(config) - 8 and offset not in seen:
        seen.add(offset)
        header, = struct.unpack_from("<I", config, offset)
        if header & 0xFFFF == wanted:
            return offset
        offset = header >> 20
    return None
