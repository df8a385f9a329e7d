"""
libibverbs through ctypes: makes the calls that NCCL makes, so that their results are those that NCCL would get.

Structures are those of infiniband/verbs.h of rdma-core 44, with the layout of IBVERBS_1.1. Later releases keep that
layout: their additions come after the members declared here, or are in other functions.
"""

import contextlib
import ctypes
import fcntl
import os

from ncclcheck_probe.foreign import ForeignLibrary
from ncclcheck_probe.readings import Unread, errno_name, first_readable

# NCCL tries these names in this order (src/misc/ibvsymbols.cc).
VERBS_SONAMES = ["libibverbs.so", "libibverbs.so.1"]

VERBS_PORT_STATES = {1: "DOWN", 2: "INIT", 3: "ARMED", 4: "ACTIVE", 5: "ACTIVE_DEFER"}
VERBS_LINK_LAYERS = {0: "unspecified", 1: "InfiniBand", 2: "Ethernet"}
VERBS_ACCESS_LOCAL_WRITE = 1
VERBS_ACCESS_REMOTE_WRITE = 2
VERBS_ACCESS_REMOTE_READ = 4
VERBS_QPT_RC = 2
VERBS_QPS_INIT, VERBS_QPS_RTR, VERBS_QPS_RTS = 1, 2, 3
VERBS_WR_RDMA_WRITE, VERBS_WR_SEND = 0, 2
VERBS_SEND_SIGNALED = 2
VERBS_QP_MASKS = {
    "qp_state": 1 << 0, "qp_access_flags": 1 << 3, "pkey_index": 1 << 4, "port_num": 1 << 5, "ah_attr": 1 << 7,
    "path_mtu": 1 << 8, "timeout": 1 << 9, "retry_cnt": 1 << 10, "rnr_retry": 1 << 11, "rq_psn": 1 << 12,
    "max_rd_atomic": 1 << 13, "min_rnr_timer": 1 << 15, "sq_psn": 1 << 16, "max_dest_rd_atomic": 1 << 17,
    "dest_qp_num": 1 << 20,
}
VERBS_WC_STATUSES = {
    0: "SUCCESS", 1: "LOC_LEN_ERR", 2: "LOC_QP_OP_ERR", 3: "LOC_EEC_OP_ERR", 4: "LOC_PROT_ERR", 5: "WR_FLUSH_ERR",
    6: "MW_BIND_ERR", 7: "BAD_RESP_ERR", 8: "LOC_ACCESS_ERR", 9: "REM_INV_REQ_ERR", 10: "REM_ACCESS_ERR",
    11: "REM_OP_ERR", 12: "RETRY_EXC_ERR", 13: "RNR_RETRY_EXC_ERR", 14: "LOC_RDD_VIOL_ERR", 15: "REM_INV_RD_REQ_ERR",
    16: "REM_ABORT_ERR", 17: "INV_EECN_ERR", 18: "INV_EEC_STATE_ERR", 19: "FATAL_ERR", 20: "RESP_TIMEOUT_ERR",
    21: "GENERAL_ERR",
}


class VerbsDeviceAttr(ctypes.Structure):
    """struct ibv_device_attr. GUIDs are in network byte order."""
    _fields_ = [("fw_ver", ctypes.c_char * 64), ("node_guid", ctypes.c_ubyte * 8),
                ("sys_image_guid", ctypes.c_ubyte * 8), ("max_mr_size", ctypes.c_uint64),
                ("page_size_cap", ctypes.c_uint64)] \
        + [(name, ctypes.c_uint32) for name in ("vendor_id", "vendor_part_id", "hw_ver")] \
        + [(name, ctypes.c_int) for name in (
            "max_qp", "max_qp_wr", "device_cap_flags", "max_sge", "max_sge_rd", "max_cq", "max_cqe", "max_mr", "max_pd",
            "max_qp_rd_atom", "max_ee_rd_atom", "max_res_rd_atom", "max_qp_init_rd_atom", "max_ee_init_rd_atom",
            "atomic_cap", "max_ee", "max_rdd", "max_mw", "max_raw_ipv6_qp", "max_raw_ethy_qp", "max_mcast_grp",
            "max_mcast_qp_attach", "max_total_mcast_qp_attach", "max_ah", "max_fmr", "max_map_per_fmr", "max_srq",
            "max_srq_wr", "max_srq_sge")] \
        + [("max_pkeys", ctypes.c_uint16), ("local_ca_ack_delay", ctypes.c_uint8), ("phys_port_cnt", ctypes.c_uint8)]


