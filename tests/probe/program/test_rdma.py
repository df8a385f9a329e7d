"""Recordings of the step `rdma` over Soft-RoCE (tests/probe/soft-roce): each configuration has a distinct body."""

import json
import os
import pathlib
import tempfile
import unittest

from harness import REPOSITORY
from ncclcheck_probe import rdma_providers, verbs

RECORDED = REPOSITORY / "fixtures/probe/soft-roce"
ALL_STEPS = ["register", "create_cq", "create_qp", "init", "rtr", "rts", "send", "rdma_write", "time_sends",
             "time_writes"]


def recorded(name):
    return json.loads((RECORDED / (name + ".json")).read_text())


def device(name):
    found, = recorded(name)["devices"]
    return found


def port(name):
    found, = device(name)["ports"]
    return found


def regions(name):
    return [region.get("error", "ok") for region in device(name)["memory_regions"]]


class Recorded(unittest.TestCase):
    def test_with_the_device_all_works_for_every_network_and_user(self):
        for name in ("host-network", "bridge", "user"):
            self.assertEqual(port(name)["ping"]["passed"], ALL_STEPS, name)
            self.assertEqual(port(name)["ping"]["gid_index"], 1, name)
            self.assertEqual([choice["index"] for choice in port(name)["nccl_gid"]], [0, 1, 1], name)
            self.assertEqual(regions(name), ["ok", "ok", "ok"], name)
        self.assertEqual(port("host-network")["verbs"]["max_mtu_bytes"], 4096)
        self.assertEqual(port("host-network")["verbs"]["link_layer"], "Ethernet")

    def test_the_limit_on_locked_memory_rejects_larger_regions(self):
        self.assertEqual(regions("memlock-8m"), ["ok", "ok", "ENOMEM"])
        self.assertEqual(regions("memlock-64k"), ["ok", "ENOMEM", "ENOMEM"])
        self.assertEqual(port("memlock-64k")["ping"]["passed"], ALL_STEPS)

    def test_a_capability_lifts_the_limit_without_changing_its_value(self):
        self.assertEqual(regions("memlock-64k-ipc-lock"), ["ok", "ok", "ok"])
        for name, capable in (("memlock-64k", False), ("memlock-64k-ipc-lock", True)):
            memlock = recorded(name)["memlock"]
            self.assertEqual((memlock["soft_bytes"], memlock["cap_ipc_lock"]), (65536, capable))

    def test_reasons_why_a_device_of_sysfs_does_not_open(self):
        causes = {
            "no-device": "no_device_node", "rdma-cm-only": "no_device_node", "device-denied": "device_node_denied",
            "no-providers": "no_provider_config", "no-provider-libraries": "no_provider_loads",
            "no-rxe-library": "provider_not_loaded", "no-rxe-config": "provider_not_configured",
            "no-libibverbs": "no_libibverbs",
        }
        for name, cause in causes.items():
            self.assertEqual((device(name)["opens"], device(name)["closed_cause"]), (False, cause), name)

    def test_missing_nodes_are_listed(self):
        for name, there in (("no-device", [False, False]), ("rdma-cm-only", [False, True])):
            nodes = {node["path"]: node["exists"] for node in recorded(name)["device_nodes"]}
            self.assertEqual([nodes["/dev/infiniband/uverbs0"], nodes["/dev/infiniband/rdma_cm"]], there)

    def test_the_warnings_of_libibverbs_are_kept(self):
        for name, words in (("no-providers", "couldn't open config directory '/etc/libibverbs.d'"),
                            ("no-rxe-library", "couldn't load driver 'librxe-rdmav34.so'"),
                            ("no-rxe-config", "no userspace device-specific driver found for rxe0")):
            self.assertIn(words, "\n".join(recorded(name)["libibverbs"]["warnings"]))

    def test_an_empty_gid_index_fails_where_it_is_used(self):
        ping = port("gid-index-empty")["ping"]
        self.assertEqual((ping["gid_index"], ping["passed"][-1], ping["failed"]), (9, "init", "rtr"))
        self.assertIn("ibv_modify_qp", ping["error"])


class Providers(unittest.TestCase):
    def test_places_are_read_from_the_library(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"\x7fELF\0/etc/libibverbs.d\0%s-rdmav34.so\0/usr/lib64/libibverbs/lib%s-rdmav34.so\0"
                       b"lib%s-rdmav34.so\0")
            file.flush()
            self.assertEqual(rdma_providers.provider_places(file.name),
                             ("/etc/libibverbs.d", "/usr/lib64/libibverbs/lib%s-rdmav34.so"))

    def test_names_are_read_as_libibverbs_reads_them(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "rxe.driver").write_text("# driver old\n\tdriver  rxe \n")
            pathlib.Path(folder, "mlx5.driver").write_text("driver mlx5\ndriver\n")
            self.assertEqual([provider["name"] for provider in rdma_providers.provider_names(folder)], ["mlx5", "rxe"])

    def test_a_missing_provider_has_an_error(self):
        library = rdma_providers.provider_library("none", "/nowhere/lib%s-rdmav34.so")
        self.assertFalse(library["loads"])
        self.assertIn("libnone-rdmav34.so: cannot open shared object file", library["error"])


class Verbs(unittest.TestCase):
    def test_standard_error_of_c_code_is_captured_without_blocking(self):
        with verbs.captured_stderr() as lines:
            os.write(2, b"libibverbs: Warning: one\n")
        self.assertEqual(lines, ["libibverbs: Warning: one"])
        with verbs.captured_stderr() as lines:
            with self.assertRaises(BlockingIOError):
                while True:
                    os.write(2, b"x" * 4096)

    def test_errors_come_from_the_result_or_from_errno(self):
        verbs.verbs_check("f", 0)
        with self.assertRaisesRegex(verbs.VerbsError, "f: EINVAL: Invalid argument"):
            verbs.verbs_check("f", 22)
