"""The step between-nodes: programs that stand for nodes, and orders for them. Most use the stand-ins for PyTorch and CUDA."""
import contextlib
import json
import os
import signal
import socket
import tempfile
import threading
import types
import unittest
import unittest.mock

from harness import PATIENCE, Payload, module, program
from machine import KERNEL_PLACES, STAND_INS, Machine
from test_machine_rdma import SoftRoce
from test_torch import HAS_TORCH

# The stand-in for PyTorch takes a second for a million elements.
SMALL = {'MESSAGE_BYTES = {"nccl": 64 * MIB, "gloo": 4 * MIB}': 'MESSAGE_BYTES = {"nccl": 400, "gloo": 400}',
         "BATCH_SECONDS, MOST_SENDS = 3, 0.1, 64": "BATCH_SECONDS, MOST_SENDS = 3, 0.001, 4"}


class Node:
    """A program that takes orders."""

    def __init__(self, case, process):
        self.case, self.process, self.seen, self.ready = case, process, [], None
        killer = threading.Timer(PATIENCE, process.kill)
        killer.start()
        case.addCleanup(self.close)
        case.addCleanup(killer.cancel)

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(timeout=PATIENCE)
        self.process.stdout.close()

    def until(self, kind):
        """The body of the next event or part of this kind, or the event if it has none."""
        while True:
            line = self.process.stdout.readline()
            self.case.assertTrue(line, "the program ended before %r: %s" % (kind, self.seen[-3:]))
            event = json.loads(line)
            self.case.check(event)
            self.seen.append(event)
            if kind in (event["event"], event.get("body", {}).get("kind")):
                return event.get("body", event)

    def get_ready(self):
        self.ready = self.until("ready")

    def write(self, text):
        self.process.stdin.write(text.encode("ascii"))
        self.process.stdin.flush()

    def order(self, order):
        self.write(json.dumps({self.ready["id"]: order}) + "\n")

    def renew(self, **variables):
        self.order({"renew": variables})
        self.get_ready()

    def descendants(self):
        """The processes that this program has started, and those that they have started."""
        parents = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open("/proc/%s/stat" % pid) as file:
                parents[int(pid)] = int(file.read().rsplit(")", 1)[1].split()[1])
        found = [self.process.pid]
        for parent in found:
            found += [pid for pid, of in parents.items() if of == parent]
        return found[1:]


class Nodes(Payload):
    """Base class of tests with several nodes."""

    def started(self, env, replaced, **plan):
        text = program()
        for old, new in replaced.items():
            self.assertIn(old, text)
            text = text.replace(old, new)
        return Node(self, self.start_with_lifeline(dict({"steps": ["between-nodes"]}, **plan), text=text, env=env))

    def begin(self, number, nodes, kind="pair", absent=0, **more):
        """Orders a test of these nodes, of which the first has rank 0, and of some that do not come."""
        first, local = nodes[0].ready, min(node.ready["ranks"] for node in nodes)
        for place, node in enumerate(nodes):
            node.order(dict({"test": number, "kind": kind, "rank": place * local, "size": (len(nodes) + absent) * local,
                             "local": local, "addresses": first["addresses"], "port": first["port"]}, **more))

    def answers(self, number, nodes, kind="pair", **more):
        self.begin(number, nodes, kind, **more)
        found = [node.until("test") for node in nodes]
        self.assertEqual([body["test"] for body in found], [number] * len(nodes))
        return found

    def assert_right(self, number, nodes, rails=1):
        """A test of two nodes ends well, and its values are right."""
        for body in self.answers(number, nodes):
            self.assertEqual((body["failed"], body["wrong"], len(body["received"])), (None, 0, rails))
            self.assertGreater(min(body["received"] + [body["busbw_bytes_per_second"], body["seconds"]]), 0)

    def assert_end(self, node, tests):
        node.order({"end": True})
        self.assertEqual(node.until("result"), {"tests": tests})
        self.assertEqual(node.until("end")["run"], 1)
        self.assertEqual(node.process.wait(timeout=PATIENCE), 0)

    def measured(self, node):
        return [(body["bytes"], body["wrong"]) for body in self.parts(node.seen, "measurement")]