class VerbsPortAttr(ctypes.Structure):
    """struct ibv_port_attr. The symbol ibv_query_port fills it up to `flags`; the header's macro adds the rest."""
    _fields_ = [(name, ctypes.c_int) for name in ("state", "max_mtu", "active_mtu", "gid_tbl_len")] \
        + [(name, ctypes.c_uint32) for name in ("port_cap_flags", "max_msg_sz", "bad_pkey_cntr", "qkey_viol_cntr")] \
        + [(name, ctypes.c_uint16) for name in ("pkey_tbl_len", "lid", "sm_lid")] \
        + [(name, ctypes.c_uint8) for name in (
            "lmc", "max_vl_num", "sm_sl", "subnet_timeout", "init_type_reply", "active_width", "active_speed",
            "phys_state", "link_layer", "flags")] \
        + [("port_cap_flags2", ctypes.c_uint16)]


class VerbsOps(ctypes.Structure):
    """struct ibv_context_ops. ibv_post_send and its like are not symbols: they are inline and call these members."""
    _fields_ = [(name, ctypes.c_void_p) for name in (
        "_compat_query_device", "_compat_query_port", "_compat_alloc_pd", "_compat_dealloc_pd", "_compat_reg_mr",
        "_compat_rereg_mr", "_compat_dereg_mr", "alloc_mw", "bind_mw", "dealloc_mw", "_compat_create_cq", "poll_cq",
        "req_notify_cq", "_compat_cq_event", "_compat_resize_cq", "_compat_destroy_cq", "_compat_create_srq",
        "_compat_modify_srq", "_compat_query_srq", "_compat_destroy_srq", "post_srq_recv", "_compat_create_qp",
        "_compat_query_qp", "_compat_modify_qp", "_compat_destroy_qp", "post_send", "post_recv", "_compat_create_ah",
        "_compat_destroy_ah", "_compat_attach_mcast", "_compat_detach_mcast", "_compat_async_event")]


class VerbsContext(ctypes.Structure):
    """The first members of struct ibv_context."""
    _fields_ = [("device", ctypes.c_void_p), ("ops", VerbsOps)]


class VerbsCq(ctypes.Structure):
    """The first members of struct ibv_cq."""
    _fields_ = [("context", ctypes.POINTER(VerbsContext))]


class VerbsQp(ctypes.Structure):
    """The first members of struct ibv_qp."""
    _fields_ = [("context", ctypes.POINTER(VerbsContext)), ("qp_context", ctypes.c_void_p), ("pd", ctypes.c_void_p),
                ("send_cq", ctypes.c_void_p), ("recv_cq", ctypes.c_void_p), ("srq", ctypes.c_void_p),
                ("handle", ctypes.c_uint32), ("qp_num", ctypes.c_uint32)]


class VerbsMr(ctypes.Structure):
    """struct ibv_mr."""
    _fields_ = [("context", ctypes.c_void_p), ("pd", ctypes.c_void_p), ("addr", ctypes.c_void_p),
                ("length", ctypes.c_size_t), ("handle", ctypes.c_uint32), ("lkey", ctypes.c_uint32),
                ("rkey", ctypes.c_uint32)]


class VerbsQpCap(ctypes.Structure):
    """struct ibv_qp_cap."""
    _fields_ = [(name, ctypes.c_uint32) for name in
                ("max_send_wr", "max_recv_wr", "max_send_sge", "max_recv_sge", "max_inline_data")]


