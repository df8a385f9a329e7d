"""The GID index that NCCL selects, for GID tables of real hosts and containers."""

import ipaddress
import os
import unittest
import unittest.mock

import harness  # noqa: F401  (makes ncclcheck_probe importable)
from ncclcheck_probe import nccl_gid, readings

LINK_LOCAL, IPV6, IPV4 = "fe80::5054:ff:fe77:1", "2001:db8::1", "::ffff:10.77.0.1"
EMPTY = "::"


def table(*entries):
    """A port's GID table from (address, type) pairs. The type None is unreadable, as that of an empty entry is."""
    def read_type(index):
        if entries[index][1] is None:
            raise readings.Unread("types/%d: EINVAL" % index)
        return entries[index][1]
    return nccl_gid.NcclGidTable(len(entries), lambda index: ipaddress.IPv6Address(entries[index][0]).packed, read_type)


def indices(entries, link_layer="Ethernet", **variables):
    """The index for each range of releases."""
    with unittest.mock.patch.dict(os.environ, variables):
        return [choice["index"] for choice in nccl_gid.nccl_gid_choices(table(*entries), link_layer)]


# The table of mlx5: each address as RoCE v1 and v2, link-local first.
MLX5 = [(LINK_LOCAL, "IB/RoCE v1"), (LINK_LOCAL, "RoCE v2"), (IPV4, "IB/RoCE v1"), (IPV4, "RoCE v2"),
        (IPV6, "IB/RoCE v1"), (IPV6, "RoCE v2"), (EMPTY, None)]


class Choice(unittest.TestCase):
    def test_roce_v2_of_ipv4_is_found_since_2_21(self):
        self.assertEqual(indices(MLX5), [0, 3, 3])

    def test_variables_choose_another_family_version_or_range(self):
        self.assertEqual(indices(MLX5, NCCL_IB_ADDR_FAMILY="AF_INET6"), [0, 5, 5])
        self.assertEqual(indices(MLX5, NCCL_IB_ROCE_VERSION_NUM="1"), [0, 2, 2])
        self.assertEqual(indices(MLX5, NCCL_IB_ADDR_RANGE="10.77.0.0/16"), [0, 3, 3])
        self.assertEqual(indices(MLX5, NCCL_IB_ADDR_RANGE="10.78.0.0/16"), [0, 0, 0])
        self.assertEqual(indices(MLX5, NCCL_IB_ADDR_RANGE="no address/16"), [0, 3, 3])

    def test_a_fixed_index_is_used_unchecked(self):
        self.assertEqual(indices(MLX5, NCCL_IB_GID_INDEX="6"), [6, 6, 6])
        self.assertEqual(indices(MLX5, NCCL_IB_GID_INDEX="-1")[1:], [3, 3])

    def test_without_a_suitable_gid_the_first_is_used(self):
        with unittest.mock.patch.dict(os.environ):
            choices = nccl_gid.nccl_gid_choices(table((LINK_LOCAL, "RoCE v2"), (EMPTY, None)), "Ethernet")
        self.assertEqual([choice["index"] for choice in choices], [0, 0, 0])
        self.assertEqual(choices[-1]["because"], "no GID suits IPv4, RoCE v2")

    def test_a_type_of_another_network_namespace_stops_nccl_before_2_26(self):
        foreign = [(IPV4, None), ("::ffff:10.78.0.1", "RoCE v2")]
        self.assertEqual(indices(foreign), [0, None, 1])

    def test_infiniband_uses_a_gid_with_an_flid(self):
        plain, routable = "fe80::1", "fe80:0:ab::1"
        self.assertEqual(indices([(plain, "IB/RoCE v1")] * 2, "InfiniBand"), [None, 0])
        self.assertEqual(indices([(plain, "IB/RoCE v1"), (routable, "IB/RoCE v1")], "InfiniBand"), [None, 1])

    def test_numbers_are_read_as_strtoll_reads_them(self):
        for text, number in {"3": 3, " 3x": 3, "0x10": 16, "010": 8, "-1": -1, "x": 0, "09": 0, "": 0}.items():
            self.assertEqual(nccl_gid.nccl_leading_number(text), number, text)
