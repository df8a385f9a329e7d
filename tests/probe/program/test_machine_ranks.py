"""The steps pytorch, collectives, forced-network and what-if of the whole program, with stand-ins for PyTorch and the driver.

The stand-in for PyTorch computes the operations by their definitions, so a wrong value is always one that a test has injected.
"""
from harness import module
from machine import STAND_INS, Machine

OPERATIONS = module("plan").OPERATION_NAMES
PYTHON = str(STAND_INS / "python")


class Stage(Machine):
    """A machine with two GPUs and the stand-in for PyTorch."""

    def setUp(self):
        super().setUp()
        for name in ("cuda", "nccl"):
            self.install(name)

    def steps(self, step, fault="", gpus=2, plan=None, stand_in="gpus=2", variables=None, replaced=None, **options):
        """All events of a run."""
        options = dict({"sizes": [8, 400], "seconds_per_size": 0.01, "point_to_point": False}, **options)
        variables = dict(variables or {}, PYTHONPATH=PYTHON, TORCH_FAULT=fault, TORCH_GPUS=str(gpus))
        return self.run_on_machine(dict(plan or {}, steps=[step], collectives=options), stand_in=stand_in,
                                   variables=variables, replaced=replaced)

    def collectives(self, fault="", **more):
        return self.steps("collectives", fault, **more)

    def failed(self, *arguments, **more):
        event = self.last(self.collectives(*arguments, **more))
        self.assertEqual(event["event"], "failed", event)
        return event


