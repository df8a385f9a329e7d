"""The step `rdma` of the whole program, against a stand-in for libibverbs and the files of Soft-RoCE's kernel driver."""
import json
import resource

from harness import REPOSITORY
from machine import Machine, providers, without_root

ALL_STEPS = ["register", "create_cq", "create_qp", "init", "rtr", "rts", "send", "rdma_write", "time_sends",
             "time_writes"]
LINK_LOCAL, IPV4 = "fe80:0000:0000:0000:5054:00ff:fe77:0001", "0000:0000:0000:0000:0000:ffff:0a4d:0001"
EMPTY = "0000:0000:0000:0000:0000:0000:0000:0000"
DEVICE, PORT = "/sys/class/infiniband/rxe0", "/sys/class/infiniband/rxe0/ports/1"


def limit_locked_memory(size):
    """A function that sets the limit in the new process."""
    return lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (size, size))


class SoftRoce(Machine):
    """A machine with the device rxe0, and two GPUs."""

    def setUp(self):
        super().setUp()
        self.install("cuda")
        self.add_device()

    def add_device(self):
        """Adds the files and the library of rxe0."""
        self.install("verbs", *providers(("rxe",), ("rxe",)))
        self.write("/sys/class/infiniband_verbs/uverbs0/ibdev", "rxe0\n")
        for name, text in (("node_type", "1: CA"), ("node_guid", "5054:00ff:fe77:0001"), ("parent", "eth0"),
                           ("sys_image_guid", "5054:00ff:fe77:0001"), ("fw_ver", "")):
            self.write("%s/%s" % (DEVICE, name), text + "\n")
        for name, text in (("state", "4: ACTIVE"), ("phys_state", "5: LinkUp"), ("link_layer", "Ethernet"),
                           ("rate", "2.5 Gb/sec (1X SDR)"), ("lid", "0x0"), ("sm_lid", "0x0"), ("counters/x", "0"),
                           ("hw_counters/lifespan", "10"), ("hw_counters/odd", "a b")):
            self.write("%s/%s" % (PORT, name), text + "\n")
        for index, gid in enumerate([LINK_LOCAL, IPV4, EMPTY]):
            self.write("%s/gids/%d" % (PORT, index), gid + "\n")
            if gid != EMPTY:
                self.write("%s/gid_attrs/types/%d" % (PORT, index), "RoCE v2\n")
                self.write("%s/gid_attrs/ndevs/%d" % (PORT, index), "eth0\n")
        for node in ("uverbs0", "rdma_cm"):
            self.write("/dev/infiniband/" + node, "")

    def rdma(self, stand_in="", devices="rxe0", variables=None, memlock=None, **more):
        """The body of the step."""
        if memlock:
            more["preexec_fn"] = limit_locked_memory(memlock)
        return self.body("rdma", stand_in=stand_in or "ipc_lock=1", variables=dict(variables or {}, VERBS_DEVICES=devices),
                         **more)

    def device(self, stand_in="", **more):
        device, = self.rdma(stand_in, **more)["devices"]
        return device

    def port(self, stand_in="", **more):
        port, = self.device(stand_in, **more)["ports"]
        return port