class StandInNodes(Nodes, Machine):
    def setUp(self):
        super().setUp()
        for name in ("cuda", "nccl"):
            self.install(name)

    def nodes(self, *gpus, replaced=None, plan=None, **variables):
        """Nodes with these numbers of GPUs, once they are ready."""
        found = [self.node(count, replaced or {}, plan or {}, variables) for count in gpus]
        for node in found:
            node.get_ready()
        return found

    def node(self, gpus, replaced, plan, variables):
        libraries = ":".join(filter(None, [str(self.lib), os.environ.get("LD_LIBRARY_PATH")]))
        env = dict(dict(os.environ, STAND_IN="gpus=%d" % gpus, LD_LIBRARY_PATH=libraries,
                        PYTHONPATH=str(STAND_INS / "python")), **variables)
        return self.started(dict(env, TORCH_GPUS=str(gpus)) if gpus else env, dict(SMALL, **replaced), **plan)


class Tests(StandInNodes):
    def test_pairs(self):
        one, two = self.nodes(0, 0)
        self.assertEqual((one.ready["backend"], one.ready["ranks"]), ("gloo", 1))
        for number, pair in enumerate([(one, two), (two, one), (one, two)]):
            self.assert_right(number, pair)
        self.begin(3, [one], absent=1)
        one.order({"stop": 2})  # that of another test changes nothing
        self.begin(3, [two], rank=1, size=2, addresses=one.ready["addresses"], port=one.ready["port"])
        self.assertEqual([node.until("test")["failed"] for node in (one, two)], [None, None])
        self.assert_end(one, 4)
        self.assert_end(two, 4)

    def test_each_rail(self):
        one, two = self.nodes(2, 2)
        self.assertEqual((one.ready["backend"], one.ready["ranks"]), ("nccl", 2))
        self.assert_right(4, [one, two], rails=2)
        one.renew(TORCH_FAULT="spoil send 1")
        self.assertEqual([body["wrong"] for body in self.answers(5, [one, two])], [1, 1])
        self.assertEqual([(body["operation"], body["rank"]) for body in self.parts(two.seen, "wrong-values")],
                         [("recv", 3)])

    def test_a_node_with_more_ranks_than_its_peer(self):
        one, two = self.nodes(1, 2)
        self.assert_right(0, [one, two])
        self.assert_right(1, [two, one])

    def test_all_together(self):
        nodes = self.nodes(0, 0, 0)
        first, *others = self.answers(7, nodes, "together", sizes=[8, 400, 1 << 50], seconds=PATIENCE)
        for body in [first] + others:
            self.assertEqual((body["failed"], body["received"], body["wrong"]), (None, [None], None))
            self.assertEqual([left_out["bytes"] for left_out in body["left_out"]], [1 << 50])
        self.assertEqual([self.measured(node) for node in nodes], [[(8, 0), (400, 0)], [], []])

    def test_other_variables_and_wrong_values(self):
        one, two = self.nodes(0, 0)
        two.renew(TORCH_FAULT="spoil all_reduce 1")
        self.assertEqual([body["wrong"] for body in self.answers(0, [one, two])], [1, 1])
        self.assertEqual([(body["operation"], body["rank"]) for body in self.parts(two.seen, "wrong-values")],
                         [("all_reduce", 1)])
        two.renew()
        self.assert_right(1, [one, two])


