"""A ping by verbs: two reliable queue pairs of this process, connected through the port, exchange data."""

import ctypes
import os
import statistics
import time

from ncclcheck_probe.queue_pairs import QueuePairs
from ncclcheck_probe.readings import Unread
from ncclcheck_probe.verbs import verbs_mtu_bytes, verbs_post_recv, verbs_post_send
from ncclcheck_probe.verbs import VERBS_SEND_SIGNALED, VERBS_WR_SEND, VerbsRecvWr, VerbsSendWr

PING_BYTES = 4096
PING_ROUNDS = 100
PING_CQ_ENTRIES = 16


def ping_body(verbs, context, pd, port):
    """Result of the ping: the steps that passed, the one that failed, and the times."""
    ping = {"passed": [], "gid_index": port.gid_index, "rounds": PING_ROUNDS, "bytes": PING_BYTES}
    if port.gid_index is None:
        del ping["gid_index"]
    steps = PingSteps(verbs, context, pd, port, 2 * PING_BYTES)
    try:
        for name, step in steps.all():
            ping["failed"] = name
            ping.update(step() or {})
            ping["passed"].append(name)
        del ping["failed"]
    except Unread as why:
        ping["error"] = str(why)
    finally:
        steps.close()
    return ping


class PingSteps(QueuePairs):
    """The steps of the ping, from the creation of both queue pairs to verified data. The first half of the memory
    belongs to the first queue pair, its second half to the other."""

    def all(self):
        """The steps in order, as (name, function)."""
        return [
            ("register", self.register), ("create_cq", lambda: self.create_cq(PING_CQ_ENTRIES)),
            ("create_qp", self.create_both), ("init", self.to_init), ("rtr", self.to_rtr), ("rts", self.to_rts),
            ("send", self.send_both_ways), ("rdma_write", self.write_across), ("time_sends", self.time_sends),
            ("time_writes", self.time_writes),
        ]

    def create_both(self):
        """Creates both queue pairs."""
        for _ in range(2):
            self.create_qp()

    def to_init(self):
        """Moves both queue pairs to INIT."""
        for qp in self.pairs:
            self.init(qp)

    def to_rtr(self):
        """Connects both with each other, through this port itself."""
        attributes = self.port.attributes
        for qp, peer in zip(self.pairs, reversed(self.pairs)):
            self.ready_to_receive(qp, peer.contents.qp_num, attributes.lid, self.port.gid, attributes.active_mtu)
        return {"path_mtu_bytes": verbs_mtu_bytes(attributes.active_mtu)}

    def to_rts(self):
        """Makes both ready to send."""
        for qp in self.pairs:
            self.ready_to_send(qp)

    def half(self, side):
        """The memory of a side as a scatter/gather element."""
        return self.part(side * PING_BYTES, PING_BYTES)

    def send(self, side):
        """SEND from a side to the other, which has posted a receive: two completions."""
        target, source = self.half(1 - side), self.half(side)
        verbs_post_recv(self.pairs[1 - side], VerbsRecvWr(sg_list=ctypes.pointer(target), num_sge=1))
        verbs_post_send(self.pairs[side], VerbsSendWr(
            sg_list=ctypes.pointer(source), num_sge=1, opcode=VERBS_WR_SEND, send_flags=VERBS_SEND_SIGNALED))
        self.complete(2)

    def write(self, side):
        """RDMA WRITE from a side into the memory of the other: one completion."""
        self.post_write(self.pairs[side], self.half(side), self.address + (1 - side) * PING_BYTES,
                        self.region.contents.rkey)
        self.complete(1)

    def pass_data(self, operation):
        """Sends random bytes both ways, and compares the received bytes."""
        for side in range(2):
            data = os.urandom(PING_BYTES)
            self.memory[:] = data + bytes(PING_BYTES) if side == 0 else bytes(PING_BYTES) + data
            operation(side)
            if self.memory[:] != data + data:
                raise Unread("the received bytes differ from those sent")

    def send_both_ways(self):
        """Checks SEND in both directions."""
        self.pass_data(self.send)

    def write_across(self):
        """Checks RDMA WRITE in both directions."""
        self.pass_data(self.write)

    def time_sends(self):
        """The median time of one SEND, including Python's overhead."""
        return {"send_median_us": self.median_us(self.send)}

    def time_writes(self):
        """The median time of one RDMA WRITE, including Python's overhead."""
        return {"write_median_us": self.median_us(self.write)}

    def median_us(self, operation):
        """The median time of `operation` in microseconds."""
        times = []
        for number in range(PING_ROUNDS):
            started = time.perf_counter()
            operation(number % 2)
            times.append(time.perf_counter() - started)
        return round(statistics.median(times) * 1e6, 1)
