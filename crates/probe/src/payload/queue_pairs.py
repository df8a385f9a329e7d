"""Reliable queue pairs of one port, which share one region of memory and one completion queue."""

import collections
import ctypes
import mmap
import time

from ncclcheck_probe.readings import Unread
from ncclcheck_probe.verbs import verbs_poll_cq, verbs_post_send
from ncclcheck_probe.verbs import VERBS_ACCESS_LOCAL_WRITE, VERBS_ACCESS_REMOTE_WRITE, VERBS_QP_MASKS, VERBS_QPS_INIT
from ncclcheck_probe.verbs import VERBS_QPS_RTR, VERBS_QPS_RTS, VERBS_QPT_RC, VERBS_SEND_SIGNALED, VERBS_WC_STATUSES
from ncclcheck_probe.verbs import VERBS_WR_RDMA_WRITE, VerbsAhAttr, VerbsQpAttr, VerbsQpCap, VerbsQpInitAttr
from ncclcheck_probe.verbs import VerbsSendWr, VerbsSge

QP_RETRIES, QP_RNR_RETRIES = 7, 6  # a receiver that is not ready is retried 6 times; 7 would mean without limit
# NCCL's values: 0.64 ms between retries of a receiver that is not ready, and no hop limit.
QP_RNR_TIMER, QP_HOP_LIMIT = 12, 255

# attributes: what ibv_query_port returns. gid_index and gid are None on InfiniBand, where the LID is the address
PortAddress = collections.namedtuple("PortAddress", "attributes number gid_index gid")


class QueuePairs:
    """Queue pairs, from their creation to their end. Every method raises Unread if a verb fails."""

    depth = 4  # requests that a queue pair takes at once
    timeout = 14  # 4.096 us * 2^14 = 67 ms to an acknowledgement
    patience = 20  # seconds for a completion

    def __init__(self, verbs, context, pd, port, size):
        self.verbs, self.context, self.pd, self.port, self.size = verbs, context, pd, port, size
        self.memory = mmap.mmap(-1, size)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.region = self.cq = None
        self.pairs = []
        self.wait()

    def close(self):
        """Destroys all objects, ignoring errors."""
        for name, objects in (("ibv_destroy_qp", self.pairs), ("ibv_destroy_cq", [self.cq]),
                              ("ibv_dereg_mr", [self.region])):
            for thing in objects:
                if thing:
                    self.verbs.library.function(name)(thing)

    def register(self):
        """Registers the memory."""
        access = VERBS_ACCESS_LOCAL_WRITE | VERBS_ACCESS_REMOTE_WRITE
        self.region = self.verbs.new("ibv_reg_mr", self.pd, self.address, self.size, access)

    def create_cq(self, entries):
        """Creates the completion queue."""
        self.cq = self.verbs.new("ibv_create_cq", self.context, entries, None, None, 0)

    def create_qp(self):
        """Creates one more queue pair."""
        wanted = VerbsQpInitAttr(send_cq=self.cq, recv_cq=self.cq, qp_type=VERBS_QPT_RC, cap=VerbsQpCap(
            max_send_wr=self.depth, max_recv_wr=self.depth, max_send_sge=1, max_recv_sge=1))
        self.pairs.append(self.verbs.new("ibv_create_qp", self.pd, ctypes.byref(wanted)))

    def modify(self, qp, **attributes):
        """Calls ibv_modify_qp with exactly these attributes."""
        self.verbs.do("ibv_modify_qp", qp, ctypes.byref(VerbsQpAttr(**attributes)),
                      sum(VERBS_QP_MASKS[name] for name in attributes))

    def init(self, qp):
        """Moves a queue pair from RESET to INIT."""
        self.modify(qp, qp_state=VERBS_QPS_INIT, pkey_index=0, port_num=self.port.number,
                    qp_access_flags=VERBS_ACCESS_LOCAL_WRITE | VERBS_ACCESS_REMOTE_WRITE)

    def ready_to_receive(self, qp, number, lid, gid, mtu):
        """Connects it with the queue pair of this number and address, which fails if the GID index is unsuitable."""
        route = VerbsAhAttr(port_num=self.port.number)
        if gid is None:
            route.dlid = lid
        else:
            route.is_global, route.grh.sgid_index, route.grh.hop_limit = 1, self.port.gid_index, QP_HOP_LIMIT
            ctypes.memmove(ctypes.byref(route.grh.dgid), gid, len(gid))
        self.modify(qp, qp_state=VERBS_QPS_RTR, ah_attr=route, path_mtu=mtu, rq_psn=0, dest_qp_num=number,
                    max_dest_rd_atomic=1, min_rnr_timer=QP_RNR_TIMER)

    def ready_to_send(self, qp):
        """Moves it from ready to receive to ready to send."""
        self.modify(qp, qp_state=VERBS_QPS_RTS, timeout=self.timeout, retry_cnt=QP_RETRIES, rnr_retry=QP_RNR_RETRIES,
                    sq_psn=0, max_rd_atomic=1)

    def part(self, offset, length):
        """A part of the memory as a scatter/gather element."""
        return VerbsSge(addr=self.address + offset, length=length, lkey=self.region.contents.lkey)

    def post_write(self, qp, source, address, rkey):
        """Posts an RDMA WRITE of a part of the memory."""
        verbs_post_send(qp, VerbsSendWr(
            sg_list=ctypes.pointer(source), num_sge=1, opcode=VERBS_WR_RDMA_WRITE, send_flags=VERBS_SEND_SIGNALED,
            remote_addr=address, rkey=rkey))

    def wait(self):
        """Starts the time in which completions must come."""
        self.deadline = time.monotonic() + self.patience

    def complete(self, count):
        """Waits for `count` completions, all of which must succeed."""
        while count:
            completion = verbs_poll_cq(self.cq)
            if completion is None:
                if time.monotonic() > self.deadline:
                    raise Unread("no completion within %d s" % self.patience)
                continue
            if completion.status != 0:
                raise Unread("completion with error %d IBV_WC_%s, vendor error 0x%x" % (
                    completion.status, VERBS_WC_STATUSES.get(completion.status, "?"), completion.vendor_err))
            count -= 1