class VerbsQpInitAttr(ctypes.Structure):
    """struct ibv_qp_init_attr."""
    _fields_ = [("qp_context", ctypes.c_void_p), ("send_cq", ctypes.POINTER(VerbsCq)),
                ("recv_cq", ctypes.POINTER(VerbsCq)), ("srq", ctypes.c_void_p), ("cap", VerbsQpCap),
                ("qp_type", ctypes.c_int), ("sq_sig_all", ctypes.c_int)]


class VerbsGlobalRoute(ctypes.Structure):
    """struct ibv_global_route."""
    _fields_ = [("dgid", ctypes.c_uint64 * 2), ("flow_label", ctypes.c_uint32), ("sgid_index", ctypes.c_uint8),
                ("hop_limit", ctypes.c_uint8), ("traffic_class", ctypes.c_uint8)]


class VerbsAhAttr(ctypes.Structure):
    """struct ibv_ah_attr."""
    _fields_ = [("grh", VerbsGlobalRoute), ("dlid", ctypes.c_uint16)] \
        + [(name, ctypes.c_uint8) for name in ("sl", "src_path_bits", "static_rate", "is_global", "port_num")]


class VerbsQpAttr(ctypes.Structure):
    """struct ibv_qp_attr."""
    _fields_ = [(name, ctypes.c_int) for name in ("qp_state", "cur_qp_state", "path_mtu", "path_mig_state")] \
        + [(name, ctypes.c_uint32) for name in ("qkey", "rq_psn", "sq_psn", "dest_qp_num", "qp_access_flags")] \
        + [("cap", VerbsQpCap), ("ah_attr", VerbsAhAttr), ("alt_ah_attr", VerbsAhAttr), ("pkey_index", ctypes.c_uint16),
           ("alt_pkey_index", ctypes.c_uint16)] \
        + [(name, ctypes.c_uint8) for name in (
            "en_sqd_async_notify", "sq_draining", "max_rd_atomic", "max_dest_rd_atomic", "min_rnr_timer", "port_num",
            "timeout", "retry_cnt", "rnr_retry", "alt_port_num", "alt_timeout")] \
        + [("rate_limit", ctypes.c_uint32)]


class VerbsSge(ctypes.Structure):
    """struct ibv_sge."""
    _fields_ = [("addr", ctypes.c_uint64), ("length", ctypes.c_uint32), ("lkey", ctypes.c_uint32)]


class VerbsSendWr(ctypes.Structure):
    """struct ibv_send_wr, with the member `rdma` of its union `wr`. `rest` is for other operations."""
    _fields_ = [("wr_id", ctypes.c_uint64), ("next", ctypes.c_void_p), ("sg_list", ctypes.POINTER(VerbsSge)),
                ("num_sge", ctypes.c_int), ("opcode", ctypes.c_int), ("send_flags", ctypes.c_uint),
                ("imm_data", ctypes.c_uint32), ("remote_addr", ctypes.c_uint64), ("rkey", ctypes.c_uint32),
                ("rest", ctypes.c_uint64 * 9)]


class VerbsRecvWr(ctypes.Structure):
    """struct ibv_recv_wr."""
    _fields_ = [("wr_id", ctypes.c_uint64), ("next", ctypes.c_void_p), ("sg_list", ctypes.POINTER(VerbsSge)),
                ("num_sge", ctypes.c_int)]


class VerbsWc(ctypes.Structure):
    """struct ibv_wc."""
    _fields_ = [("wr_id", ctypes.c_uint64), ("status", ctypes.c_int), ("opcode", ctypes.c_int)] \
        + [(name, ctypes.c_uint32) for name in
           ("vendor_err", "byte_len", "imm_data", "qp_num", "src_qp", "wc_flags")] \
        + [("pkey_index", ctypes.c_uint16), ("slid", ctypes.c_uint16), ("sl", ctypes.c_uint8),
           ("dlid_path_bits", ctypes.c_uint8)]


