"""A ping by verbs: two reliable queue pairs of this process, connected through the port, exchange data."""

import ctypes
import mmap
import os
import statistics
import time

from ncclcheck_probe.readings import Unread
from ncclcheck_probe.verbs import verbs_mtu_bytes, verbs_poll_cq, verbs_post_recv, verbs_post_send
from ncclcheck_probe.verbs import VERBS_ACCESS_LOCAL_WRITE, VERBS_ACCESS_REMOTE_WRITE, VERBS_QP_MASKS, VERBS_QPS_INIT
from ncclcheck_probe.verbs import VERBS_QPS_RTR, VERBS_QPS_RTS, VERBS_QPT_RC, VERBS_SEND_SIGNALED, VERBS_WC_STATUSES
from ncclcheck_probe.verbs import VERBS_WR_RDMA_WRITE, VERBS_WR_SEND
from ncclcheck_probe.verbs import VerbsQpAttr, VerbsQpCap, VerbsQpInitAttr, VerbsRecvWr, VerbsSendWr, VerbsSge

PING_BYTES = 4096
PING_ROUNDS = 100
PING_SECONDS = 20
PING_CQ_ENTRIES = 16
# 4.096 us * 2^14 = 67 ms to an acknowledgement, and 7 retries, since both queue pairs are near. A receiver that is not
# ready is retried 6 times; 7 would mean without limit.
PING_TIMEOUT, PING_RETRIES, PING_RNR_RETRIES = 14, 7, 6
# NCCL's values: 0.64 ms between retries of a receiver that is not ready, and no hop limit.
PING_RNR_TIMER, PING_HOP_LIMIT = 12, 255


def ping_body(verbs, context, pd, attributes, port, gid_index, gid):
    """
    Result of the ping: the steps that passed, the one that failed, and the times.

    `gid_index` and `gid` are None on InfiniBand, where the LID is the address.
    """
    ping = {"passed": [], "gid_index": gid_index, "rounds": PING_ROUNDS, "bytes": PING_BYTES}
    if gid_index is None:
        del ping["gid_index"]
    steps = PingSteps(verbs, context, pd, attributes, port, gid_index, gid)
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


