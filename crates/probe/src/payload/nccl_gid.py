"""
Predicts the GID index that NCCL selects for a port, by NCCL's rule in src/transport/net_ib.cc (2.21.5, 2.22.3, 2.26.2)
and net_ib/connect.cc (2.30), from the same variables and files that NCCL reads.
"""

import ipaddress
import os
import re

from ncclcheck_probe.readings import Readings, Unread
from ncclcheck_probe.sysfs import kernel_text

NCCL_IB_MAPPED_IPV4 = ipaddress.ip_network("::ffff:0:0/96")
NCCL_IB_MAPPED_IPV4_MULTICAST = ipaddress.ip_network("ff0e::ffff:0:0/96")
NCCL_IB_LINK_LOCAL = ipaddress.ip_network("fe80::/64")


class NcclGidTable:
    """One port as NCCL sees it. `query_gid` returns the 16 bytes at an index, `read_type` the text of its type file."""

    def __init__(self, length, query_gid, read_type):
        self.length = length
        self.query_gid = query_gid
        self.read_type = read_type
        self.addresses = {}

    def address(self, index):
        """The GID as an IPv6 address."""
        if index not in self.addresses:
            self.addresses[index] = ipaddress.IPv6Address(self.query_gid(index))
        return self.addresses[index]

    def roce_version(self, index, empty_is_fatal):
        """1 or 2; None if NCCL continues without the version."""
        try:
            text = self.read_type(index)
        except Unread as why:
            if not empty_is_fatal and "EINVAL" in str(why):
                return None
            raise Unread("NCCL fails: it cannot read the type of GID %d: %s" % (index, why)) from None
        for prefix, version in (("IB/RoCE v1", 1), ("RoCE v1", 1), ("RoCE v2", 2)):
            if text.startswith(prefix):
                return version
        return None


def nccl_gid_choices(table, link_layer):
    """The index that each range of NCCL releases selects; `since` and `before` bound the range."""
    if link_layer == "InfiniBand":
        return [nccl_gid_choice({"before": "2.22"}, nccl_no_gid),
                nccl_gid_choice({"since": "2.22"}, nccl_flid_gid, table)]
    return [
        nccl_gid_choice({"before": "2.21"}, nccl_fixed_gid, 0),
        nccl_gid_choice({"since": "2.21", "before": "2.26"}, nccl_searched_gid, table, True),
        nccl_gid_choice({"since": "2.26"}, nccl_searched_gid, table, False),
    ]


def nccl_gid_choice(releases, choose, *arguments):
    """One choice, with its reason."""
    choice = Readings(**releases)
    choice.read_together(["index", "because"], choose, *arguments)
    return choice.body()


def nccl_no_gid():
    """InfiniBand before NCCL 2.22: no GID."""
    raise Unread("this NCCL addresses by LID on InfiniBand, and uses no GID")


def nccl_flid_gid(table):
    """InfiniBand since NCCL 2.22: the configured index if its GID is routable (has an FLID), else 0."""
    index = nccl_number("NCCL_IB_ROUTABLE_FLID_GID_INDEX", 1)
    if index < table.length and table.address(index).packed[4:6] != b"\0\0":
        return index, "GID %d has an FLID: it can be routed between subnets" % index
    return 0, "InfiniBand, and GID %d has no FLID" % index


def nccl_fixed_gid(default):
    """The index in NCCL_IB_GID_INDEX, else `default`."""
    if os.environ.get("NCCL_IB_GID_INDEX"):
        return nccl_number("NCCL_IB_GID_INDEX", default), "NCCL_IB_GID_INDEX"
    return default, "the default of NCCL_IB_GID_INDEX"


def nccl_searched_gid(table, empty_is_fatal):
    """RoCE: the index in NCCL_IB_GID_INDEX, else the best one of the table, found by a scan that keeps the better."""
    fixed, because = nccl_fixed_gid(-1)
    if fixed >= 0:
        return fixed, because
    wanted = NcclGidWish()
    chosen = 0
    for candidate in range(1, table.length):
        if nccl_prefers(table, wanted, candidate, chosen, empty_is_fatal):
            chosen = candidate
    address = table.address(chosen)
    if nccl_is_valid(address) and nccl_family(address) == wanted.family and wanted.in_range(address):
        return chosen, "found by %s" % wanted
    return chosen, "no GID suits %s" % wanted


def nccl_prefers(table, wanted, candidate, chosen, empty_is_fatal):
    """True if NCCL replaces the index `chosen` by `candidate`."""
    address, other = table.address(candidate), table.address(chosen)
    if nccl_family(address) != wanted.family or not wanted.in_range(address):
        return False
    if nccl_family(other) != wanted.family:
        return True
    if not nccl_is_valid(address):
        return False
    other_version = table.roce_version(chosen, empty_is_fatal)
    version = table.roce_version(candidate, empty_is_fatal)
    return version == wanted.roce_version and (version != other_version or not nccl_is_valid(other))


class NcclGidWish:
    """Requirements of the variables on a GID: address family, range, RoCE version."""

    def __init__(self):
        self.family = 6 if os.environ.get("NCCL_IB_ADDR_FAMILY") == "AF_INET6" else 4
        self.roce_version = nccl_number("NCCL_IB_ROCE_VERSION_NUM", 2)
        self.range = self.parse_range(os.environ.get("NCCL_IB_ADDR_RANGE", ""))

    def parse_range(self, text):
        """The network of a text such as `10.1.0.0/16`, or None: NCCL ignores a text that it cannot parse."""
        address, slash, _ = text.partition("/")
        bits = nccl_leading_number(text.partition("/")[2])
        try:
            network = ipaddress.ip_network("%s/%d" % (address, bits), strict=False)
        except ValueError:
            return None
        return network if slash and network.version == self.family else None

    def in_range(self, address):
        """True if a GID is in the range. A GID holds an IPv4 address in its last 32 bits."""
        if self.range is None:
            return True
        return (ipaddress.IPv4Address(address.packed[12:]) if self.family == 4 else address) in self.range

    def __str__(self):
        wish = "IPv%d, RoCE v%d" % (self.family, self.roce_version)
        return wish if self.range is None else "%s, %s" % (wish, self.range)


def nccl_family(address):
    """4 for a GID that holds an IPv4 address, else 6."""
    return 4 if address in NCCL_IB_MAPPED_IPV4 or address in NCCL_IB_MAPPED_IPV4_MULTICAST else 6


def nccl_is_valid(address):
    """True if NCCL would use this GID: it is neither empty nor link-local."""
    return int(address) != 0 and address not in NCCL_IB_LINK_LOCAL


def nccl_number(variable, default):
    """A variable's value as strtoll parses it."""
    text = os.environ.get(variable)
    return nccl_leading_number(text) if text else default


def nccl_leading_number(text):
    """The number at the start of a text, or 0 if there is none. A prefix of 0x means base 16, of 0 base 8."""
    match = re.match(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[0-9]+)", text)
    if not match:
        return 0
    sign, digits = match.groups()
    base = 16 if digits[:2] in ("0x", "0X") else 8 if digits[0] == "0" else 10
    return int(sign + digits, base)


def nccl_gid_type_reader(port_folder):
    """A function that reads the type of a GID, as NCCL does, from the port's folder in sysfs."""
    return lambda index: kernel_text("%s/gid_attrs/types/%d" % (port_folder, index))