VERBS_CONTEXT = ctypes.POINTER(VerbsContext)
VERBS_DEVICE = ctypes.c_void_p
VERBS_PD = ctypes.c_void_p
VERBS_CQ = ctypes.POINTER(VerbsCq)
VERBS_QP = ctypes.POINTER(VerbsQp)
VERBS_MR = ctypes.POINTER(VerbsMr)

VERBS_SIGNATURES = {
    "ibv_get_device_list": [ctypes.POINTER(VERBS_DEVICE), ctypes.POINTER(ctypes.c_int)],
    "ibv_free_device_list": [None, ctypes.POINTER(VERBS_DEVICE)],
    "ibv_get_device_name": [ctypes.c_char_p, VERBS_DEVICE],
    "ibv_open_device": [VERBS_CONTEXT, VERBS_DEVICE],
    "ibv_close_device": [ctypes.c_int, VERBS_CONTEXT],
    "ibv_query_device": [ctypes.c_int, VERBS_CONTEXT, ctypes.POINTER(VerbsDeviceAttr)],
    "ibv_query_port": [ctypes.c_int, VERBS_CONTEXT, ctypes.c_uint8, ctypes.POINTER(VerbsPortAttr)],
    "ibv_query_gid": [ctypes.c_int, VERBS_CONTEXT, ctypes.c_uint8, ctypes.c_int, ctypes.c_void_p],
    "ibv_query_pkey": [ctypes.c_int, VERBS_CONTEXT, ctypes.c_uint8, ctypes.c_int, ctypes.c_void_p],
    "ibv_alloc_pd": [VERBS_PD, VERBS_CONTEXT],
    "ibv_dealloc_pd": [ctypes.c_int, VERBS_PD],
    "ibv_create_cq": [VERBS_CQ, VERBS_CONTEXT, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int],
    "ibv_destroy_cq": [ctypes.c_int, VERBS_CQ],
    "ibv_reg_mr": [VERBS_MR, VERBS_PD, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int],
    "ibv_reg_dmabuf_mr": [VERBS_MR, VERBS_PD, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_int,
                          ctypes.c_int],
    "ibv_dereg_mr": [ctypes.c_int, VERBS_MR],
    "ibv_create_qp": [VERBS_QP, VERBS_PD, ctypes.POINTER(VerbsQpInitAttr)],
    "ibv_modify_qp": [ctypes.c_int, VERBS_QP, ctypes.POINTER(VerbsQpAttr), ctypes.c_int],
    "ibv_destroy_qp": [ctypes.c_int, VERBS_QP],
}
VERBS_POST_SEND = ctypes.CFUNCTYPE(ctypes.c_int, VERBS_QP, ctypes.POINTER(VerbsSendWr), ctypes.c_void_p, use_errno=True)
VERBS_POST_RECV = ctypes.CFUNCTYPE(ctypes.c_int, VERBS_QP, ctypes.POINTER(VerbsRecvWr), ctypes.c_void_p, use_errno=True)
VERBS_POLL_CQ = ctypes.CFUNCTYPE(ctypes.c_int, VERBS_CQ, ctypes.c_int, ctypes.POINTER(VerbsWc), use_errno=True)


class VerbsError(Unread):
    """A verb that failed; `error` is the name of its errno."""

    def __init__(self, function, number):
        self.error = errno_name(number)
        super().__init__("%s: %s: %s" % (function, self.error, os.strerror(number)))