class Rdma(SoftRoce):
    def ping(self, stand_in="", **more):
        return self.port(stand_in, **more)["ping"]

    def failed_at(self, stand_in, **more):
        """(step of the ping that failed, reason)."""
        ping = self.ping(stand_in, **more)
        self.assertEqual(ping["passed"], ALL_STEPS[:ALL_STEPS.index(ping["failed"])])
        return ping["failed"], ping["error"]

    def test_the_device_matches_the_recording(self):
        recorded = json.loads((REPOSITORY / "fixtures/probe/soft-roce/memlock-8m.json").read_text())
        devices = [without_root(self.device("dmabuf=0", memlock=8 << 20), self.root), recorded["devices"][0]]
        for device in devices:
            port, = device["ports"]
            self.assertGreater(port.pop("gid_table_length"), 0)
            self.assertGreater(port["verbs"].pop("gid_table_length"), 0)
            for name in ("send_median_us", "write_median_us"):
                self.assertGreater(port["ping"].pop(name), 0)
        self.assertEqual(*devices)

    def test_libibverbs_its_providers_and_the_nodes(self):
        body = without_root(self.rdma("warns=1"), self.root)
        self.assertEqual(body["libibverbs"], {
            "sysfs_devices": ["rxe0"], "library": "/lib/libibverbs.so.1.14.44.0", "verbs_devices": ["rxe0"],
            "warnings": ["libibverbs: Warning: no userspace device-specific driver found for rxe9"]})
        self.assertEqual([provider["loads"] for provider in body["providers"]["libraries"]], [True])
        self.assertEqual(body["device_nodes"], [{"path": "/dev/infiniband/uverbs0", "exists": True, "opens": True},
                                                {"path": "/dev/infiniband/rdma_cm", "exists": True, "opens": True}])

    def test_no_devices(self):
        self.delete("/sys/class/infiniband")
        self.delete("/sys/class/infiniband_verbs")
        self.delete("/dev/infiniband")
        body = self.rdma(devices="")
        self.assertEqual((body["devices"], body["device_nodes"], body["libibverbs"]["verbs_devices"]), ([], [], []))
        self.assertEqual(body["gpu_direct"]["device_dmabuf"], [])
        self.assertEqual([gpu["registrations"] for gpu in body["gpu_direct"]["gpus"]], [[], []])

    def test_locked_memory(self):
        for memlock, stand_in, results in ((65536, "dmabuf=1", ["ok", "ENOMEM", "ENOMEM"]),
                                           (65536, "ipc_lock=1", ["ok", "ok", "ok"]),
                                           (4096, "dmabuf=1", ["ok", "ENOMEM", "ENOMEM"])):
            body = self.rdma(stand_in, memlock=memlock)
            regions = body["devices"][0]["memory_regions"]
            self.assertEqual([region.get("error", "ok") for region in regions], results)
            self.assertEqual(body["memlock"]["soft_bytes"], memlock)
        self.assertEqual(self.failed_at("dmabuf=1", memlock=4096), ("register", "ibv_reg_mr: ENOMEM: Cannot allocate memory"))

    def test_regions_larger_than_memory(self):
        self.assertEqual(self.device(replaced={"1 << 20, 64 << 20]": "1 << 60]"})["memory_regions"][1],
                         {"bytes": 1 << 60, "ok": False, "error": "mmap: ENOMEM"})

    def test_the_ping_names_the_step_that_failed(self):
        invalid = "EINVAL: Invalid argument"
        for stand_in, step, why in (
                ("long_cq_fails=12", "create_cq", "ibv_create_cq: ENOMEM: Cannot allocate memory"),
                ("ibv_create_qp=12", "create_qp", "ibv_create_qp: ENOMEM: Cannot allocate memory"),
                ("init_fails=22", "init", "ibv_modify_qp: " + invalid),
                ("post_send=22", "send", "ibv_post_send: " + invalid),
                ("post_recv=22", "send", "ibv_post_recv: " + invalid),
                ("poll_cq=5", "send", "ibv_poll_cq: EIO: Input/output error"),
                ("wc_status=12 vendor_err=0x81", "send",
                 "completion with error 12 IBV_WC_RETRY_EXC_ERR, vendor error 0x81"),
                ("wc_status=77", "send", "completion with error 77 IBV_WC_?, vendor error 0x0"),
                ("corrupt=1", "send", "the received bytes differ from those sent")):
            self.assertEqual(self.failed_at(stand_in + " ipc_lock=1"), (step, why))

    def test_a_ping_without_completions(self):
        failed = self.failed_at("silent=1 ipc_lock=1", replaced={"patience = 20": "patience = 1"})
        self.assertEqual(failed, ("send", "no completion within 1 s"))

    def test_an_empty_gid_index_fails_as_in_the_recording(self):
        recorded = json.loads((REPOSITORY / "fixtures/probe/soft-roce/gid-index-empty.json").read_text())
        port = self.port(variables={"NCCL_IB_GID_INDEX": "4"})
        ping, was = port["ping"], recorded["devices"][0]["ports"][0]["ping"]
        self.assertEqual((ping["gid_index"], ping["failed"], ping["error"]), (4, was["failed"], was["error"]))

    def test_a_port_that_is_down(self):
        self.write(PORT + "/state", "1: DOWN\n")
        self.write(PORT + "/phys_state", "3: Disabled\n")
        port = self.port("port_state=1")
        self.assertEqual((port["state"], port["phys_state"], port["verbs"]["state"]), ("DOWN", "Disabled", "DOWN"))

    def test_a_port_without_gids(self):
        port = self.port("gids=0 ipc_lock=1")
        self.assertEqual(port["nccl_gid"][2], {"since": "2.26", "index": 0, "because": "no GID suits IPv4, RoCE v2"})
        self.assertEqual((port["ping"]["failed"], port["ping"]["error"]),
                         ("rtr", "ibv_modify_qp: ENODATA: No data available"))

    def test_a_gid_whose_type_cannot_be_read(self):
        """Two IPv6 addresses that differ only in their types."""
        self.delete(PORT + "/gid_attrs")
        port = self.port("flid=1 ipc_lock=1", variables={"NCCL_IB_ADDR_FAMILY": "AF_INET6"})
        self.assertIn("NCCL fails: it cannot read the type of GID", port["nccl_gid"][2]["unread"]["index"])
        self.assertEqual(port["ping"], {"passed": [], "failed": "address",
                                        "error": "the GID index of NCCL could not be read"})

    def test_infiniband(self):
        self.write(PORT + "/link_layer", "InfiniBand\n")
        port = self.port("link_layer=1 ipc_lock=1")
        self.assertEqual((port["verbs"]["link_layer"], port["verbs"]["lid"]), ("InfiniBand", 5))
        self.assertNotIn("gid_index", port["ping"])
        self.assertEqual(port["ping"]["passed"], ALL_STEPS)
        self.assertIsNone(port["nccl_gid"][0]["index"])
        self.assertEqual(port["nccl_gid"][1]["because"], "InfiniBand, and GID 1 has no FLID")
        self.assertEqual(self.port("link_layer=1 flid=1")["nccl_gid"][1]["index"], 1)

    def test_unknown_enum_values(self):
        port = self.port("active_mtu=9 port_state=8 link_layer=3 ipc_lock=1")
        self.assertEqual((port["verbs"]["state"], port["verbs"]["link_layer"]), ("8", "3"))
        self.assertEqual(port["verbs"]["unread"]["active_mtu_bytes"], "enum ibv_mtu 9")

    def test_queries_that_fail(self):
        device = self.device("ibv_query_device=5 ibv_query_port=22")
        self.assertEqual(device["unread"]["attributes"], "ibv_query_device: EIO: Input/output error")
        port, = device["ports"]
        self.assertEqual(port["unread"]["verbs"], "ibv_query_port: EINVAL: Invalid argument")
        self.assertEqual(port["unread"]["nccl_gid"], "the port's verbs attributes could not be read")
        self.assertEqual((port["ping"]["failed"], port["ping"]["error"]),
                         ("address", "ibv_query_port: EINVAL: Invalid argument"))
        self.assertEqual(self.port("ibv_query_pkey=22")["verbs"]["unread"]["pkeys"],
                         "ibv_query_pkey: EINVAL: Invalid argument")
        self.assertIn("ibv_query_gid: ", self.port("ibv_query_gid=22")["nccl_gid"][1]["unread"]["index"])

    def test_no_protection_domain(self):
        device = self.device("ibv_alloc_pd=12")
        self.assertEqual(device["steps"], [{"step": "alloc_pd", "ok": False,
                                            "error": "ibv_alloc_pd: ENOMEM: Cannot allocate memory"}])
        self.assertEqual(device["unread"]["memory_regions"], "there is no protection domain")
        self.assertEqual(device["ports"][0]["unread"]["ping"], "there is no protection domain")

    def test_no_completion_queue(self):
        self.assertEqual(self.device("ibv_create_cq=12")["steps"][1],
                         {"step": "create_cq", "ok": False, "error": "ibv_create_cq: ENOMEM: Cannot allocate memory"})

    def closed(self, stand_in="", **more):
        """The reason why the device is closed: (word, sentence)."""
        device = without_root(self.device(stand_in, **more), self.root)
        self.assertEqual((device["opens"], device["unread"]["steps"]), (False, "the device is not open"))
        self.assertEqual(device["ports"][0]["unread"]["ping"], "the device is not open")
        return device["closed_cause"], device["closed_because"]

    def test_no_libibverbs(self):
        self.install_broken("verbs")
        body = self.rdma()
        self.assertEqual(body["devices"][0]["closed_cause"], "no_libibverbs")
        self.assertIn("dlopen: ", body["libibverbs"]["unread"]["verbs_devices"])
        self.assertEqual(body["providers"]["unread"]["config_folder"], "libibverbs' own file could not be read")
        self.assertFalse(body["gpu_direct"]["libibverbs_has_dmabuf"])

    def test_a_list_that_fails(self):
        self.assertEqual(self.closed("ibv_get_device_list=38"),
                         ("list_fails", "ibv_get_device_list: ENOSYS: Function not implemented"))

    def test_no_node(self):
        self.delete("/dev/infiniband/uverbs0")
        self.assertEqual(self.closed(devices=""), (
            "no_device_node", "/dev/infiniband/uverbs0 is not in this container: run with --device /dev/infiniband"))

    def test_a_node_that_does_not_open(self):
        self.delete("/dev/infiniband/uverbs0")
        self.write("/dev/infiniband/uverbs0/x", "")  # A folder does not open for writing, even for root.
        self.assertEqual(self.closed(devices=""), (
            "device_node_denied", "/dev/infiniband/uverbs0 cannot be opened: EISDIR"))

    def test_a_device_without_verbs(self):
        self.delete("/sys/class/infiniband_verbs")
        self.assertEqual(self.closed(devices="")[0], "no_uverbs")

    def test_a_device_that_does_not_open(self):
        self.assertEqual(self.closed("ibv_open_device=13"),
                         ("open_fails", "ibv_open_device: EACCES: Permission denied"))

    def test_no_provider_claims_it(self):
        for options, cause, words in (
                (providers(None), "no_provider_config", "libibverbs.d does not exist"),
                (providers(("mlx5", "rxe")), "no_provider_loads", "none of the 2 configured providers"),
                (providers(("mlx5", "rxe"), ("mlx5",)), "provider_not_loaded", "these do not load: rxe: "),
                (providers(("mlx5",), ("mlx5",)), "provider_not_configured", "claims it: mlx5"),
                (('-DCONFIG_FOLDER="nowhere"',), "unknown", "does not contain the paths of its configuration")):
            self.install("verbs", *options)
            found, because = self.closed(devices="")
            self.assertEqual(found, cause)
            self.assertIn(words, because)

    def test_providers_of_the_environment(self):
        body = self.rdma(variables={"RDMAV_DRIVERS": "none;/also/none"})["providers"]
        self.assertEqual(body["from_environment"], ["none", "/also/none"])
        self.assertEqual([library["loads"] for library in body["libraries"]], [True, False, False])
        self.assertIn("/also/none-rdmav34.so: cannot open", body["libraries"][2]["error"])

    def test_two_devices_one_of_them_on_pci(self):
        card = "0000:04:00.0"
        self.add_pci_device("pci0000:00/0000:00:01.0/" + card, numa_node="1\n")
        (self.root / "sys/devices/mlx5_core").mkdir()
        self.link("/sys/bus/pci/devices/%s/driver" % card, "/sys/devices/mlx5_core")
        self.write("/sys/bus/pci/devices/%s/net/ibs4/mtu" % card, "")
        self.write("/sys/class/infiniband/mlx5_0/node_type", "1: CA\n")
        self.write("/sys/class/infiniband/mlx5_0/ports/1/rate", "NDR\n")
        self.link("/sys/class/infiniband/mlx5_0/device", "/sys/bus/pci/devices/" + card)
        self.write("/sys/class/infiniband_verbs/uverbs1/ibdev", "mlx5_0\n")
        body = self.rdma(devices="rxe0,mlx5_0")
        first, second = body["devices"]
        self.assertEqual((first["name"], first["pci_path"][-1], first["numa_node"]), ("mlx5_0", card, 1))
        self.assertEqual((first["netdevs"], first["kernel_driver"], first["uverbs"]), (["ibs4"], "mlx5_core", "uverbs1"))
        self.assertEqual(first["ports"][0]["unread"]["rate_gbits_per_s"], "'NDR' is not a rate")
        self.assertEqual([device["ports"][0]["ping"]["passed"] for device in (first, second)], [ALL_STEPS] * 2)
        self.assertEqual([gpu["registrations"][1]["device"] for gpu in body["gpu_direct"]["gpus"]], ["rxe0", "rxe0"])


