"""Step between-nodes: takes part in tests with other nodes, as orders ask. `ncclcheck cluster` gives them.

An order is one of
    {"test", "kind", "rank", "size", "local", "addresses", "port", ...}   a test of kind `pair` or `together`: this node has
        `local` of its `size` ranks, from `rank` on; rank 0 is at one of the addresses and this port
    {"stop": NUMBER}      gives up the test of this number
    {"renew": VARIABLES}  starts the ranks anew, with these variables
    {"end": true}         ends the step
and what comes back is a part of kind
    ready   id, backend, ranks, addresses, port: this node takes tests; again after its ranks have started anew, as they do
            after each test that failed
    test    test, seconds, packets {sent, again}, failed; received (bytes per second, by local rank), busbw_bytes_per_second, wrong
"""
import json
import os
import time

from ncclcheck_probe.child import Channel, Child, watch
from ncclcheck_probe.driver import driver_body
from ncclcheck_probe.interfaces import default_routes, interface_bodies
from ncclcheck_probe.supervise import RankProcess
from ncclcheck_probe.task import Skipped, StepFailed, failure
from ncclcheck_probe.traffic import traffic_now, traffic_since
from ncclcheck_probe.world import logging_variables

LONGEST_ORDER = 1 << 20  # bytes
IFNAME_VARIABLES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")


def probe_between_nodes(arguments, report):
    if arguments["orders"] is None:
        raise Skipped("it tests nodes against each other: run ncclcheck cluster")
    node = Node(arguments, report)
    while not node.is_over:
        team = Team(node)
        try:
            node.serve(team)
        finally:
            team.close()
    return {"tests": node.tests}


class Node:
    """This node: its orders, and what its ranks are."""

    def __init__(self, arguments, report):
        self.arguments, self.report = arguments, report
        self.orders = Channel(arguments["orders"], LONGEST_ORDER)
        devices = driver_body()["devices"]
        self.backend, self.count = ("nccl", devices) if devices else ("gloo", 1)
        self.env = {}
        self.tests, self.is_over = 0, False

    def serve(self, team):
        """Follows orders until the ranks have to start anew, or the step ends."""
        for message in watch([rank.child for rank in team.ranks]):
            if message:
                team.take(message)
            for order in map(json.loads, self.orders.lines()):
                self.follow(order, team)
            if self.is_over or team.is_spent:
                return

    def follow(self, order, team):
        if "test" in order:
            self.tests += 1
            team.begin(order)
        elif "stop" in order:
            team.stop(order["stop"])
        elif "renew" in order:
            self.env, team.is_spent = order["renew"], True
        else:
            self.is_over = True


class Team:
    """The ranks of this node."""

    def __init__(self, node):
        self.node, self.report = node, node.report
        self.test, self.is_spent = None, False
        self.answers, self.ports = {}, {}
        self.ranks, self.rank_of, self.order_fds = [], {}, []
        env = dict(os.environ, **logging_variables("INIT,NET"))
        env.update(node.env, LOCAL_WORLD_SIZE=str(node.count), OMP_NUM_THREADS=os.environ.get("OMP_NUM_THREADS", "1"))
        for local in range(node.count):
            far, near = os.pipe()
            try:
                child = Child(node.arguments["program"], "lasting-rank", {"backend": node.backend},
                              dict(env, LOCAL_RANK=str(local)), leads_group=False, with_log=True, name="rank %d" % local,
                              orders=far)
            finally:
                os.close(far)
            self.order_fds.append(near)
            self.ranks.append(RankProcess(child, local))
            self.rank_of[child] = self.ranks[-1]

    def begin(self, test):
        """Gives the ranks a test. Those that the other node has no peer for stay out of it."""
        self.test, self.answers, self.started = test, {}, time.monotonic()
        self.traffic = traffic_now()
        for local in range(test["local"]):
            rank = self.ranks[local]
            rank.rank, rank.number, rank.phase = test["rank"] + local, 0, "start"
            order = json.dumps(dict(test, rank=rank.rank)).encode("ascii") + b"\n"
            os.write(self.order_fds[local], order)

    def take(self, message):
        rank = self.rank_of[message.child]
        if message.channel == "log":
            rank.log(message.line, self.report)
        elif message.channel == "end":
            rank.end()
            self.fail(rank)
        else:
            (kind, body), = json.loads(message.line).items()
            if kind == "phase":
                rank.number, rank.phase = body["number"], body["name"]
            elif kind == "failed":
                rank.failed = body
                self.fail(rank)
            elif kind == "part" and body["kind"] == "ready":
                self.ready(rank, body["port"])
            elif kind == "part" and body["kind"] == "answer":
                self.answer(rank, body)
            elif kind == "part":
                self.report.part(body)

    def ready(self, rank, port):
        self.ports[rank] = port
        if len(self.ports) == len(self.ranks):
            self.report.part({"kind": "ready", "id": self.node.arguments["id"], "backend": self.node.backend,
                              "ranks": len(self.ranks), "addresses": addresses(), "port": self.ports[self.ranks[0]]})

    def answer(self, rank, body):
        self.answers[rank] = body
        if len(self.answers) == self.test["local"]:
            answers = [self.answers[rank] for rank in self.ranks[:self.test["local"]]]
            self.close_test({"received": [answer.get("received") for answer in answers], "failed": None,
                             "busbw_bytes_per_second": answers[0].get("busbw"), "wrong": answers[0].get("wrong")})

    def fail(self, rank):
        """A rank has failed. Outside of a test that is the end of the step."""
        body = dict(rank.failed, rank=rank.rank, ranks=[other.state() for other in self.ranks],
                    stderr=list(rank.child.tail))
        body["message"] = "rank %d: %s" % (rank.rank, body["message"])
        if self.test is None:
            raise StepFailed(body)
        self.fail_test(body)

    def stop(self, number):
        if self.test and self.test["test"] == number:
            self.fail_test(failure("deadline", "given up", ranks=[rank.state() for rank in self.ranks]))

    def fail_test(self, body):
        if self.test:
            self.is_spent = True
            self.close_test({"failed": body})

    def close_test(self, body):
        self.report.part(dict(body, kind="test", test=self.test["test"], seconds=time.monotonic() - self.started,
                              packets=traffic_since(self.traffic)))
        self.test = None

    def close(self):
        for fd in self.order_fds:
            os.close(fd)
        for rank in self.ranks:
            rank.end_log(self.report)
            rank.child.kill()
            rank.child.close()


def addresses():
    """Addresses at which other nodes may reach this one: of the interfaces that variables name first, then of the default
    routes, then of all others. None of the loopback interface unless there is no other."""
    named = [name.lstrip("=^").split(":")[0] for variable in IFNAME_VARIABLES if not os.environ.get(variable, "").startswith("^")
             for name in os.environ.get(variable, "").split(",") if name]
    routes = [route["interface"] for route in default_routes()]

    def order(body):
        name = body["name"]
        return [not any(name.startswith(prefix) for prefix in named), name not in routes, "loopback" in (body["flags"] or [])]

    usable = [body for body in interface_bodies() if "up" in (body["flags"] or [])]
    found = [address.split("/")[0] for body in sorted(usable, key=order)
             for address in [body["ipv4"]] + body["ipv6"] if address and not address.startswith("fe80")]
    return found
