"""Step between-nodes: takes part in tests with other nodes, as `ncclcheck cluster` orders.

An order is one of
    {"test", "kind", "rank", "size", "local", "addresses", "port", ...}   starts a test of kind `pair`, `together` or
        `writes`: `local` of its `size` ranks are on this node, from `rank` on. Rank 0 is at this port of one of the
        addresses
    {"stop": NUMBER}      gives up the test of this number
    {"renew": VARIABLES}  restarts the ranks with these variables
    {"end": true}         ends the step
and an answer is a part of kind
    ready   id, backend, ranks, addresses, port: this node takes tests. It comes again when the ranks have restarted,
            which they also do after each test that failed
    alive   this node is in a test, or its ranks start. It comes every few seconds
    test    test, seconds, packets {sent, again}, failed, received (bytes per second, by local rank),
            bytes (of the all_reduce), busbw_bytes_per_second, wrong, left_out, writes (by pair of ports: ports,
            rate_gbits_per_s, received_bytes_per_second, tried (both ends were ready to connect)): the outcome of a
            test on this node. What was not measured is null
"""
import json
import math
import os
import time

from ncclcheck_probe.child import Channel, Child, process_state, watch
from ncclcheck_probe.driver import driver_body
from ncclcheck_probe.interfaces import default_routes, interface_bodies
from ncclcheck_probe.supervise import OTHERS_GRACE, RankProcess, blaming, culprit
from ncclcheck_probe.task import Skipped, StepFailed, failure
from ncclcheck_probe.traffic import traffic_now, traffic_since
from ncclcheck_probe.world import logging_variables

LONGEST_ORDER = 1 << 20  # bytes
ALIVE_PERIOD = 3  # seconds
IFNAME_VARIABLES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")


def probe_between_nodes(arguments, report):
    if arguments["orders"] is None:
        raise Skipped("it tests nodes against each other: run ncclcheck cluster")
    node = Node(arguments, report)
    while not node.is_over:
        team = Team(node)
        try:
            team.start()
            node.serve(team)
        finally:
            team.close()
    if node.lost:
        raise StepFailed(node.lost)
    return {"tests": node.tests}


class Node:
    """This node: its orders, and how its ranks start."""

    def __init__(self, arguments, report):
        self.arguments, self.report = arguments, report
        self.orders = Channel(arguments["orders"], LONGEST_ORDER)
        devices = driver_body()["devices"]
        self.backend, self.count = ("nccl", devices) if devices else ("gloo", 1)
        self.env = dict(os.environ)
        self.tests, self.is_over = 0, False
        self.renewals = 0  # lines of the log name it as their run
        self.lost = None  # the failure of a rank that no test has reported

    def serve(self, team):
        """Follows orders until the ranks have to restart, or the step ends."""
        for message in watch([rank.child for rank in team.ranks]):
            if message:
                team.take(message)
            else:
                team.judge(time.monotonic())
            for order in map(json.loads, self.orders.lines()):
                self.follow(order, team)
            # Without its starter the step would never get another order.
            self.is_over = self.is_over or not self.orders.open
            if self.is_over or team.is_spent:
                return

    def follow(self, order, team):
        if "test" in order:
            self.tests += 1
            team.begin(order)
        elif "stop" in order:
            team.stop(order["stop"])
        elif "renew" in order:
            self.env, team.is_spent = dict(os.environ, **order["renew"]), True
            self.renewals += 1
        else:
            self.is_over = True


