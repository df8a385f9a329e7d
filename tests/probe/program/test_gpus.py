"""The steps `gpus` and `topology` against drivers that return errors or only zeros: a body is always complete."""

import contextlib
import json
import unittest
import unittest.mock

import harness  # noqa: F401  (makes ncclcheck_probe importable)
from ncclcheck_probe import cuda_driver, gpus, nvml, pci, readings, sysfs, topology


class Driver:
    """A library whose functions return `code` and write nothing, except for the functions given by name."""

    soname = "libtest.so"

    def __init__(self, code, **answers):
        self.code = code
        self.answers = answers

    def function(self, name):
        return self.answers.get(name, lambda *arguments: self.code)

    def path(self, name):
        return "/usr/lib/libtest.so.580.95.05"


def writes(*values):
    """A function that succeeds, and writes `values` through its last parameters."""
    def function(*arguments):
        for argument, value in zip(arguments[-len(values):], values):
            argument._obj.value = value
        return 0
    return function


@contextlib.contextmanager
def without_cuda():
    with unittest.mock.patch.object(cuda_driver, "ForeignLibrary", side_effect=readings.Unread("no libcuda")):
        yield


def nulls_without_reason(body, path=""):
    """Every null field, at any depth, whose object has no reason for it."""
    if isinstance(body, dict):
        for key, value in body.items():
            if value is None and key not in body.get("unread", {}):
                yield path + "." + key
            yield from nulls_without_reason(value, path + "." + key)
    elif isinstance(body, list):
        for position, value in enumerate(body):
            yield from nulls_without_reason(value, "%s[%d]" % (path, position))


class Bodies(unittest.TestCase):
    def step(self, step, driver):
        with without_cuda(), unittest.mock.patch.object(nvml, "ForeignLibrary", return_value=driver):
            body = step({})
        json.dumps(body)
        self.assertEqual(list(nulls_without_reason({**body, "matrix": None, "unread": {"matrix": ""}})), [])
        return body

    def test_a_driver_that_only_fails_gives_reasons(self):
        refuses = Driver(3, nvmlInit_v2=writes(), nvmlDeviceGetCount_v2=writes(1),
                         nvmlDeviceGetHandleByIndex_v2=writes(7))
        gpu, = self.step(gpus.gpus, refuses)["gpus"]
        self.assertIsNone(gpu["uuid"])
        self.assertEqual(gpu["unread"]["uuid"], "nvmlDeviceGetUUID: NVML_ERROR_NOT_SUPPORTED")
        self.assertEqual(gpu["fabric"]["unread"]["clique"], "nvmlDeviceGetGpuFabricInfoV: NVML_ERROR_NOT_SUPPORTED")
        self.assertEqual(gpu["nvlinks"], [])

    def test_a_driver_that_writes_nothing_gives_zeros(self):
        writes_nothing = Driver(0, nvmlDeviceGetCount_v2=writes(2), nvmlDeviceGetHandleByIndex_v2=writes(7))
        body = self.step(gpus.gpus, writes_nothing)
        self.assertEqual(len(body["gpus"]), 2)
        links = body["gpus"][0]["nvlinks"]
        self.assertEqual([link["active"] for link in links], [False] * nvml.NVML_NVLINK_MAX_LINKS)
        self.assertEqual(links[35], {"link": 35, "active": False, "version": "0", "speed_mbytes_per_s": 0.0,
                                     "remote_type": "gpu", "errors": {}})
        self.assertEqual(body["gpus"][0]["nvlinks_unread"], {"remote_pci_bus_id": "links 0-35: '' is not a PCI address"})
        self.assertEqual(body["gpus"][0]["unread"]["pci_bus_id"], "'' is not a PCI address")

    def test_a_lost_gpu_is_listed_as_unreachable(self):
        lost = Driver(15, nvmlInit_v2=writes(), nvmlDeviceGetCount_v2=writes(1))
        self.assertEqual(self.step(gpus.gpus, lost)["unreachable_gpus"],
                         [{"index": 0, "why": "nvmlDeviceGetHandleByIndex_v2: NVML_ERROR_GPU_IS_LOST"}])
        self.assertEqual(self.step(topology.topology, lost)["gpus"], [])

    def test_a_matrix_without_values_has_reasons(self):
        refuses = Driver(4, nvmlInit_v2=writes(), nvmlDeviceGetCount_v2=writes(2),
                         nvmlDeviceGetHandleByIndex_v2=writes(7))
        with unittest.mock.patch.object(topology, "rdma_device_names", return_value=[]):
            matrix = self.step(topology.topology, refuses)["matrix"]
        self.assertEqual(matrix["rows"], [["X", None], [None, "X"]])
        self.assertEqual(sorted(matrix["unread"]), ["GPU0 GPU1", "GPU1 GPU0"])


