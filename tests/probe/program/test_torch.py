"""Runs with the real PyTorch, if this Python has it: CPU tensors and gloo use the same code as GPUs and NCCL."""
import glob
import importlib.metadata
import importlib.util
import os
import signal
import tempfile
import time
import unittest

from harness import PATIENCE, Payload, module, program

HAS_TORCH = importlib.util.find_spec("torch") is not None
# Operations that gloo lacks: in torch 1.13 the calls on one tensor, which NCCL has. Releases between 1.13 and 2.9 are untested.
RELEASE = tuple(map(int, importlib.metadata.version("torch").split(".")[:2])) if HAS_TORCH else ()
GLOO_LACKS = {"all_gather", "reduce_scatter"} if RELEASE < (2, 9) else set()

# A module named torch that imports the real one, and makes the broadcasts of rank 1 end with a wrong value.
SPOILT_TORCH = """
import os
import sys
sys.path.remove(os.path.dirname(os.path.abspath(__file__)))
del sys.modules["torch"]
import torch
import torch.distributed
broadcast = torch.distributed.broadcast
def spoilt_broadcast(tensor, *arguments, **more):
    broadcast(tensor, *arguments, **more)
    if torch.distributed.get_rank() == 1:
        tensor[-1] += 1
torch.distributed.broadcast = spoilt_broadcast
"""


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
class Torch(Payload):
    """Runs with the real PyTorch: CPU tensors and gloo use the same code as GPUs and NCCL."""

    def gloo(self, step="collectives", ranks=2, sizes=(8, 4096), what_if=None, **options):
        options = dict({"backend": "gloo", "sizes": list(sizes), "seconds_per_size": 0.02, "point_to_point": False,
                        "world": {"gpus": ranks}}, **options)
        plan = {"steps": [step], "collectives": options}
        return self.run_plan(dict(plan, what_if=what_if) if what_if else plan)

    def test_pytorch(self):
        events = self.run_plan({"steps": ["pytorch"]})
        body = self.last(events)["body"]
        names = [os.path.basename(path) for path in self.parts(events, "libraries")[0]["paths"]]
        # Debian's library has a version after its name, as in libtorch_cpu.so.1.13.0.
        self.assertTrue([name for name in names if name.startswith("libtorch_cpu.so")], names)
        self.assertIn("PyTorch built with", self.parts(events, "build")[0]["config"])
        if not body["cuda_available"]:
            self.assertTrue(body["cuda_error"])

    def test_all_operations(self):
        operations = [name for name in module("plan").OPERATION_NAMES if name not in GLOO_LACKS]
        for ranks in (2, 3):
            events = self.gloo(ranks=ranks, sizes=(8, 65536), point_to_point=True, operations=operations)
            self.assertEqual(self.last(events)["event"], "result")
            self.assertEqual(self.last(events)["body"]["left_out"], [])
            measured = self.parts(events, "measurement")
            self.assertEqual(len(measured), 2 * len(operations))
            self.assertEqual({body["wrong"] for body in measured}, {0})
            self.assertEqual(sorted(body["rank"] for body in self.parts(events, "times")), list(range(ranks)))
            self.assertEqual([body["prepared_by"] for body in self.parts(events, "point-to-point")],
                             ["nothing", "all_reduce", "sendrecv"])
            factors = {body["operation"]: body["busbw_bytes_per_second"] / body["algbw_bytes_per_second"]
                       for body in measured}
            share = (ranks - 1) / ranks
            for operation, factor in {"all_reduce": 2 * share, "all_gather": share, "reduce_scatter": share,
                                      "alltoall": share, "broadcast": 1, "sendrecv": 1}.items():
                if operation in operations:
                    self.assertAlmostEqual(factors[operation], factor)

    def test_a_wrong_value(self):
        """The run that fixtures/probe/gloo/wrong-values.jsonl records."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "torch.py"), "w") as file:
                file.write(SPOILT_TORCH)
            events = self.gloo(operations=["all_reduce", "broadcast"], env={"PYTHONPATH": folder})
        self.assertEqual([(body["operation"], body["bytes"], body["wrong"]) for body in self.parts(events, "measurement")],
                         [("all_reduce", 8, 0), ("all_reduce", 4096, 0), ("broadcast", 8, 1), ("broadcast", 4096, 1)])
        self.assertEqual([(body["rank"], body["operation"], body["first"]) for body in self.parts(events, "wrong-values")],
                         [(1, "broadcast", 1), (1, "broadcast", 1023)])

    def test_small_types(self):
        for dtype in ("float64", "float16"):
            events = self.gloo(dtype=dtype, operations=["all_reduce", "broadcast"])
            self.assertEqual({body["wrong"] for body in self.parts(events, "measurement")}, {0})

    def test_sizes_beyond_memory_are_left_out(self):
        left_out, = self.last(self.gloo(sizes=(8, 1 << 50), operations=["all_reduce"]))["body"]["left_out"]
        self.assertEqual((left_out["operation"], left_out["bytes"]), ("all_reduce", 1 << 50))
        self.assertIn("do not fit", left_out["why"])

    def test_one_rank_alone(self):
        events = self.gloo(ranks=1, operations=["all_reduce"])
        self.assertEqual(len(self.parts(events, "times")), 1)
        self.assertIn("second GPU", self.last(events)["body"]["left_out"][0]["why"])

    def test_a_missing_rank(self):
        def run(limit):
            return self.last(self.gloo(ranks=3, stall_seconds=limit, operations=["broadcast", "all_reduce"],
                                       sleep_rank={"rank": 1, "before": "all_reduce of 4096 bytes, batch 3"}))

        event = self.hang(run, 15, lambda event: event["rank"] == 1)
        self.assertEqual((event["event"], event["how"], event["rank"]), ("failed", "deadline", 1))
        self.assertIn("rank 1 has not come to 'all_reduce of 4096 bytes, batch 3'", event["message"])
        self.assertIn("the others wait in it", event["message"])
        stacks = {entry["process"]: "\n".join(entry["stack"]) for entry in event["stacks"]}
        self.assertIn("in enter", stacks["rank 1"])
        self.assertIn("in fence", stacks["rank 0"])

    def test_the_deadline_of_the_step(self):
        def run(limit):
            return self.last(self.run_plan({"steps": ["collectives"], "deadlines": {"collectives": limit}, "collectives": {
                "backend": "gloo", "sizes": [8], "sleep_rank": {"rank": 0, "before": "rendezvous"}}}, text=text))

        # Half of the deadline, because the exit of PyTorch may take long.
        text = program().replace("SHARE_OF_DEADLINE = 0.9", "SHARE_OF_DEADLINE = 0.5")
        event = self.hang(run, 36, lambda event: event["rank"] == 0)
        self.assertIn("the step ran out of time", event["message"])
        self.assertIn("rank 0 has not come to 'communicator'", event["message"])

    def test_a_rank_that_crashes(self):
        for number in (signal.SIGKILL, signal.SIGSEGV):
            process = self.start({"steps": ["collectives"], "collectives": {
                "backend": "gloo", "sizes": [8], "point_to_point": False, "world": {"gpus": 2},
                "sleep_rank": {"rank": 1, "before": "all_reduce"}}})
            lines = iter(process.stdout.readline, b"")
            out = b""
            for line in lines:
                out += line
                if out.count(b'"times"') == 2:
                    break
            time.sleep(1)
            os.kill(self.rank_pid(process.pid, 1), number)
            rest = process.stdout.read()
            process.communicate(timeout=PATIENCE)
            event = self.last(self.events(out + rest))
            name = signal.Signals(number).name
            self.assertEqual((event["how"], event["rank"], event["signal"]), ("signal", 1, name))
            self.assertEqual(event["ranks"][1]["state"], "signal " + name)

    def rank_pid(self, parent, rank):
        """The process of a rank, among the descendants of this program."""
        for path in glob.glob("/proc/[0-9]*/environ"):
            pid = path.split("/")[2]
            try:
                with open(path, "rb") as environ, open("/proc/%s/stat" % pid) as stat:
                    is_rank = b"RANK=%d" % rank in environ.read().split(b"\0")
                    step = int(stat.read().rsplit(")", 1)[1].split()[1])
                with open("/proc/%d/stat" % step) as stat:
                    if is_rank and int(stat.read().rsplit(")", 1)[1].split()[1]) == parent:
                        return int(pid)
            except OSError:
                continue
        raise AssertionError("no process of rank %d" % rank)

    def test_what_if(self):
        events = self.gloo("what-if", what_if={"rounds": 2, "sizes": [1024], "variants": [
            {"OMP_NUM_THREADS": "2"}, {"GLOO_SOCKET_IFNAME": "nonesuch"}]})
        base, threads, nonesuch = self.last(events)["body"]["variants"]
        self.assertEqual([base["index"], threads["index"], nonesuch["index"]], [0, 1, 2])
        self.assertEqual([len(base["sizes"][0]["samples"]), len(threads["sizes"][0]["samples"])], [10, 10])
        self.assertEqual(nonesuch["sizes"], [])
        self.assertIn("nonesuch", nonesuch["failed"]["message"])
        order = [(body["round"], body["variant"]) for body in self.parts(events, "measurement")]
        self.assertEqual(order, [(0, 0), (0, 1), (1, 1), (1, 0)])

    def test_two_containers(self):
        """Two runs, as in two containers, use one address."""
        port = module("world").free_port()
        runs = [self.start({"steps": ["collectives"], "collectives": {
            "backend": "gloo", "sizes": [8], "operations": ["broadcast"], "seconds_per_size": 0.02, "world": {
                "gpus": 1, "offset": offset, "size": 2, "master_addr": "127.0.0.1", "master_port": port}}})
                for offset in (0, 1)]
        first, second = [self.events(process.communicate(timeout=PATIENCE)[0]) for process in runs]
        self.assertEqual(len(self.parts(first, "measurement")), 1)
        self.assertEqual(len(self.parts(second, "measurement")), 0)
        self.assertEqual(self.last(second)["event"], "result")

    def test_wrong_values_are_found(self):
        import torch
        pattern, segment = module("pattern"), module("operations").Segment
        tensor = torch.empty(10, dtype=torch.float32)
        pattern.fill(torch, tensor, 2, 251)
        segments = [segment(0, 10, [2], 0)]
        self.assertEqual(pattern.wrong_values(torch, tensor, segments, 251)["wrong"], 0)
        tensor[7], tensor[9] = float("nan"), tensor[8]
        found = pattern.wrong_values(torch, tensor, segments, 251)
        self.assertEqual((found["wrong"], found["first"], found["expected"], found["got"]), (2, 7, "75", "nan"))
