"""The steps `gpus` and `topology` of the whole program, against stand-ins for NVML and libcuda."""
import os
import pathlib
import struct

from machine import Machine, kernel_log, recorded_bodies, without_root

GPU_0, GPU_1 = "0000:00:06.0", "0000:00:07.0"
KERNEL_MODULE = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (nixbld@)  \nGCC version:\n"
RECORDED = recorded_bodies("h200-x2/quick.jsonl")
# Values that differ over time, and between GPUs.
MEASURED = {"power": ["now_milliwatts"], "temperature": ["gpu_celsius"]}


def acs_config(control):
    """The configuration space of a bridge with an ACS capability."""
    config = bytearray(4096)
    struct.pack_into("<IHHH", config, 0x100, 0x000D | 1 << 16, 0, control, 0)
    struct.pack_into("<HH", config, 0x104, 0, control)
    return bytes(config)


class Gpus(Machine):
    def setUp(self):
        super().setUp()
        self.install("nvml")
        self.install("cuda")
        self.write("/sys/module/nvidia/version", "580.159.04\n")
        self.write("/proc/driver/nvidia/version", KERNEL_MODULE)
        self.write("/proc/cmdline", "console=ttyS0 reboot=k\n")
        for address in (GPU_0, GPU_1):
            self.add_pci_device("pci0000:00/" + address, numa_node="-1\n", current_link_speed="32.0 GT/s PCIe\n",
                                max_link_speed="32.0 GT/s PCIe\n")

    def gpu(self, stand_in="", **more):
        """The body of the machine's only GPU."""
        gpu, = self.body("gpus", stand_in="gpus=1 " + stand_in, **more)["gpus"]
        return gpu

    def comparable(self, body):
        """The body of `gpus` without measured values and the folders of the libraries."""
        body = without_root(body, self.root)
        for gpu in body["gpus"]:
            for group, names in MEASURED.items():
                for name in names:
                    self.assertGreater(gpu[group].pop(name), 0)
            for name in ("busy_percent", "memory_busy_percent", "processes", "traffic"):  # later than the recording
                gpu.pop(name, None)
            for link in gpu["nvlinks"]:
                del link["errors"]
        for part, name in (("driver", "nvml_library"), ("cuda", "library")):
            body[part][name] = body[part][name].rpartition("/")[2]
        return dict(body, xid=None, environment=None)

    def test_two_gpus_match_the_recording(self):
        body = self.body("gpus")
        self.assertEqual(self.comparable(body), self.comparable(RECORDED["gpus"]))
        self.assertEqual([link["errors"] for link in body["gpus"][0]["nvlinks"]][:3],
                         [{}, {"crc_data": 1}, {"crc_data": 2}])

    def test_their_topology_matches_the_recording(self):
        body = without_root(self.body("topology"), self.root)
        self.assertEqual(body, RECORDED["topology"])

    def test_no_driver(self):
        for step in ("gpus", "topology"):
            self.install_broken("nvml")
            event = self.step(step)
            self.assertEqual(event["event"], "skipped")
            self.assertIn("NVIDIA's driver cannot be asked: dlopen: ", event["why"])

    def test_a_driver_that_does_not_fit_its_kernel_module(self):
        event = self.step("gpus", stand_in="nvmlInit_v2=18")
        self.assertEqual(event["event"], "skipped")
        self.assertIn("nvmlInit_v2: NVML_ERROR_LIB_RM_VERSION_MISMATCH", event["why"])

    def test_a_driver_that_does_not_count_its_gpus(self):
        event = self.step("gpus", stand_in="nvmlDeviceGetCount_v2=999")
        self.assertEqual(event["event"], "skipped")
        self.assertIn("nvmlDeviceGetCount_v2: NVML_ERROR_UNKNOWN", event["why"])

    def test_no_gpus(self):
        body = self.body("gpus", stand_in="gpus=0")
        self.assertEqual((body["gpus"], body["cuda"]["devices"]), ([], None))
        self.assertEqual(body["cuda"]["unread"]["devices"], "cuInit: CUDA_ERROR_NO_DEVICE (100)")
        self.assertEqual(self.body("topology", stand_in="gpus=0")["matrix"], {"names": [], "rows": [], "unread": {}})

    def test_a_lost_gpu_does_not_hide_the_other(self):
        body = self.body("gpus", stand_in="lost=0")
        self.assertEqual([gpu["index"] for gpu in body["gpus"]], [1])
        self.assertEqual(body["unreachable_gpus"],
                         [{"index": 0, "why": "nvmlDeviceGetHandleByIndex_v2: NVML_ERROR_GPU_IS_LOST"}])
        self.assertEqual([gpu["name"] for gpu in self.body("topology", stand_in="lost=0")["gpus"]], ["GPU1"])

    def test_functions_that_an_older_driver_lacks(self):
        self.install("nvml", "-DnvmlDeviceGetCurrentClocksEventReasons=absent", "-DnvmlDeviceGetGpuFabricInfoV=absent2")
        gpu = self.gpu("clocks_reasons=0x8080")
        self.assertEqual(gpu["clocks"]["event_reasons"], ["hw_power_brake_slowdown", "32768"])
        self.assertEqual(gpu["fabric"]["unread"]["state"], "this libnvidia-ml.so.1 has no nvmlDeviceGetGpuFabricInfoV")

    def test_clocks_whose_reasons_are_unknown(self):
        clocks = self.gpu("nvmlDeviceGetCurrentClocksEventReasons=3 nvmlDeviceGetCurrentClocksThrottleReasons=4")["clocks"]
        self.assertIsNone(clocks["event_reasons"])
        self.assertEqual(clocks["unread"]["event_reasons"],
                         "nvmlDeviceGetCurrentClocksEventReasons: NVML_ERROR_NOT_SUPPORTED; "
                         "nvmlDeviceGetCurrentClocksThrottleReasons: NVML_ERROR_NO_PERMISSION")

    def test_ecc_errors_are_counted_by_kind(self):
        gpu = self.gpu("ecc_errors=1 remapped=1 processes=3 compute_mode=3")
        self.assertEqual(gpu["ecc"], {
            "enabled": True, "pending": True, "volatile_corrected": 100, "volatile_uncorrected": 101,
            "aggregate_corrected": 110, "aggregate_uncorrected": 111})
        self.assertEqual(gpu["remapped_rows"],
                         {"correctable": 0, "uncorrectable": 1, "pending": True, "failure": False})
        self.assertEqual((gpu["compute_processes"], gpu["compute_mode"]), (3, "exclusive_process"))

    def test_work_of_other_processes(self):
        gpu = self.gpu("busy=98")
        self.assertEqual((gpu["busy_percent"], gpu["memory_busy_percent"]), (98, 49))
        gpu = self.gpu("nvmlDeviceGetUtilizationRates=3")
        self.assertEqual(gpu["unread"]["busy_percent"], "nvmlDeviceGetUtilizationRates: NVML_ERROR_NOT_SUPPORTED")

    def test_processes_are_named_in_the_pid_namespace_of_the_host(self):
        own = {"INITIAL_PID_NAMESPACE = 0xEFFFFFFC": "INITIAL_PID_NAMESPACE = %d" % os.stat("/proc/self/ns/pid").st_ino}
        setting = "processes=2 pid=%d" % os.getpid()
        named, other = self.gpu(setting, replaced=own)["processes"]
        self.assertEqual((named["pid"], named["used_bytes"]), (os.getpid(), 1 << 30))
        self.assertEqual(named["name"], pathlib.Path("/proc/self/comm").read_text().strip())
        self.assertEqual(other["unread"]["used_bytes"], "the driver does not report it")
        foreign = {"INITIAL_PID_NAMESPACE = 0xEFFFFFFC": "INITIAL_PID_NAMESPACE = 1"}
        self.assertIn("run with --pid host", self.gpu(setting, replaced=foreign)["processes"][0]["unread"]["name"])

    def test_unexpected_codes_of_a_count(self):
        gpu = self.gpu("nvmlDeviceGetComputeRunningProcesses_v3=15 nvmlDeviceGetRetiredPages=77")
        self.assertEqual(gpu["unread"]["compute_processes"],
                         "nvmlDeviceGetComputeRunningProcesses_v3: NVML_ERROR_GPU_IS_LOST")
        self.assertEqual(gpu["retired_pages"]["unread"]["double_bit"], "nvmlDeviceGetRetiredPages: NVML_ERROR_77")

    def test_values_of_another_type(self):
        temperature = self.gpu("field_type=99")["temperature"]
        self.assertEqual(temperature["unread"]["memory_celsius"],
                         "nvmlDeviceGetFieldValues of field 82: a value of unknown type 99")

    def test_a_partitioned_gpu(self):
        """With MIG, CUDA can use the instances and not the GPU, and it sees one of them."""
        body = self.body("gpus", stand_in="gpus=1 mig=1")
        mig = body["gpus"][0]["mig"]
        self.assertTrue(mig["enabled"])
        self.assertEqual([(device["index"], device["gpu_instance"]) for device in mig["devices"]], [(0, 7), (3, 10)])
        self.assertEqual(mig["devices"][0]["memory"]["total_bytes"], 150754820096)
        self.assertEqual(body["cuda"]["only_nvml_sees"], ["MIG-00000000-0000-0000-0004-000000000001"])
        self.assertEqual(body["cuda"]["only_cuda_sees"], [])

    def test_instances_that_cannot_be_listed(self):
        mig = self.gpu("mig=1 nvmlDeviceGetMigDeviceHandleByIndex=4")["mig"]
        self.assertEqual(mig["unread"]["devices"], "nvmlDeviceGetMigDeviceHandleByIndex: NVML_ERROR_NO_PERMISSION")

    def test_cuda_shows_fewer_gpus(self):
        cuda = self.body("gpus", stand_in="gpus=2 cuda_gpus=1", variables={"CUDA_VISIBLE_DEVICES": "0"})
        self.assertEqual(cuda["environment"]["CUDA_VISIBLE_DEVICES"], "0")
        self.assertEqual(cuda["cuda"]["only_nvml_sees"], ["GPU-00000000-0000-0000-0000-000000000002"])

    def test_cuda_shows_gpus_in_another_order(self):
        cuda = self.body("gpus", stand_in="reversed=1")["cuda"]
        self.assertEqual([device["pci_bus_id"] for device in cuda["devices"]], [GPU_1, GPU_0])
        self.assertEqual((cuda["only_nvml_sees"], cuda["only_cuda_sees"]), ([], []))
        pair = self.body("topology", stand_in="reversed=1")["gpu_pairs"][0]
        self.assertEqual((pair["from"], pair["to"], pair["cuda_can_access"]), ("GPU0", "GPU1", True))

    def test_cuda_that_does_not_fit_the_driver(self):
        body = self.body("gpus", stand_in="cuInit=803")
        self.assertEqual(body["cuda"]["cuda_version"], "13.0")
        self.assertEqual(body["cuda"]["unread"]["only_nvml_sees"], "cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)")
        pair = self.body("topology", stand_in="cuInit=803")["gpu_pairs"][0]
        self.assertEqual(pair["unread"]["cuda_can_access"], "cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)")

    def test_a_code_that_cuda_has_no_name_for(self):
        cuda = self.body("gpus", stand_in="cuDriverGetVersion=4242")["cuda"]
        self.assertEqual(cuda["unread"]["cuda_version"],
                         "cuDriverGetVersion: an error unknown to this driver (4242)")

    def test_no_libcuda(self):
        self.install_broken("cuda")
        cuda = self.body("gpus")["cuda"]
        self.assertIsNone(cuda["devices"])
        self.assertIn("libcuda.so.1", cuda["unread"]["only_cuda_sees"])

    def test_a_library_of_forward_compatibility(self):
        (self.root / "compat").mkdir()
        (self.lib / "libcuda.so.580.159.04").rename(self.root / "compat/libcuda.so.590.44.01")
        self.remove("cuda")
        (self.lib / "libcuda.so.1").symlink_to("../compat/libcuda.so.590.44.01")
        cuda = self.body("gpus")["cuda"]
        self.assertEqual((cuda["library_version"], cuda["in_compat_folder"]), ("590.44.01", True))

    def test_the_fabric(self):
        fabric = self.gpu("health=0x%x" % (1 | 2 << 2 | 2 << 4 | 4 << 8))["fabric"]
        self.assertEqual((fabric["degraded_bandwidth"], fabric["route_recovery"], fabric["route_unhealthy"]),
                         (True, False, False))
        self.assertEqual((fabric["access_timeout_recovery"], fabric["configuration"]), (None, "no_partition"))
        fabric = self.gpu("fabric_state=2 fabric_status=999")["fabric"]
        self.assertEqual((fabric["state"], fabric["status"]), ("in_progress", "UNKNOWN"))
        fabric = self.gpu("nvmlDeviceGetGpuFabricInfoV=3")["fabric"]
        self.assertEqual(fabric["unread"]["clique"], "nvmlDeviceGetGpuFabricInfoV: NVML_ERROR_NOT_SUPPORTED")

    def test_a_link_whose_state_is_unknown(self):
        gpu = self.gpu("links=4 link_fails=2 link_down=1")
        self.assertEqual([link.get("active") for link in gpu["nvlinks"]], [True, False, None, True])
        self.assertEqual(gpu["nvlinks_unread"]["active"], "links 2: nvmlDeviceGetNvLinkState: NVML_ERROR_GPU_IS_LOST")
        topology = self.body("topology", stand_in="links=4 link_fails=2")
        self.assertIsNone(topology["gpus"][0]["nvlink_ends"])
        self.assertEqual(topology["matrix"]["unread"]["GPU0 GPU1"],
                         "the remote ends of the NVLinks of GPU0 could not be read")

    def test_links_from_gpu_to_gpu(self):
        topology = self.body("topology", stand_in="links=4 link_to=0 link_down=3")
        self.assertEqual(topology["gpus"][0]["nvlink_ends"], {GPU_1: 3})
        self.assertEqual(topology["matrix"]["rows"], [["X", "NV3"], ["NV3", "X"]])

    def test_links_with_a_hidden_end_count_as_links_to_a_switch(self):
        self.assertEqual(self.body("topology", stand_in="link_to=255")["matrix"]["rows"][0], ["X", "NV18"])

    def test_pcie_alone(self):
        topology = self.body("topology", stand_in="links=0 peers=0 ancestor=50")
        self.assertEqual(topology["matrix"]["rows"], [["X", "SYS"], ["SYS", "X"]])
        pair = topology["gpu_pairs"][0]
        self.assertEqual((pair["nvlinks"], pair["p2p_nvlink"], pair["p2p_pci"]), (0, "NOT_SUPPORTED", "OK"))
        self.assertEqual((pair["cuda_can_access"], pair["cuda_access_supported"]), (False, 0))

    def test_a_pair_that_cuda_does_not_offer(self):
        pair = self.body("topology", stand_in="gpus=2 cuda_gpus=1")["gpu_pairs"][0]
        self.assertEqual(pair["unread"]["cuda_can_access"], "CUDA does not offer GPU1 (%s)" % GPU_1)

    def test_an_empty_affinity(self):
        gpu = self.body("topology", stand_in="affinity=0")["gpus"][0]
        self.assertEqual(gpu["unread"]["cpu_affinity"], "nvmlDeviceGetCpuAffinity: an empty set")

    def test_a_gpu_that_sysfs_does_not_show(self):
        self.delete("/sys/bus/pci/devices/" + GPU_0)
        gpu = self.gpu()
        self.assertIn("current_link_speed: ENOENT", gpu["pcie"]["unread"]["speed_gts"])
        topology = self.body("topology")
        self.assertIn("this container does not see the host's /sys", topology["gpus"][0]["unread"]["pci_path"])

    def test_a_link_without_a_speed(self):
        self.write("/sys/devices/pci0000:00/%s/current_link_speed" % GPU_0, "Unknown\n")
        self.assertRegex(self.gpu()["pcie"]["unread"]["speed_gts"], "current_link_speed: Unknown$")

    def test_a_network_card_beside_a_gpu(self):
        """Both are below one switch whose downstream ports redirect; the card has an IOMMU group."""
        root, gpu, nic = "pci0000:00/0000:00:01.0/0000:01:00.0", "0000:00:06.0", "0000:04:00.0"
        self.delete("/sys/bus/pci/devices/" + gpu)
        self.add_pci_device("%s/0000:02:00.0" % root, config=acs_config(0x1D))
        self.add_pci_device("%s/0000:02:01.0" % root, config=b"\0" * 64)
        self.add_pci_device("%s/0000:02:00.0/%s" % (root, gpu), numa_node="0\n")
        self.add_pci_device("%s/0000:02:01.0/%s" % (root, nic), numa_node="0\n")
        self.write("/sys/devices/pci0000:00/0000:00:01.0/config", b"\0" * 4096)
        self.write("/sys/kernel/iommu_groups/12/type", "DMA\n")
        self.write("/sys/kernel/iommu_groups/12/devices/" + nic, "")
        self.link("/sys/bus/pci/devices/%s/iommu_group" % nic, "/sys/kernel/iommu_groups/12")
        self.write("/sys/class/infiniband/mlx5_0/node_type", "1: CA\n")
        self.link("/sys/class/infiniband/mlx5_0/device", "/sys/bus/pci/devices/" + nic)
        self.write("/sys/class/iommu/dmar0/x", "")
        self.write("/proc/cmdline", "quiet intel_iommu=on pci=noacs\n")
        topology = self.body("topology", stand_in="gpus=1")
        self.assertEqual(topology["matrix"]["rows"], [["X", "PIX"], ["PIX", "X"]])
        card, = topology["nics"]
        self.assertEqual((card["isolation"]["iommu_group"], card["isolation"]["iommu_group_type"]), (12, "DMA"))
        self.assertEqual(card["isolation"]["iommu_group_devices"], [nic])
        bridges = topology["gpus"][0]["isolation"]["bridges"]
        self.assertEqual([bridge["acs_controls"] for bridge in bridges],
                         [[], None, ["SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"]])
        self.assertIn("0000:01:00.0/config: ENOENT", bridges[1]["unread"]["acs_controls"])
        self.assertIn("only 64 bytes can be read", card["isolation"]["bridges"][2]["unread"]["acs_controls"])
        self.assertEqual(topology["iommu"], {"units": ["dmar0"], "kernel_parameters": ["intel_iommu=on", "pci=noacs"]})

    def test_xid_errors_in_the_kernel_log(self):
        text = "NVRM: Xid (PCI:0000:00:06): 79, pid='<unknown>', GPU has fallen off the bus."
        with kernel_log(self.root / "dev/kmsg", "6,1,2,-;eth0: link up\n", "4,2,98765432,-;%s\n" % text):
            events = self.body("gpus")["xid"]["events"]
        self.assertEqual(events, [{"pci": "0000:00:06", "xid": 79, "boot_time_us": 98765432, "text": text}])

    def test_no_kernel_log(self):
        self.assertIn("ENOENT. Only the host's log", self.body("gpus")["xid"]["unread"]["events"])