class PingSteps:
    """The steps of the ping, from the creation of both queue pairs to verified data."""

    def __init__(self, verbs, context, pd, attributes, port, gid_index, gid):
        self.verbs, self.context, self.pd, self.attributes, self.port = verbs, context, pd, attributes, port
        self.gid_index, self.gid = gid_index, gid
        self.deadline = time.monotonic() + PING_SECONDS
        self.memory = mmap.mmap(-1, 2 * PING_BYTES)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.region = self.cq = None
        self.pair = []

    def all(self):
        """The steps in order, as (name, function)."""
        return [
            ("register", self.register), ("create_cq", self.create_cq), ("create_qp", self.create_qps),
            ("init", self.to_init), ("rtr", self.to_rtr), ("rts", self.to_rts), ("send", self.send_both_ways),
            ("rdma_write", self.write_across), ("time_sends", self.time_sends), ("time_writes", self.time_writes),
        ]

    def close(self):
        """Destroys all objects, ignoring errors."""
        for name, objects in (("ibv_destroy_qp", self.pair), ("ibv_destroy_cq", [self.cq]),
                              ("ibv_dereg_mr", [self.region])):
            for thing in objects:
                if thing:
                    self.verbs.library.function(name)(thing)

    def register(self):
        """Registers one region. Its first half belongs to the first queue pair, its second half to the other."""
        access = VERBS_ACCESS_LOCAL_WRITE | VERBS_ACCESS_REMOTE_WRITE
        self.region = self.verbs.new("ibv_reg_mr", self.pd, self.address, 2 * PING_BYTES, access)

    def create_cq(self):
        """Creates one completion queue for both queue pairs."""
        self.cq = self.verbs.new("ibv_create_cq", self.context, PING_CQ_ENTRIES, None, None, 0)

    def create_qps(self):
        """Creates both queue pairs."""
        for _ in range(2):
            wanted = VerbsQpInitAttr(send_cq=self.cq, recv_cq=self.cq, qp_type=VERBS_QPT_RC, cap=VerbsQpCap(
                max_send_wr=4, max_recv_wr=4, max_send_sge=1, max_recv_sge=1))
            self.pair.append(self.verbs.new("ibv_create_qp", self.pd, ctypes.byref(wanted)))

    def modify(self, qp, **attributes):
        """Calls ibv_modify_qp with exactly these attributes."""
        mask = sum(VERBS_QP_MASKS[name] for name in attributes if name != "ah_attr")
        changes = VerbsQpAttr(**{name: value for name, value in attributes.items() if name != "ah_attr"})
        if "ah_attr" in attributes:
            mask |= VERBS_QP_MASKS["ah_attr"]
            self.address_port(changes.ah_attr)
        self.verbs.do("ibv_modify_qp", qp, ctypes.byref(changes), mask)

    def address_port(self, route):
        """Sets the address of this port itself as the destination: its GID on RoCE, its LID on InfiniBand."""
        route.port_num = self.port
        if self.gid is None:
            route.dlid = self.attributes.lid
            return
        route.is_global = 1
        route.grh.sgid_index = self.gid_index
        route.grh.hop_limit = PING_HOP_LIMIT
        ctypes.memmove(ctypes.byref(route.grh.dgid), self.gid, len(self.gid))

    def to_init(self):
        """Moves both queue pairs from RESET to INIT."""
        for qp in self.pair:
            self.modify(qp, qp_state=VERBS_QPS_INIT, pkey_index=0, port_num=self.port,
                        qp_access_flags=VERBS_ACCESS_LOCAL_WRITE | VERBS_ACCESS_REMOTE_WRITE)

    def to_rtr(self):
        """Moves both from INIT to ready to receive, which fails if the GID index is unsuitable."""
        for qp, peer in zip(self.pair, reversed(self.pair)):
            self.modify(qp, qp_state=VERBS_QPS_RTR, ah_attr=None, path_mtu=self.attributes.active_mtu, rq_psn=0,
                        dest_qp_num=peer.contents.qp_num, max_dest_rd_atomic=1, min_rnr_timer=PING_RNR_TIMER)
        return {"path_mtu_bytes": verbs_mtu_bytes(self.attributes.active_mtu)}

    def to_rts(self):
        """Moves both from ready to receive to ready to send."""
        for qp in self.pair:
            self.modify(qp, qp_state=VERBS_QPS_RTS, timeout=PING_TIMEOUT, retry_cnt=PING_RETRIES,
                        rnr_retry=PING_RNR_RETRIES, sq_psn=0, max_rd_atomic=1)

    def half(self, side):
        """The memory of a side as a scatter/gather element."""
        return VerbsSge(addr=self.address + side * PING_BYTES, length=PING_BYTES, lkey=self.region.contents.lkey)

    def send(self, side):
        """SEND from a side to the other, which has posted a receive: two completions."""
        target, source = self.half(1 - side), self.half(side)
        verbs_post_recv(self.pair[1 - side], VerbsRecvWr(sg_list=ctypes.pointer(target), num_sge=1))
        verbs_post_send(self.pair[side], VerbsSendWr(
            sg_list=ctypes.pointer(source), num_sge=1, opcode=VERBS_WR_SEND, send_flags=VERBS_SEND_SIGNALED))
        self.complete(2)

    def write(self, side):
        """RDMA WRITE from a side into the memory of the other: one completion."""
        source = self.half(side)
        verbs_post_send(self.pair[side], VerbsSendWr(
            sg_list=ctypes.pointer(source), num_sge=1, opcode=VERBS_WR_RDMA_WRITE, send_flags=VERBS_SEND_SIGNALED,
            remote_addr=self.address + (1 - side) * PING_BYTES, rkey=self.region.contents.rkey))
        self.complete(1)

    def complete(self, count):
        """Waits for `count` completions, all of which must succeed."""
        while count:
            completion = verbs_poll_cq(self.cq)
            if completion is None:
                if time.monotonic() > self.deadline:
                    raise Unread("no completion within %d s" % PING_SECONDS)
                continue
            if completion.status != 0:
                raise Unread("completion with error %d IBV_WC_%s, vendor error 0x%x" % (
                    completion.status, VERBS_WC_STATUSES.get(completion.status, "?"), completion.vendor_err))
            count -= 1

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
