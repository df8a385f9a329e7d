"""RDMA devices as sysfs shows them: in every container, also where it can open none of them."""

import os

from ncclcheck_probe.pci import pci_components
from ncclcheck_probe.readings import Unread
from ncclcheck_probe.sysfs import folder_names

INFINIBAND_CLASS = "/sys/class/infiniband"


def rdma_device_names():
    """mlx5_0, mlx5_1 and so on: every device of the host (of this network namespace, in the exclusive mode)."""
    return folder_names(INFINIBAND_CLASS)


def rdma_pci_path(name):
    """From the host bridge down to the device `name`; a software device (rxe, siw) is on no PCI bus."""
    device = "%s/%s/device" % (INFINIBAND_CLASS, name)
    if not os.path.exists(device):
        raise Unread("%s does not exist: %s is not a PCI device" % (device, name))
    return pci_components(os.path.realpath(device))