class Team:
    """The ranks of this node, from their start to the first test that fails. In a test their numbers are those of the
    test, before it the local ones."""

    def __init__(self, node):
        self.node, self.report = node, node.report
        self.test, self.is_spent = None, False
        self.answers, self.ports = {}, {}
        self.ranks, self.rank_of, self.order_fds = [], {}, []
        self.first_failed = self.until = None
        self.said_alive = -math.inf

    def start(self):
        env = dict(self.node.env, LOCAL_WORLD_SIZE=str(self.node.count), **logging_variables("INIT,NET"))
        env.setdefault("OMP_NUM_THREADS", "1")
        for local in range(self.node.count):
            far, near = os.pipe()
            self.order_fds.append(near)
            try:
                child = Child(self.node.arguments["program"], "lasting-rank", {"backend": self.node.backend},
                              dict(env, LOCAL_RANK=str(local)), leads_group=False, with_log=True,
                              name="rank %d" % local, orders=far)
            finally:
                os.close(far)
            self.ranks.append(RankProcess(child, local, self.node.renewals))
            self.rank_of[child] = self.ranks[-1]

    def in_test(self):
        """The ranks that take part: those that the other nodes have no peer for stay out of it."""
        return self.ranks[:self.test["local"]] if self.test else self.ranks

    def is_awaited(self):
        return self.test or len(self.ports) < len(self.ranks)

    def begin(self, test):
        self.test, self.answers, self.started = test, {}, time.monotonic()
        self.traffic, self.said_alive = traffic_now(), self.started
        if self.node.lost:
            lost, self.node.lost = self.node.lost, None
            self.give_up(lost)
            return
        for local, rank in enumerate(self.in_test()):
            rank.rank, rank.number, rank.phase = test["rank"] + local, 0, "start"
            try:
                os.write(self.order_fds[local], json.dumps(dict(test, rank=rank.rank)).encode("ascii") + b"\n")
            except BrokenPipeError:
                pass  # it has died, which its next message says

    def take(self, message):
        rank = self.rank_of[message.child]
        if message.channel == "log":
            rank.log(message.line, self.report)
        elif message.channel == "end":
            rank.end()
            self.first_failed = self.first_failed or rank
        else:
            (kind, body), = json.loads(message.line).items()
            if kind == "phase":
                rank.number, rank.phase = body["number"], body["name"]
            elif kind == "failed":
                rank.failed = body
                self.first_failed = self.first_failed or rank
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
                              "ranks": len(self.ranks), "addresses": addresses(self.node.env),
                              "port": self.ports[self.ranks[0]]})

    def answer(self, rank, body):
        self.answers[rank] = body
        if len(self.answers) == len(self.in_test()):
            answers = [self.answers[rank] for rank in self.in_test()]
            self.close_test(received=[answer.get("received") for answer in answers],
                            bytes=answers[0].get("bytes"), busbw_bytes_per_second=answers[0].get("busbw"),
                            wrong=answers[0].get("wrong"), left_out=answers[0].get("left_out", []),
                            writes=answers[0].get("writes"),
                            **({"unread": answers[0]["unread"]} if "unread" in answers[0] else {}))

    def judge(self, now):
        """Reports that this node is alive while others wait for it, and a failure, once the other ranks have had time
        to fail too. Outside of a test the next one fails with it. The step fails if the ranks were never ready, because
        it would with the next ones, or if ranks die again without a test."""
        if self.is_awaited() and now > self.said_alive + ALIVE_PERIOD:
            self.report.part({"kind": "alive"})
            self.said_alive = now
        if not self.first_failed:
            return
        self.until = self.until or now + OTHERS_GRACE
        rank = culprit(self.ranks, self.first_failed)
        if now > self.until or rank.failed["how"] != "exception" or all(other.failed for other in self.in_test()):
            body = blaming(rank, self.in_test())
            if self.test:
                self.give_up(body)
            elif self.node.lost or len(self.ports) < len(self.ranks):
                raise StepFailed(body)
            else:
                self.node.lost, self.is_spent = body, True

    def stop(self, number):
        if self.test and self.test["test"] == number:
            rank = culprit(self.ranks, self.first_failed)
            ranks = self.in_test()
            self.give_up(blaming(rank, ranks) if rank else failure(
                "deadline", "it was stopped", ranks=[state_of_hung(other) for other in ranks]))

    def give_up(self, failed):
        self.is_spent = True
        self.close_test(failed=failed)

    def close_test(self, **known):
        body = dict.fromkeys(("failed", "received", "bytes", "busbw_bytes_per_second", "wrong", "left_out", "writes"))
        self.report.part(dict(body, kind="test", test=self.test["test"], seconds=time.monotonic() - self.started,
                              packets=traffic_since(self.traffic), **known))
        self.test = None

    def close(self):
        for fd in self.order_fds:
            os.close(fd)
        for rank in self.ranks:
            rank.end_log(self.report)
            rank.child.kill()
            rank.child.close()


def state_of_hung(rank):
    """The rank's entry in `ranks`. A rank that a signal stopped cannot say so itself."""
    state = rank.state()
    is_stopped = state["state"] == "running" and process_state(rank.child.process.pid)[:1] in ("T", "t")
    return dict(state, state="stopped") if is_stopped else state


def addresses(env):
    """Addresses at which other nodes may reach this one: those of the interfaces that variables name first, then of
    the default routes, then all others. Those of the loopback interface only if there are no others, because on another
    node they would lead to that node itself."""
    named = [name.lstrip("=").split(":")[0] for variable in IFNAME_VARIABLES
             for name in env.get(variable, "").split(",") if name and not env[variable].startswith("^")]
    routes = [route["interface"] for route in default_routes()]

    def order(body):
        name = body["name"]
        return not any(name.startswith(prefix) for prefix in named), name not in routes

    usable = sorted((body for body in interface_bodies() if "up" in (body["flags"] or [])), key=order)
    outer = outside_addresses(body for body in usable if "loopback" not in body["flags"])
    return outer or outside_addresses(usable)


def outside_addresses(bodies):
    """Without those of a link alone, which need its name."""
    return [address.split("/")[0] for body in bodies for address in [body["ipv4"]] + body["ipv6"]
            if address and not address.startswith("fe80")]