class Writes(StandInNodes):
    """RDMA WRITEs between nodes with the stand-in for libibverbs."""

    def setUp(self):
        super().setUp()
        SoftRoce.add_device(self)

    def started(self, env, replaced, **plan):
        text = KERNEL_PLACES.sub(lambda place: '"%s/%s' % (self.root, place.group(1)), program())
        for old, new in replaced.items():
            text = text.replace(old, new)
        return Node(self, self.start_with_lifeline(dict({"steps": ["between-nodes"]}, **plan), text=text, env=env))

    def written(self, *stand_ins, seconds=PATIENCE):
        """The answers of two nodes with these settings of the stand-in for libibverbs."""
        nodes = [self.node(0, {}, {}, {"STAND_IN": "gpus=0 ipc_lock=1 " + one, "VERBS_DEVICES": "rxe0"}) for one in stand_ins]
        for node in nodes:
            node.get_ready()
        found = self.answers(0, nodes, "writes", local=1, seconds=seconds)
        self.assertEqual([body["failed"] for body in found], [None, None])
        return found

    def reasons(self, *stand_ins, **more):
        """Why neither node has a rate."""
        ports = [body["writes"][0] for body in self.written(*stand_ins, **more)]
        self.assertEqual([port["received_bytes_per_second"] for port in ports], [None, None])
        self.tried = [port["tried"] for port in ports]
        return [port.get("unread", {}).get("received_bytes_per_second") for port in ports]

    def test_each_port_and_way(self):
        for body in self.written("", ""):
            port, = body["writes"]
            self.assertEqual((port["ports"], port["rate_gbits_per_s"]), (["rxe0:1", "rxe0:1"], 2.5))
            self.assertGreater(port["received_bytes_per_second"], 0)

    def test_a_failure_stays_with_the_node_that_has_it(self):
        self.assertEqual(self.reasons("", "corrupt=1"), ["the received bytes differ from those sent", None])
        why = "completion with error 12 IBV_WC_RETRY_EXC_ERR, vendor error 0x0"
        self.assertEqual((self.reasons("wc_status=12", ""), self.tried), ([why, None], [True, True]))
        self.assertEqual(self.reasons("", "ibv_reg_mr=12"), [None, "ibv_reg_mr: ENOMEM: Cannot allocate memory"])
        self.assertEqual(self.reasons("", "link_layer=1"),
                         ["one of both ports is of InfiniBand, the other of Ethernet"] * 2)
        self.assertEqual((self.reasons("", "", seconds=-1), self.tried), (["no time was left for it"] * 2, [False, False]))

    def test_a_node_without_rdma_says_why(self):
        one, two = self.written("port_state=1", "")
        self.assertEqual((one["writes"], two["writes"]), (None, None))
        self.assertEqual(one["unread"], {"writes": "it has no RDMA device with an active port"})
        self.assertNotIn("unread", two)
        self.remove("verbs")
        self.install_broken("verbs")
        one, _ = self.written("", "")
        self.assertRegex(one["unread"]["writes"], "^rxe0: .*libibverbs.so")

    def test_ports_are_paired_by_name_or_place(self):
        paired = module("writes").paired
        self.assertEqual(paired(["a:1", "b:1", "c:1"], ["c:1", "b:1"]), [("b:1", "b:1"), ("c:1", "c:1")])
        self.assertEqual(paired(["a:1", "b:1"], ["x:1"]), [("a:1", "x:1")])