class GpuDirect(SoftRoce):
    def gpu_direct(self, stand_in="", **more):
        return self.rdma("ipc_lock=1 " + stand_in, **more)["gpu_direct"]

    def registration(self, stand_in):
        """The registration of the first GPU's memory with the device, or the reason why it was not tried."""
        gpu = self.gpu_direct(stand_in)["gpus"][0]
        return gpu["registrations"][0] if gpu["registrations"] else gpu["unread"]["registrations"]

    def test_peermem_and_dma_buf(self):
        self.write("/sys/module/nvidia_peermem/version", "580.159.04\n")
        self.write("/sys/kernel/mm/memory_peers/nv_mem/version", "580.159.04\n")
        body = without_root(self.gpu_direct("peermem=1"), self.root)
        self.assertEqual(body["peermem_modules"], ["nvidia_peermem"])
        self.assertEqual(body["peermem_files"], ["/sys/module/nvidia_peermem/version",
                                                 "/sys/kernel/mm/memory_peers/nv_mem/version"])
        self.assertEqual(body["memory_peers"], ["nv_mem"])
        self.assertEqual(body["device_dmabuf"], [{"device": "rxe0", "supported": True, "error": "EBADF"}])
        self.assertEqual(body["gpus"], [
            {"pci_bus_id": "0000:00:0%d.0" % number, "dma_buf_supported": True, "gpu_direct_rdma_supported": True,
             "registrations": [{"device": "rxe0", "peermem": {"ok": True}, "dmabuf": {"ok": True}}]}
            for number in (6, 7)])

    def test_neither_peermem_nor_dma_buf(self):
        body = self.gpu_direct("peermem=0 dmabuf=0 gpu_direct=0")
        self.assertEqual(body["device_dmabuf"], [{"device": "rxe0", "supported": False, "error": "EOPNOTSUPP"}])
        gpu = body["gpus"][0]
        self.assertEqual((gpu["dma_buf_supported"], gpu["gpu_direct_rdma_supported"]), (False, False))
        self.assertEqual(gpu["registrations"], [{
            "device": "rxe0", "peermem": {"ok": False, "error": "ibv_reg_mr: EFAULT: Bad address"},
            "dmabuf": {"ok": False, "error": "cuMemGetHandleForAddressRange: CUDA_ERROR_NOT_SUPPORTED (801)"}}])

    def test_dma_buf_alone(self):
        registration = self.registration("peermem=0")
        self.assertEqual((registration["peermem"]["ok"], registration["dmabuf"]["ok"]), (False, True))

    def test_a_descriptor_that_the_device_refuses(self):
        self.assertEqual(self.registration("ibv_reg_dmabuf_mr=95")["dmabuf"],
                         {"ok": False, "error": "ibv_reg_dmabuf_mr: EOPNOTSUPP: Operation not supported"})

    def test_a_libibverbs_without_dma_buf(self):
        self.install("verbs", "-Dibv_reg_dmabuf_mr=absent", *providers(("rxe",), ("rxe",)))
        body = self.gpu_direct()
        self.assertFalse(body["libibverbs_has_dmabuf"])
        self.assertEqual(body["device_dmabuf"][0]["error"], "this libibverbs.so has no ibv_reg_dmabuf_mr")
        self.assertFalse(body["gpus"][0]["registrations"][0]["dmabuf"]["ok"])

    def test_a_gpu_without_memory(self):
        self.assertEqual(self.registration("cuMemAlloc_v2=2"), "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2)")

    def test_a_gpu_without_a_context(self):
        self.assertEqual(self.registration("cuDevicePrimaryCtxRetain=2"),
                         "cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY (2)")

    def test_no_gpus(self):
        self.assertEqual(self.gpu_direct("gpus=0")["unread"]["gpus"], "cuInit: CUDA_ERROR_NO_DEVICE (100)")

    def test_no_libcuda(self):
        self.install_broken("cuda")
        self.assertIn("libcuda.so.1", self.gpu_direct()["unread"]["gpus"])