class Ranks(Stage):
    def wrong(self, events):
        """({(operation, bytes): number of wrong values}, the ranks' reports about them)."""
        measured = {(body["operation"], body["bytes"]): body["wrong"] for body in self.parts(events, "measurement")}
        return {key: wrong for key, wrong in measured.items() if wrong}, self.parts(events, "wrong-values")

    def test_all_operations(self):
        for ranks in (2, 3):
            events = self.collectives(gpus=ranks, stand_in="gpus=%d" % ranks, point_to_point=True)
            event = self.last(events)
            waits = event["body"].pop("cpu_waits")
            self.assertEqual([wait["rank"] for wait in waits], list(range(ranks)))
            self.assertEqual(event.get("body"), {"world_size": ranks, "local_ranks": ranks, "left_out": [],
                                                 "unclean_exits": [], "gpus_during": None, "gpus_after": None}, event)
            self.assertEqual(len(self.parts(events, "measurement")), 2 * len(OPERATIONS))
            self.assertEqual(self.wrong(events), ({}, []))
            self.assertEqual([body["prepared_by"] for body in self.parts(events, "point-to-point")],
                             ["nothing", "all_reduce", "sendrecv"])
            times = self.parts(events, "times")
            self.assertEqual(sorted(body["rank"] for body in times), list(range(ranks)))
            self.assertEqual({body["eager"] for body in times}, {True})
            self.assertEqual(times[0]["communicator_seconds"], times[0]["init_seconds"])
            self.assertTrue([path for path in self.parts(events, "libraries")[0]["paths"] if "libnccl.so" in path])

    def test_a_wrong_value_of_each_operation_is_found(self):
        wrong, reports = self.wrong(self.collectives("spoil every 1", sizes=[400]))
        self.assertEqual(wrong, {(operation, 400): 1 for operation in OPERATIONS})
        self.assertEqual([(body["operation"], body["rank"], body["wrong"]) for body in reports],
                         [(operation, 1, 1) for operation in OPERATIONS])
        for body in reports:
            self.assertEqual(body["first"], 49 if body["operation"] == "reduce_scatter" else 99)
            self.assertEqual(float(body["got"]), float(body["expected"]) + 1)

    def test_types_without_exact_sums_are_not_checked(self):
        events = self.collectives(operations=["all_reduce"], dtype="bfloat16", sizes=[8], replaced={
            '"bfloat16": 8}': '"bfloat16": 1}'})
        body, = self.parts(events, "measurement")
        self.assertEqual((body["wrong"], body["unread"]["wrong"]), (None, "sums over 2 ranks are not exact in this type"))

    def test_without_eager_initialization(self):
        times = self.parts(self.collectives(eager=False, operations=["all_reduce"]), "times")[0]
        self.assertEqual((times["eager"], times["communicator_seconds"]), (False, None))

    def test_a_rank_that_crashes(self):
        event = self.failed("crash all_gather 1")
        self.assertEqual((event["how"], event["signal"], event["rank"]), ("signal", "SIGSEGV", 1))
        self.assertEqual(event["ranks"][1]["state"], "signal SIGSEGV")
        self.assertIn("all_gather of 8 bytes, warm-up", event["ranks"][1]["phase"])
        self.assertIn("in exchange", "\n".join(event["stacks"][0]["stack"]))

    def test_a_rank_that_raises(self):
        event = self.failed("raise broadcast 0")
        self.assertEqual((event["how"], event["type"], event["rank"]), ("exception", "RuntimeError", 0))
        self.assertIn("broadcast: unhandled system error", event["message"])
        self.assertEqual(event["ranks"][0]["state"], "failed")

    def test_a_rank_that_exits_uncleanly(self):
        body = self.last(self.collectives("exit destroy 1", operations=["all_reduce"]))["body"]
        self.assertEqual(body["unclean_exits"], [{"rank": 1, "ending": "exit status 7"}])

    def test_several_containers_need_a_port(self):
        event = self.last(self.collectives(world={"size": 4}))
        self.assertEqual(event["event"], "skipped")
        self.assertIn("set collectives.world.master_port", event["why"])

    def test_more_gpus_than_there_are(self):
        event = self.last(self.collectives(world={"gpus": 3}))
        self.assertEqual((event["event"], event["why"]), ("skipped", "the plan requests 3 GPUs and CUDA sees 2 here"))

    def test_no_gpu(self):
        for stand_in, why in (("gpus=0", "CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected"),
                              ("cuInit=4242", "CUDA error 4242, unknown to this driver"),
                              ("cuDeviceGetCount=3", "cuDeviceGetCount: CUDA_ERROR_NOT_INITIALIZED (3)")):
            event = self.last(self.collectives(stand_in=stand_in))
            self.assertEqual(event["event"], "skipped")
            self.assertIn("CUDA sees no GPU here (%s" % why, event["why"])

    def test_one_rank_alone(self):
        left_out = self.last(self.collectives(world={"gpus": 1}, operations=["all_reduce"]))["body"]["left_out"]
        self.assertIn("second GPU", left_out[0]["why"])

    def test_the_gpus_are_watched(self):
        self.install("nvml")
        body = self.last(self.collectives(stand_in="gpus=2 busy=100 clocks_reasons=4", operations=["all_reduce"]))["body"]
        self.assertEqual(body["gpus_during"], [{"index": index, "event_reasons": ["sw_power_cap"], "sm_mhz_least": 345,
                                                "celsius_most": 38} for index in range(2)])
        self.assertEqual([(gpu["index"], gpu["busy_percent"]) for gpu in body["gpus_after"]], [(0, 100), (1, 100)])

    def test_all_reduce_runs_again_without_variables_that_slow_it_down(self):
        variables = {"NCCL_PROTO": "LL", "NCCL_BUFFSIZE": "65536"}
        events = self.collectives(variables=variables, operations=["all_reduce", "broadcast"])
        runs = self.last(events)["body"]["without_variables"]
        self.assertEqual([run["variables"] for run in runs],
                         [["NCCL_BUFFSIZE", "NCCL_PROTO"], ["NCCL_BUFFSIZE"], ["NCCL_PROTO"]])
        for run in runs:
            size, = run["sizes"]
            self.assertEqual((run["failed"], size["bytes"], len(size["samples"])), (None, 400, 5))
        self.assertEqual(len(self.parts(events, "measurement")), 4)

    def test_a_run_without_variables_may_fail(self):
        body = self.last(self.collectives(variables={"NCCL_PROTO": "LL"}, operations=["all_reduce"], replaced={
            "applied = dict(rank_settings(options, {}), **replaced)":
            'applied = dict(rank_settings(options, {}), TORCH_FAULT="crash all_reduce 1", **replaced)'}))["body"]
        run, = body["without_variables"]
        self.assertEqual((run["sizes"], run["failed"]["rank"], run["failed"]["signal"]), ([], 1, "SIGSEGV"))

    def test_sizes_that_do_not_fit(self):
        left_out, = self.last(self.collectives(sizes=[8, 1 << 50], operations=["all_reduce"]))["body"]["left_out"]
        self.assertEqual((left_out["operation"], left_out["bytes"]), ("all_reduce", 1 << 50))
        self.assertIn("do not fit", left_out["why"])

    def test_sizes_for_which_there_is_no_time(self):
        """The share of the run's time for measurements is zero."""
        left_out = self.last(self.collectives(replaced={"MEASURING_SHARE = 0.8": "MEASURING_SHARE = 0.0"}))["body"]["left_out"]
        self.assertEqual(len(left_out), 2 * len(OPERATIONS))
        self.assertIn("raise its deadline, or request fewer sizes", left_out[0]["why"])

    def test_the_network_is_forced(self):
        events = self.steps("forced-network", plan={"forced_network": {
            "operations": ["sendrecv"], "sizes": [8], "env": {"NCCL_P2P_DISABLE": "1"}}})
        self.assertEqual(self.last(events)["event"], "result")
        self.assertEqual(self.parts(events, "setup")[0]["env"]["NCCL_P2P_DISABLE"], "1")
        self.assertEqual([body["operation"] for body in self.parts(events, "measurement")], ["sendrecv"])