class Topology(unittest.TestCase):
    def gpu(self, name, address, ends):
        return {"name": name, "pci_bus_id": address, "nvlink_ends": ends}

    def test_links_to_switches_connect_all_gpus(self):
        one, other = self.gpu("GPU0", "a", {"switch": 18}), self.gpu("GPU1", "b", {"switch": 16})
        self.assertEqual(topology.topology_nvlinks_between(one, other), 16)

    def test_direct_links_connect_their_two_ends(self):
        one, other = self.gpu("GPU0", "a", {"b": 4}), self.gpu("GPU1", "b", {"a": 4, "c": 2})
        self.assertEqual(topology.topology_nvlinks_between(one, other), 4)
        self.assertEqual(topology.topology_nvlinks_between(one, self.gpu("GPU2", "c", {"b": 2})), 0)

    def test_pci_relations(self):
        # A switch at 02 with ports 03:00 and 03:01, and another switch below the second port.
        root = ["pci0000:00", "0000:00:01.0", "0000:02:00.0"]
        near, beside = root + ["0000:03:00.0", "0000:04:00.0"], root + ["0000:03:01.0", "0000:05:00.0"]
        below = root + ["0000:03:01.0", "0000:06:00.0", "0000:07:00.0", "0000:08:00.0"]
        self.assertEqual(pci.pci_relation(near, beside, True), "PIX")
        self.assertEqual(pci.pci_relation(near, near[:-1] + ["0000:04:00.1"], True), "PIX")
        self.assertEqual(pci.pci_relation(near, below, True), "PXB")
        self.assertEqual(pci.pci_relation(near, ["pci0000:00", "0000:00:02.0", "0000:09:00.0"], True), "PHB")
        self.assertEqual(pci.pci_relation(near, ["pci0000:80", "0000:80:01.0", "0000:81:00.0"], True), "NODE")
        self.assertEqual(pci.pci_relation(near, ["pci0000:80", "0000:80:01.0", "0000:81:00.0"], False), "SYS")

    def test_virtual_machines_have_other_buses_above_pci(self):
        path = "/sys/devices/LNXSYSTM:00/VMBUS:01/47505500-0001-0000-3130-444532304235/pci0001:00/0001:00:00.0"
        self.assertEqual(pci.pci_components(path), ["pci0001:00", "0001:00:00.0"])
        with self.assertRaises(readings.Unread):
            pci.pci_components("/sys/devices/virtual/net/lo")

    def test_acs_is_found_behind_other_extended_capabilities(self):
        config = bytearray(4096)
        config[0x100:0x104] = (0x0001 | 1 << 16 | 0x148 << 20).to_bytes(4, "little")
        config[0x148:0x150] = (0x000D | 1 << 16).to_bytes(4, "little") + (0).to_bytes(2, "little") + b"\x1d\x00"
        self.assertEqual(pci.pci_extended_capability(bytes(config), pci.PCI_CAPABILITY_ACS), 0x148)
        config[0x100:0x104] = (0x0001 | 1 << 16 | 0x100 << 20).to_bytes(4, "little")
        self.assertIsNone(pci.pci_extended_capability(bytes(config), pci.PCI_CAPABILITY_ACS))


class Words(unittest.TestCase):
    def test_ranges(self):
        self.assertEqual(sysfs.number_ranges({0, 1, 2, 3, 8, 64, 65}), "0-3,8,64-65")
        self.assertEqual(sysfs.number_ranges(set()), "")

    def test_names_sort_by_their_numbers(self):
        self.assertEqual(sorted(["mlx5_10", "mlx5_2", "mlx5_bond_0"], key=sysfs.natural_order),
                         ["mlx5_2", "mlx5_10", "mlx5_bond_0"])

    def test_pci_addresses_are_spelled_as_sysfs_does(self):
        self.assertEqual(nvml.sysfs_pci_address("00000000:3B:00.0"), "0000:3b:00.0")
        self.assertEqual(nvml.sysfs_pci_address("10000:01:00.0"), "10000:01:00.0")

    def test_xid_events(self):
        text = "NVRM: Xid (PCI:0000:3B:00): 79, pid='<unknown>', GPU has fallen off the bus."
        self.assertEqual(gpus.xid_event("4,1234,98765432,-;%s\n SUBSYSTEM=pci" % text),
                         {"pci": "0000:3b:00", "xid": 79, "boot_time_us": 98765432, "text": text})
        self.assertIsNone(gpus.xid_event("6,1,2,-;eth0: link up"))

    def test_libcuda_of_forward_compatibility_has_its_own_release(self):
        self.assertEqual(gpus.library_release("/usr/local/cuda-13.0/compat/libcuda.so.580.95.05"), "580.95.05")
        with self.assertRaises(readings.Unread):
            gpus.library_release("/usr/lib/libcuda.so.1")