class Verbs:
    """libibverbs. Every method raises Unread (mostly VerbsError) if a verb fails."""

    def __init__(self):
        self.library = first_readable(*[lambda name=name: ForeignLibrary(name, VERBS_SIGNATURES)
                                        for name in VERBS_SONAMES])

    def new(self, name, *arguments):
        """Calls a function that returns a pointer, or NULL with errno on failure."""
        function = self.library.function(name)
        ctypes.set_errno(0)
        pointer = function(*arguments)
        if not pointer:
            raise VerbsError(name, ctypes.get_errno())
        return pointer

    def do(self, name, *arguments):
        """Calls a function that returns 0, an errno, or -1 with errno."""
        function = self.library.function(name)
        ctypes.set_errno(0)
        verbs_check(name, function(*arguments))

    def device_list(self):
        """
        ({name: ibv_device}, lines that libibverbs wrote to standard error in the meantime).

        The list stays allocated, so that the devices live as long as this process.
        """
        os.environ["IBV_SHOW_WARNINGS"] = "1"  # reports devices that no provider claims
        count = ctypes.c_int(0)
        with captured_stderr() as lines:
            devices = self.new("ibv_get_device_list", ctypes.byref(count))
        get_name = self.library.function("ibv_get_device_name")
        return {get_name(devices[i]).decode("utf-8", "replace"): devices[i] for i in range(count.value)}, lines

    def query_device(self, context):
        """Calls ibv_query_device and returns the VerbsDeviceAttr."""
        attributes = VerbsDeviceAttr()
        self.do("ibv_query_device", context, ctypes.byref(attributes))
        return attributes

    def query_port(self, context, port):
        """Calls ibv_query_port and returns the VerbsPortAttr."""
        attributes = VerbsPortAttr()
        self.do("ibv_query_port", context, port, ctypes.byref(attributes))
        return attributes

    def query_gid(self, context, port, index):
        """The 16 bytes of a GID, all zero for an empty entry."""
        gid = (ctypes.c_ubyte * 16)()
        self.do("ibv_query_gid", context, port, index, gid)
        return bytes(gid)

    def query_pkey(self, context, port, index):
        """The P_Key at an index."""
        pkey = (ctypes.c_ubyte * 2)()
        self.do("ibv_query_pkey", context, port, index, pkey)
        return int.from_bytes(bytes(pkey), "big")


def verbs_check(name, result):
    """Raises VerbsError unless `result` is 0."""
    if result != 0:
        raise VerbsError(name, result if result > 0 else ctypes.get_errno())


def verbs_post_send(qp, request):
    """Calls ibv_post_send."""
    ctypes.set_errno(0)
    rejected = ctypes.c_void_p()
    post = VERBS_POST_SEND(qp.contents.context.contents.ops.post_send)
    verbs_check("ibv_post_send", post(qp, ctypes.byref(request), ctypes.byref(rejected)))


def verbs_post_recv(qp, request):
    """Calls ibv_post_recv."""
    ctypes.set_errno(0)
    rejected = ctypes.c_void_p()
    post = VERBS_POST_RECV(qp.contents.context.contents.ops.post_recv)
    verbs_check("ibv_post_recv", post(qp, ctypes.byref(request), ctypes.byref(rejected)))


def verbs_poll_cq(cq):
    """Calls ibv_poll_cq for one completion; returns a VerbsWc, or None."""
    ctypes.set_errno(0)
    completion = VerbsWc()
    found = VERBS_POLL_CQ(cq.contents.context.contents.ops.poll_cq)(cq, 1, ctypes.byref(completion))
    if found < 0:
        raise VerbsError("ibv_poll_cq", ctypes.get_errno())
    return completion if found else None


def verbs_mtu_bytes(mtu):
    """1024 for IBV_MTU_1024 (3)."""
    if not 1 <= mtu <= 5:
        raise Unread("enum ibv_mtu %d" % mtu)
    return 128 << mtu


@contextlib.contextmanager
def captured_stderr():
    """Yields a list that, after the block, has the lines that C code wrote to standard error inside it."""
    lines = []
    reader, writer = os.pipe()
    # Writes to a full pipe are lost, because a pipe that is read only later must never block a library.
    fcntl.fcntl(writer, fcntl.F_SETFL, fcntl.fcntl(writer, fcntl.F_GETFL) | os.O_NONBLOCK)
    saved = os.dup(2)
    os.dup2(writer, 2)
    os.close(writer)
    try:
        yield lines
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        with open(reader, errors="replace") as text:
            lines.extend(text.read().splitlines())