class Hangs(Stage):
    def test_a_missing_rank(self):
        def run(limit):
            return self.failed(stall_seconds=limit, sleep_rank={"rank": 1, "before": "all_reduce of 400 bytes, batch 3"})

        event = self.hang(run, 10, lambda event: event["rank"] == 1)
        self.assertEqual((event["how"], event["rank"]), ("deadline", 1))
        self.assertIn("rank 1 has not come to 'all_reduce of 400 bytes, batch 3'", event["message"])
        stacks = {entry["process"]: "\n".join(entry["stack"]) for entry in event["stacks"]}
        self.assertIn("in enter", stacks["rank 1"])
        self.assertIn("in fence", stacks["rank 0"])

    def test_the_deadline_of_the_step(self):
        def run(limit):
            return self.failed(plan={"deadlines": {"collectives": limit}}, sleep_rank={"rank": 0, "before": "rendezvous"},
                               replaced={"SHARE_OF_DEADLINE = 0.9": "SHARE_OF_DEADLINE = 0.3"})

        event = self.hang(run, 36, lambda event: event["rank"] == 0)
        self.assertIn("the step ran out of time", event["message"])
        self.assertIn("rank 0 has not come to 'communicator' (it is in 'asleep before rendezvous", event["message"])

    def test_missing_ranks_of_another_container(self):
        event = self.failed(stall_seconds=10, operations=["all_reduce"], world={
            "gpus": 1, "size": 2, "master_port": module("world").free_port()})
        self.assertIn("ranks of other containers are not visible from here", event["message"])
        self.assertIn("all ranks here are in", event["message"])


