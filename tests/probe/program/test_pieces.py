"""Parts of the payload that need no process: the wire, the plan, numbers and names."""
import json
import os
import socket
import tempfile
import time
import types
import unittest
import unittest.mock

from harness import module


class Pieces(unittest.TestCase):
    def test_a_free_port_is_held_for_a_listener_alone(self):
        port = module("world").free_port()
        with socket.socket() as other, self.assertRaises(OSError):
            other.bind(("", port))
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("", port))
            listener.listen()
            socket.create_connection(("127.0.0.1", port)).close()

    def test_long_events_are_shortened_and_marked(self):
        wire = module("wire")
        event = {"event": "part", "body": {"paths": ["/usr/lib/%05d" % number for number in range(9000)], "kind": "x"}}
        line = wire.fitted(wire.printable(event), 65535)
        self.assertLessEqual(len(line), 65535)
        self.assertEqual(json.loads(line)["shortened"], {"body.paths": 9000})
        text = json.loads(wire.fitted({"lines": ["short", "x" * 100000]}, 65535))
        self.assertEqual((list(text["shortened"]), text["lines"][0]), (["lines.1"], "short"))

    def test_any_bytes_become_valid_text(self):
        wire = module("wire")
        name = b"lib\xff.so".decode("utf-8", "surrogateescape")
        self.assertEqual(wire.printable({name: [name]}), {"lib\\udcff.so": ["lib\\udcff.so"]})

    def test_values_that_may_be_secrets_are_not_reported(self):
        variables = {"NCCL_DEBUG": "INFO", "PATH": "/bin", "TOKEN": "secret", "MASTER_PORT": "1"}
        with unittest.mock.patch.dict(os.environ, variables, clear=True):
            environment = module("environment")
            self.assertEqual(environment.all_variables(), dict(variables, TOKEN=None))
            self.assertEqual(list(environment.variables_of_interest()), ["MASTER_PORT", "NCCL_DEBUG"])

    def test_variables_of_configuration_files_are_replaced(self):
        module_of_variables = module("unset_variables")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "nccl.conf")
            with open(path, "w") as file:
                file.write("# NCCL_ALGO=Tree\nNCCL_PROTO = LL\nNCCL_DEBUG=INFO\nno assignment\nNCCL_NTHREADS=64\n")
            environment = {"NCCL_CONF_FILE": path, "NCCL_MAX_CTAS": "1", "NCCL_DEBUG": "WARN"}
            with unittest.mock.patch.dict(os.environ, environment, clear=True):
                self.assertEqual(module_of_variables.slowing_variables(),
                                 {"NCCL_MAX_CTAS": None, "NCCL_NTHREADS": "", "NCCL_PROTO": "Simple"})
        with unittest.mock.patch.dict(os.environ, {"NCCL_CONF_FILE": "/nonesuch"}, clear=True):
            self.assertEqual(module_of_variables.slowing_variables(), {})

    def test_time_without_a_cpu_is_counted(self):
        cpu_wait = module("cpu_wait")
        texts = ["7 1000000000 5", "9 2500000000 6"]
        with unittest.mock.patch.object(cpu_wait, "read_text", lambda path: texts.pop(0)):
            body = cpu_wait.CpuWait().until_now()
        self.assertGreaterEqual(body.pop("seconds"), 0)
        self.assertEqual(body, {"waited_seconds": 1.5})
        with unittest.mock.patch.object(cpu_wait, "read_text", lambda path: "0 0 0"):
            body = cpu_wait.CpuWait().until_now()
        self.assertIsNone(body["waited_seconds"])
        self.assertIn("does not record", body["unread"]["waited_seconds"])

    def test_runs_without_variables_end_in_time(self):
        module_of_variables = module("unset_variables")
        one, many = ["a"], ["a", "b", "c", "d", "e", "f"]
        self.assertEqual(module_of_variables.runs_without(one), [one])
        self.assertEqual(module_of_variables.runs_without(many), [many, ["a"], ["b"], ["c"], ["d"]])
        asked = []

        def start(replaced, seconds):
            asked.append((replaced, seconds))
            raise AssertionError("no run has time")
        self.assertEqual(module_of_variables.measured_without({"a": None}, start, time.monotonic() - 1), [])
        self.assertEqual(asked, [])

    def test_plan_errors_name_the_place(self):
        plan, steps = module("plan"), module("main").STEPS
        wrong = {
            "plan: unknown key 'step'": {"step": ["limits"]},
            "plan.steps: must be one of": {"steps": ["nonesuch"]},
            "plan.collectives: unknown key 'size'": {"collectives": {"size": [8]}},
            "plan.collectives.sizes: must be a number above 0": {"collectives": {"sizes": [0]}},
            "plan.collectives.world.offset: must be a whole number": {"collectives": {"world": {"offset": "1"}}},
            "plan.collectives.quick: must be true or false": {"collectives": {"quick": 1}},
            "plan.env: must map": {"env": {"NCCL_DEBUG": 1}},
            "plan.deadlines: unknown key": {"deadlines": {"nonesuch": 1}},
            "plan: must be an object": [],
        }
        for words, given in wrong.items():
            with self.assertRaises(plan.PlanError) as raised:
                plan.complete_plan(given, steps)
            self.assertIn(words, str(raised.exception))

    def test_completing_a_complete_plan_changes_nothing(self):
        plan, steps = module("plan"), module("main").STEPS
        complete = plan.complete_plan({}, steps)
        self.assertEqual(plan.complete_plan(json.loads(json.dumps(complete)), steps), complete)
        self.assertEqual(complete["steps"], ["limits", "storage", "gpus", "topology", "rdma", "pytorch", "collectives"])

    def test_code_that_a_gpu_runs(self):
        code_for = module("pytorch").code_for
        wheel = ["sm_70", "sm_80", "sm_90", "sm_120", "compute_120"]
        self.assertEqual(code_for((9, 0), wheel), ("exact", "sm_90"))
        self.assertEqual(code_for((8, 9), wheel), ("compatible", "sm_80"))
        self.assertEqual(code_for((10, 0), wheel), ("none", None))
        self.assertEqual(code_for((12, 1), wheel), ("compatible", "sm_120"))
        self.assertEqual(code_for((13, 0), wheel), ("ptx", "compute_120"))
        self.assertEqual(code_for((9, 0), ["sm_90a"]), ("exact", "sm_90a"))
        self.assertEqual(code_for((10, 3), ["sm_100a"]), ("none", None))
        self.assertEqual(code_for((10, 3), ["sm_100f"]), ("compatible", "sm_100f"))
        self.assertEqual(code_for((10, 0), ["compute_90a"]), ("none", None))

    def test_versions_of_nccl(self):
        version = module("pytorch").version_text
        self.assertEqual([version((2, 27, 5)), version(22705), version(2708)], ["2.27.5", "2.27.5", "2.7.8"])

    def test_capabilities_by_name(self):
        names = module("limits").capability_names
        self.assertEqual(names(1 | 1 << 14 | 1 << 23 | 1 << 41),
                         ["CAP_CHOWN", "CAP_IPC_LOCK", "CAP_SYS_NICE", "CAP_41"])

    def test_settings_that_the_kernel_lacks_are_left_out(self):
        limits = module("limits")
        with unittest.mock.patch.object(limits, "SYSCTLS", ("kernel.ostype", "kernel.no_such_setting")):
            self.assertEqual(limits.sysctls(), {"kernel.ostype": "Linux"})

    def test_a_clock_follows_another_one_or_not(self):
        def synchronised(state):
            library = types.SimpleNamespace(adjtimex=lambda _: state)
            with unittest.mock.patch.object(module("limits").ctypes, "CDLL", lambda *_, **__: library):
                return module("limits").clock_synchronised()

        self.assertEqual([synchronised(state) for state in (0, 1, 5)], [True, True, False])
        self.assertRaises(OSError, synchronised, -1)

    def test_sums_stay_exact(self):
        modulus_for = module("pattern").modulus_for
        self.assertEqual([modulus_for("float32", 1024), modulus_for("bfloat16", 8), modulus_for("bfloat16", 1024)],
                         [251, 31, None])

    def test_the_culprit_is_the_rank_that_died_not_one_that_lost_its_connection(self):
        """Even if the exception of the other rank arrives first."""
        lost, died, done = ({"how": "exception"}, {"how": "signal"}, None)
        ranks = [types.SimpleNamespace(failed=failed) for failed in (done, lost, died)]
        culprit = module("supervise").culprit
        self.assertIs(culprit(ranks, ranks[1]), ranks[2])
        self.assertIs(culprit(ranks[:2], ranks[1]), ranks[1])
