"""RDMA devices in sysfs, which every container shows even if it cannot open them."""

import ipaddress
import os
import re

from ncclcheck_probe.pci import pci_components, pci_numa_node
from ncclcheck_probe.readings import Readings, Unread, known
from ncclcheck_probe.sysfs import folder_names, kernel_number, kernel_text

INFINIBAND_CLASS = "/sys/class/infiniband"
VERBS_CLASS = "/sys/class/infiniband_verbs"


def rdma_device_names():
    """mlx5_0, mlx5_1, ...: every device of the host, or of this network namespace in the exclusive mode."""
    return folder_names(INFINIBAND_CLASS)


def rdma_device_folder(name):
    """The sysfs folder of the device `name`."""
    return "%s/%s" % (INFINIBAND_CLASS, name)


def rdma_pci_path(name):
    """Path from the host bridge down to the device `name`. A software device (rxe, siw) is not on a PCI bus."""
    device = rdma_device_folder(name) + "/device"
    if not os.path.exists(device):
        raise Unread("%s does not exist: %s is not a PCI device" % (device, name))
    return pci_components(os.path.realpath(device))


def rdma_device_readings(name):
    """The sysfs attributes of one device, without its ports."""
    folder = rdma_device_folder(name)
    device = Readings(name=name)
    device.read("node_type", lambda: kernel_text(folder + "/node_type").partition(": ")[2])
    for field in ("node_guid", "sys_image_guid", "fw_ver", "hca_type", "board_id"):
        device.read(field, kernel_text, "%s/%s" % (folder, field))
    device.read("kernel_driver", rdma_kernel_driver, name)
    path = device.read("pci_path", rdma_pci_path, name)
    device.read("numa_node", lambda: pci_numa_node(known(path, "its PCI path")[-1]))
    device.read("netdevs", rdma_netdevs, name)
    device.read("uverbs", rdma_uverbs, name)
    return device


def rdma_kernel_driver(name):
    """The kernel module that drives a PCI device: mlx5_core, bnxt_en, efa."""
    link = rdma_device_folder(name) + "/device/driver"
    if not os.path.exists(link):
        raise Unread("%s does not exist" % link)
    return os.path.basename(os.path.realpath(link))


def rdma_netdevs(name):
    """The host's names of the device's network interfaces: those of its PCI function, or its parent interface."""
    folder = rdma_device_folder(name)
    parent = folder + "/parent"
    return folder_names(folder + "/device/net") or ([kernel_text(parent)] if os.path.exists(parent) else [])


def rdma_uverbs(name):
    """The device's node below /dev/infiniband, such as uverbs0."""
    for uverbs in folder_names(VERBS_CLASS):
        path = "%s/%s/ibdev" % (VERBS_CLASS, uverbs)
        if os.path.exists(path) and kernel_text(path) == name:
            return uverbs
    raise Unread("%s has no entry for %s: its kernel driver offers no verbs, or ib_uverbs is not loaded"
                 % (VERBS_CLASS, name))


def rdma_port_numbers(name):
    """The port numbers of a device, which start at 1."""
    return [int(port) for port in folder_names(rdma_device_folder(name) + "/ports")]


def rdma_port_readings(name, number):
    """The sysfs attributes of one port."""
    folder = "%s/ports/%d" % (rdma_device_folder(name), number)
    port = Readings(port=number)
    for field in ("state", "phys_state"):
        port.read(field, lambda path="%s/%s" % (folder, field): kernel_text(path).partition(": ")[2])
    port.read("link_layer", kernel_text, folder + "/link_layer")
    port.read("rate", kernel_text, folder + "/rate")
    port.read("rate_gbits_per_s", lambda: rdma_rate(port.fields["rate"]))
    for field in ("lid", "sm_lid"):
        port.read(field, kernel_number, "%s/%s" % (folder, field))
    port.read("gid_table_length", lambda: len(folder_names(folder + "/gids")))
    port.read("gids", rdma_gids, folder)
    port.read("counters", rdma_counters, folder + "/counters")
    port.read("hw_counters", rdma_counters, folder + "/hw_counters")
    return port


def rdma_rate(text):
    """200.0 for `200 Gb/sec (4X HDR)`."""
    match = re.match(r"([\d.]+) Gb/sec", known(text, "the rate"))
    if not match:
        raise Unread("%r is not a rate" % text)
    return float(match.group(1))


def rdma_gids(folder):
    """The nonempty entries of a port's GID table."""
    entries = []
    for index in folder_names(folder + "/gids"):
        try:
            gid = ipaddress.IPv6Address(kernel_text("%s/gids/%s" % (folder, index)))
        except Unread:
            continue  # The entry belongs to another network namespace.
        if int(gid) == 0:
            continue
        entry = Readings(index=int(index), gid=gid.exploded)
        entry.read("type", kernel_text, "%s/gid_attrs/types/%s" % (folder, index))
        entry.read("netdev", kernel_text, "%s/gid_attrs/ndevs/%s" % (folder, index))
        entries.append(entry.body())
    return entries


def rdma_counters(folder):
    """The nonzero error and traffic counters of a port, by the driver's names."""
    counters = {}
    for name in folder_names(folder):
        if name == "lifespan":
            continue  # A setting: how many milliseconds the kernel caches the counters.
        try:
            counters[name] = kernel_number("%s/%s" % (folder, name))
        except Unread:
            continue  # The device lacks this counter, or its file holds no number.
    return {name: value for name, value in counters.items() if value}