class WhatIf(Stage):
    def what_if(self, fault="", variants=({"NCCL_ALGO": "Ring"},), **more):
        return self.steps("what-if", fault, plan={
            "what_if": {"rounds": 2, "sizes": [80], "variants": list(variants)}}, **more)

    def test_what_if(self):
        events = self.what_if(variants=[{"NCCL_ALGO": "Ring"}, {"TORCH_FAULT": "raise all_reduce 1"}])
        base, ring, fails = self.last(events)["body"]["variants"]
        self.assertEqual([len(variant["sizes"][0]["samples"]) for variant in (base, ring)], [10, 10])
        self.assertEqual((fails["sizes"], fails["failed"]["rank"]), ([], 1))
        order = [(body["round"], body["variant"]) for body in self.parts(events, "measurement")]
        self.assertEqual(order, [(0, 0), (0, 1), (1, 1), (1, 0)])

    def test_what_if_without_variants(self):
        event = self.last(self.what_if(variants=[]))
        self.assertEqual((event["event"], event["why"].partition(":")[0]), ("skipped", "the plan names no variants"))

    def test_what_if_whose_run_without_changes_fails(self):
        event = self.last(self.what_if("crash all_reduce 0", variants=[{"TORCH_FAULT": ""}]))
        self.assertEqual((event["event"], event["how"], event["rank"]), ("failed", "signal", 0))

    def test_what_if_without_time_for_a_turn(self):
        variants = self.last(self.what_if(replaced={"SHARE_OF_DEADLINE = 0.9": "SHARE_OF_DEADLINE = 0.0"}))["body"]["variants"]
        self.assertEqual([[turn["round"] for turn in variant["left_out"]] for variant in variants], [[0, 1], [0, 1]])
        self.assertIn("raise its deadline", variants[0]["left_out"][0]["why"])


class Pytorch(Stage):
    def pytorch(self, fault="", **more):
        events = self.steps("pytorch", fault, **more)
        return events, self.last(events)["body"]

    def test_two_gpus(self):
        events, body = self.pytorch()
        self.assertEqual([part["when"] for part in self.parts(events, "libraries")], ["import", "cuda"])
        build, = self.parts(events, "build")
        self.assertEqual((build["nccl_version"], build["arch_list"]), ("2.28.9", ["sm_80", "sm_90", "compute_90"]))
        self.assertEqual((body["cuda_available"], body["cuda_error"], body["warnings"]), (True, None, []))
        self.assertEqual([(gpu["code"], gpu["code_from"], gpu["kernel_correct"]) for gpu in body["devices"]],
                         [("exact", "sm_90", True)] * 2)
        self.assertEqual(body["peer_access"], [[None, True], [True, None]])
        self.assertEqual(body["driver"], {"library": "libcuda.so.1", "init_code": 0, "init_error": None,
                                          "version": 13000, "devices": 2})
        self.assertEqual(body["nccl_loaded_version"], "2.28.9")

    def test_a_kernel_that_computes_wrongly(self):
        self.assertEqual([gpu["kernel_correct"] for gpu in self.pytorch("spoil ones 1")[1]["devices"]], [True, False])

    def test_a_kernel_that_does_not_start(self):
        gpu = self.pytorch("raise ones 0")[1]["devices"][0]
        self.assertIsNone(gpu["kernel_correct"])
        self.assertIn("no kernel image is available", gpu["error"])

    def test_no_gpu(self):
        body = self.pytorch("warn is_available 0", gpus=0, stand_in="gpus=0")[1]
        self.assertEqual((body["cuda_available"], body["devices"], body["peer_access"]), (False, [], []))
        self.assertEqual(body["cuda_error"], "AssertionError: Torch not compiled with CUDA enabled")
        self.assertEqual(body["warnings"], ["CUDA initialization: Unexpected error from cudaGetDeviceCount()"])
        self.assertEqual(body["driver"]["init_error"],
                         "CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected")
        self.assertIn("no libnccl.so is mapped", body["unread"]["nccl_loaded_version"])

    def test_cuda_that_is_not_available_yet_initializes(self):
        self.assertIn("yet CUDA initializes: 2 devices", self.pytorch("raise is_available 0")[1]["cuda_error"])

    def test_no_libcuda(self):
        self.install_broken("cuda")
        body = self.pytorch(gpus=0)[1]
        self.assertEqual((body["driver"]["init_code"], body["driver"]["devices"]), (None, None))
        self.assertIn("libcuda.so.1", body["driver"]["unread"]["devices"])

    def test_a_libnccl_without_a_version(self):
        body = self.pytorch(stand_in="gpus=2 ncclGetVersion=3")[1]
        self.assertRegex(body["unread"]["nccl_loaded_version"], "ncclGetVersion of .*libnccl.so.* returned 3")