class Failures(StandInNodes):
    def test_a_rank_that_dies(self):
        one, two = self.nodes(0, 0)
        two.renew(TORCH_FAULT="crash all_reduce 1")
        self.begin(3, [one, two])
        failed = two.until("test")["failed"]
        self.assertEqual((failed["how"], failed["rank"], failed["signal"]), ("signal", 1, "SIGSEGV"))
        self.assertEqual(failed["message"], "rank 1: ended by signal SIGSEGV in phase 'all_reduce'")
        self.assertEqual([(rank["rank"], rank["state"]) for rank in failed["ranks"]], [(1, "signal SIGSEGV")])
        self.assertIn("Fatal Python error: Segmentation fault", failed["stderr"])
        # Like a real one, the other rank does not notice.
        one.order({"stop": 3})
        self.assertEqual(one.until("test")["failed"]["ranks"][0]["phase"], "all_reduce")
        for node in (one, two):
            node.get_ready()
        self.assert_right(4, [two, one])

    def test_a_rank_that_raises_while_the_others_wait(self):
        one, two = self.nodes(2, 2, replaced={"OTHERS_GRACE = 3": "OTHERS_GRACE = 0.1"}, TORCH_FAULT="raise send 1")
        self.begin(0, [one, two])
        failed = one.until("test")["failed"]
        self.assertEqual((failed["how"], failed["type"], failed["rank"]), ("exception", "RuntimeError", 1))
        self.assertEqual(failed["message"], "rank 1: send: unhandled system error")
        self.assertEqual([rank["state"] for rank in failed["ranks"]], ["running", "failed"])
        self.assertIn("RuntimeError: send: unhandled system error", failed["stderr"])

    def test_a_peer_that_does_not_come(self):
        """One rank of two waits for it; the other takes no part."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "log.0"), "w") as file:
                file.write("init\n")
            one, = self.nodes(2, replaced={"ALIVE_PERIOD = 3": "ALIVE_PERIOD = 0"}, TORCH_NCCL_LOG=os.path.join(folder, "log"))
            self.begin(5, [one], absent=1, local=1, size=2)
            one.until("log")
            one.until("alive")
            one.order({"stop": 5})
            body = one.until("test")
        self.assertEqual((body["test"], body["received"], body["failed"]["how"]), (5, None, "deadline"))
        self.assertEqual([(rank["rank"], rank["phase"], rank["state"]) for rank in body["failed"]["ranks"]],
                         [(0, "communicator", "running")])
        one.get_ready()
        self.assert_end(one, 1)

    def test_a_first_node_that_cannot_be_reached(self):
        two, = self.nodes(0)
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            port = silent.getsockname()[1]
            self.begin(0, [two], rank=1, size=2, addresses=["127.0.0.1"], port=port)
            failed = two.until("test")["failed"]
        self.assertEqual(failed["message"], "rank 1: port %d of the node with rank 0 cannot be reached: "
                                            "127.0.0.1: Connection refused" % port)

    def kill_rank(self, node):
        _, rank = node.descendants()
        os.kill(rank, signal.SIGKILL)

    def test_a_rank_that_dies_between_tests_fails_the_next_one(self):
        one, two = self.nodes(0, 0)
        self.assert_right(0, [one, two])
        self.kill_rank(one)
        one.get_ready()
        self.begin(1, [one, two])
        failed = one.until("test")["failed"]
        self.assertEqual((failed["how"], failed["signal"]), ("signal", "SIGKILL"))
        two.order({"stop": 1})
        two.until("test")
        for node in (one, two):
            node.get_ready()
        self.assert_right(2, [one, two])
        self.assert_end(one, 3)

    def test_a_rank_that_dies_after_the_last_test_fails_the_step(self):
        node, = self.nodes(0)
        self.kill_rank(node)
        node.get_ready()
        node.order({"end": True})
        event = node.until("failed")
        self.assertEqual((event["how"], event["signal"], event["rank"]), ("signal", "SIGKILL", 0))
        self.assertEqual(node.until("end")["failed"], 1)

    def test_ranks_that_die_again_without_a_test_fail_the_step(self):
        node, = self.nodes(0)
        self.kill_rank(node)
        node.get_ready()
        self.kill_rank(node)
        self.assertEqual(node.until("failed")["signal"], "SIGKILL")

    def test_a_node_says_that_it_is_alive_while_its_ranks_start(self):
        (self.root / "torch.py").write_text("import time; time.sleep(1000)")
        env = dict(os.environ, PYTHONPATH=str(self.root), CUDA_VISIBLE_DEVICES="")
        node = self.started(env, {"ALIVE_PERIOD = 3": "ALIVE_PERIOD = 0"})
        node.until("alive")
        node.until("alive")

    def test_ranks_that_never_get_ready(self):
        (self.root / "torch.py").write_text("raise ValueError('enough')")
        node = self.started(dict(os.environ, PYTHONPATH=str(self.root), CUDA_VISIBLE_DEVICES=""), {})
        event = node.until("failed")
        self.assertEqual((event["how"], event["type"], event["message"]), ("exception", "ValueError", "rank 0: enough"))
        self.assertIn("ValueError: enough", event["stderr"])


class Orders(StandInNodes):
    def test_what_is_for_others_is_ignored(self):
        node, = self.nodes(0)
        for line in ('"tail": {"end": true}}', "", "[]", "\u007f", '{"0123456789abcdef": {"end": true}}'):
            node.write(line + "\n")
        self.begin(0, [node], "together", sizes=[8], seconds=PATIENCE)
        self.assertEqual((node.until("test")["failed"], self.measured(node)), (None, [(8, 0)]))

    def test_an_order_in_two_pieces(self):
        node, = self.nodes(0)
        text = json.dumps({"other": {"stop": 1}, node.ready["id"]: {"end": True}}) + "\n" + json.dumps({"other": 1})
        for piece in (text[:30], text[30:]):
            node.write(piece)
        self.assertEqual(node.until("result"), {"tests": 0})

    def test_the_end_of_input_ends_all_processes(self):
        node, = self.nodes(2)
        self.begin(0, [node], absent=1)
        processes = node.descendants()
        self.assertEqual(len(processes), 3)
        node.process.stdin.close()
        self.assertEqual(node.process.wait(timeout=PATIENCE), 128 + signal.SIGTERM)
        self.assert_gone(processes)

    def test_the_end_of_input_after_orders_to_a_step_that_has_ended(self):
        node, = self.nodes(0, plan={"steps": ["between-nodes", "collectives"], "collectives": {
            "backend": "gloo", "sizes": [8], "sleep_rank": {"rank": 0, "before": "rendezvous"}}})
        node.order({"end": True})
        node.until("setup")
        node.order({"end": "x" * (1 << 18)})
        node.process.stdin.close()
        self.assertEqual(node.process.wait(timeout=PATIENCE), 128 + signal.SIGTERM)

    def test_without_a_lifeline(self):
        event = self.last(self.run_plan({"steps": ["between-nodes"]}))
        self.assertEqual((event["event"], event["why"]),
                         ("skipped", "it tests nodes against each other: run ncclcheck cluster"))


class OrderPieces(unittest.TestCase):
    def test_lines_come_whole(self):
        far, near = os.pipe()
        self.addCleanup(os.close, far)
        lines = module("orders").lines_of(far)
        os.write(near, b"one\ntw")
        self.assertEqual(next(lines), b"one")
        os.write(near, b"o\n\nthr")
        self.assertEqual([next(lines), next(lines)], [b"two", b""])
        os.close(near)
        self.assertEqual(list(lines), [])

    def test_orders_to_a_step_that_has_ended_are_dropped(self):
        orders = module("orders").Orders()
        self.addCleanup(os.close, orders.near)
        orders.hand_over()
        for _ in range(3):
            orders.take(json.dumps({orders.id: {"end": "x" * (1 << 16)}}).encode("ascii"))


    def test_an_order_to_a_rank_that_has_died_fails_nothing_by_itself(self):
        team = module("between_nodes").Team(types.SimpleNamespace(report=None, lost=None))
        far, near = os.pipe()
        self.addCleanup(os.close, near)
        os.close(far)
        team.order_fds, team.ranks = [near], [types.SimpleNamespace()]
        team.begin({"test": 0, "rank": 3, "local": 1})
        self.assertEqual((team.ranks[0].rank, team.is_spent), (3, False))


class Addresses(unittest.TestCase):
    BODIES = [{"name": "lo", "flags": ["up", "loopback"], "ipv4": "127.0.0.1/8", "ipv6": ["::1/128"]},
              {"name": "docker0", "flags": ["up"], "ipv4": "172.17.0.1/16", "ipv6": []},
              {"name": "ib0", "flags": ["up"], "ipv4": "192.0.2.7/24", "ipv6": ["fe80::1/64"]},
              {"name": "eth0", "flags": ["up"], "ipv4": None, "ipv6": ["2001:db8::7/64"]},
              {"name": "eth1", "flags": [], "ipv4": "198.51.100.1/24", "ipv6": []},
              {"name": "odd", "flags": None, "ipv4": "198.51.100.2/24", "ipv6": []}]

    def addresses(self, bodies=BODIES, **env):
        step = module("between_nodes")
        with unittest.mock.patch.object(step, "interface_bodies", lambda: bodies), \
                unittest.mock.patch.object(step, "default_routes", lambda: [{"interface": "eth0"}]):
            return step.addresses(env)

    def test_the_default_route_comes_first(self):
        self.assertEqual(self.addresses(), ["2001:db8::7", "172.17.0.1", "192.0.2.7"])

    def test_named_interfaces_come_before_it(self):
        for value in ("ib", "=ib0:1", "eno1,ib0"):
            self.assertEqual(self.addresses(NCCL_SOCKET_IFNAME=value)[0], "192.0.2.7")
        self.assertEqual(self.addresses(NCCL_SOCKET_IFNAME="^ib0")[0], "2001:db8::7")

    def test_the_loopback_interface_counts_only_alone(self):
        self.assertEqual(self.addresses(self.BODIES[:1]), ["127.0.0.1", "::1"])


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
class TorchNodes(Nodes):
    """Nodes with the real PyTorch, which communicate by gloo."""

    def nodes(self, count):
        found = [self.started(dict(os.environ, CUDA_VISIBLE_DEVICES=""), {}) for _ in range(count)]
        for node in found:
            node.get_ready()
        return found

    def test_pairs_and_all_together(self):
        one, two = self.nodes(2)
        for number, pair in enumerate([(one, two), (two, one), (one, two)]):
            self.assert_right(number, pair)
        one.renew(OMP_NUM_THREADS="2")
        for body in self.answers(3, [two, one], "together", sizes=[8, 4096], seconds=PATIENCE):
            self.assertEqual((body["failed"], body["left_out"]), (None, []))
        self.assertEqual([self.measured(node) for node in (one, two)], [[], [(8, 0), (4096, 0)]])
        self.assert_end(two, 4)

    def test_a_rank_that_is_killed(self):
        one, two = self.nodes(2)
        self.begin(0, [one], absent=1)
        step, rank = one.descendants()
        os.kill(rank, signal.SIGKILL)
        failed = one.until("test")["failed"]
        self.assertEqual((failed["how"], failed["rank"], failed["signal"]), ("signal", 0, "SIGKILL"))
        one.get_ready()
        self.assert_right(1, [one, two])


if __name__ == "__main__":
    unittest.main()
