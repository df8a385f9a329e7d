"""Packets that this machine sent, and those that it sent again because they or their acknowledgements were lost."""
import glob

from ncclcheck_probe.facts import Facts, read_text

# Of an RDMA port, below /sys/class/infiniband: packets sent, and those that the peer missed or did not acknowledge.
SENT_FILES = "counters/port_xmit_packets",
AGAIN_FILES = "hw_counters/packet_seq_err", "hw_counters/local_ack_timeout_err"


def traffic_now():
    """{sent, again}: of TCP and of all RDMA ports together, in this network namespace."""
    facts = Facts()
    for field, of_tcp, files in (("sent", "OutSegs", SENT_FILES), ("again", "RetransSegs", AGAIN_FILES)):
        facts.read(field, lambda: tcp_counter(of_tcp) + sum(map(port_counters, files)))
    return facts.body


def tcp_counter(name):
    names, values = [line.split() for line in read_text("/proc/net/snmp").splitlines() if line.startswith("Tcp:")]
    return int(values[names.index(name)])


def port_counters(file):
    """The sum over all ports whose driver has the counter."""
    return sum(int(read_text(path)) for path in glob.glob("/sys/class/infiniband/*/ports/*/" + file))


def traffic_since(before):
    """What was sent since then. A counter that cannot be read is null."""
    now = traffic_now()
    return {name: None if None in (now[name], before[name]) else now[name] - before[name] for name in ("sent", "again")}
