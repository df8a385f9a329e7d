"""RDMA WRITEs between this node and another one, by verbs alone: each active port in turn, one way and then the other.

Neither a GPU nor NCCL has a part in them, so that they show what the NICs and their cables carry.
"""

import contextlib
import json
import math
import os
import statistics
import time
import zlib

from ncclcheck_probe.infiniband import rdma_port_numbers
from ncclcheck_probe.queue_pairs import QueuePairs
from ncclcheck_probe.rdma import RdmaDevice, RdmaHost
from ncclcheck_probe.readings import Readings, Unread

# What is sent and what comes fit into 8 MiB of locked memory, the limit of many systems, with the queues.
WRITE_BYTES = 2 << 20
# Several, because a bond of two ports gives each queue pair one of them.
WRITE_PAIRS, WRITES_UNDER_WAY = 4, 16
WRITE_SECONDS, WRITE_BATCHES, MOST_WRITES = 0.1, 3, 2000


class PeerFailed(Exception):
    """The other node could not do its part. Its own answer says why."""


class Peers:
    """Both nodes of a test, which take each step at the same time."""

    def __init__(self, store, rank):
        self.store, self.rank, self.steps = store, rank, 0

    def step(self, function, *arguments):
        """Calls the function, and returns what the other node's call in this step returned. If one of them raises
        Unread, the step fails on both nodes."""
        value = error = None
        try:
            value = function(*arguments)
        except Unread as why:
            error = why
        self.steps += 1
        self.store.set("step %d of %d" % (self.steps, self.rank), json.dumps([error is None, value]))
        is_done, theirs = json.loads(self.store.get("step %d of %d" % (self.steps, 1 - self.rank)).decode("ascii"))
        if error:
            raise error
        if not is_done:
            raise PeerFailed
        return theirs


class PortWrites(QueuePairs):
    """This node's end of a port's test. The first half of the memory is sent, the second half takes what comes."""

    depth = WRITES_UNDER_WAY
    timeout = 18  # 1 s, as NCCL waits
    patience = 5

    def __init__(self, device, context, body):
        super().__init__(device.host.verbs, context, None, None, 2 * WRITE_BYTES)
        self.device, self.body, self.peer = device, body, None
        self.is_tried = False

    def create(self, until):
        """What the other end needs in order to connect."""
        if time.monotonic() > until:
            raise Unread("no time was left for it")
        self.port = self.device.address(self.context, self.body)
        self.pd = self.verbs.new("ibv_alloc_pd", self.context)
        self.register()
        self.create_cq(WRITES_UNDER_WAY)
        for _ in range(WRITE_PAIRS):
            self.create_qp()
            self.init(self.pairs[-1])
        attributes, gid = self.port.attributes, self.port.gid
        return {"pairs": [qp.contents.qp_num for qp in self.pairs], "lid": attributes.lid, "gid": gid and gid.hex(),
                "mtu": attributes.active_mtu, "address": self.address + WRITE_BYTES, "rkey": self.region.contents.rkey}

    def close(self):
        super().close()
        if self.pd:
            self.verbs.library.function("ibv_dealloc_pd")(self.pd)

    def connect(self, peer):
        """Connects with the other end."""
        if (peer["gid"] is None) != (self.port.gid is None):
            raise Unread("one of both ports is of InfiniBand, the other of Ethernet")
        self.peer, gid = peer, peer["gid"] and bytes.fromhex(peer["gid"])
        for qp, number in zip(self.pairs, peer["pairs"]):
            self.ready_to_receive(qp, number, peer["lid"], gid, min(peer["mtu"], self.port.attributes.active_mtu))
            self.ready_to_send(qp)

    def send(self):
        """(bytes per second, checksum) of what was written to the other end, by the median of batches."""
        data = os.urandom(WRITE_BYTES)
        self.memory[:WRITE_BYTES] = data
        calls = max(1, min(MOST_WRITES, math.ceil(WRITE_SECONDS / self.seconds_of(1))))
        seconds = statistics.median(self.seconds_of(calls) for _ in range(WRITE_BATCHES))
        return calls * WRITE_BYTES / seconds, zlib.crc32(data)

    def seconds_of(self, calls):
        """Seconds of this many writes."""
        source = self.part(0, WRITE_BYTES)
        started = time.perf_counter()
        for number in range(calls):
            if number >= WRITES_UNDER_WAY:
                self.complete_next()
            self.post_write(self.pairs[number % WRITE_PAIRS], source, self.peer["address"], self.peer["rkey"])
        for _ in range(min(calls, WRITES_UNDER_WAY)):
            self.complete_next()
        return time.perf_counter() - started

    def complete_next(self):
        self.wait()
        self.complete(1)

    def verify(self, checksum):
        """Checks what came."""
        if zlib.crc32(self.memory[WRITE_BYTES:]) != checksum:
            raise Unread("the received bytes differ from those sent")


def writes_answer(store, test):
    """{writes}: of each pair of ports, what this node received. Null with the reason if RDMA cannot be tried here."""
    peers, until, answer = Peers(store, test["rank"]), time.monotonic() + test["seconds"], Readings(writes=None)
    with contextlib.ExitStack() as stack:
        try:
            own = active_ports(stack)
        except Unread as why:
            answer.give_up(["writes"], why)
            own = {}
        names = [list(own), peers.step(list, own)]
        pairs = paired(*(names if peers.rank == 0 else reversed(names)))
        if pairs:
            answer.fields["writes"] = [port_body(peers, own[pair[peers.rank]], pair, until) for pair in pairs]
    return answer.body()


def active_ports(stack):
    """{name of an active port: arguments of PortWrites}. `stack` keeps its device open."""
    host, closed, found = RdmaHost(), [], {}
    for name in host.sysfs_names:
        device = RdmaDevice(host, name)
        context = device.open(stack)
        if context is None:
            closed.append("%s: %s" % (name, device.readings.fields["closed_because"]))
            continue
        for number in rdma_port_numbers(name):
            body = device.port(number, context, None)
            if (body["verbs"] or {}).get("state") == "ACTIVE":
                found["%s:%d" % (name, number)] = device, context, body
    if not found:
        raise Unread("; ".join(closed) or "it has no RDMA device with an active port")
    return found


def paired(first, second):
    """The ports of both nodes that are tested with each other: those of the same name, else those in the same place."""
    return [(name, name) for name in first if name in second] or list(zip(first, second))


def port_body(peers, port, names, until):
    """The outcome for one pair of ports."""
    body = Readings(ports=names, rate_gbits_per_s=port[-1]["rate_gbits_per_s"])
    end = PortWrites(*port)
    try:
        body.read("received_bytes_per_second", received_rate, peers, end, until)
    except PeerFailed:
        body.fields["received_bytes_per_second"] = None
    finally:
        end.close()
    body.fields["tried"] = end.is_tried
    return body.body()


def received_rate(peers, end, until):
    """What this node received in bytes per second. The first node writes first."""
    peer = peers.step(end.create, until)
    end.is_tried = True
    peers.step(end.connect, peer)
    received = None
    for sender in range(2):
        sent = peers.step(end.send if sender == peers.rank else bool)
        peers.step(*((bool,) if sender == peers.rank else (end.verify, sent[1])))
        received = received if sender == peers.rank else sent[0]
    return received
