"""The operations, with the definitions of size and bus bandwidth that NVIDIA's nccl-tests use.

Size is that of the whole array (nccl-tests' doc/PERFORMANCE.md): of all_gather's output, and of one rank's input to
reduce_scatter and alltoall. algbw is size over time; busbw is algbw times a factor that makes it comparable with the
speed of a link for any number of ranks.
"""
from collections import namedtuple

from ncclcheck_probe.pattern import POISON, fill, wrong_values

# Elements start to start + length are the sum of the given ranks' elements from source on.
Segment = namedtuple("Segment", "start length ranks source")
# Two buffers, long enough for the largest size, that all operations and sizes share.
Buffers = namedtuple("Buffers", "send receive modulus")


class Operation:
    """One operation at one size. PyTorch has all_reduce and broadcast in place only; the others are out of place."""

    in_place = False
    in_blocks = False  # the array has one block for each rank

    def __init__(self, group, buffers, size):
        self.group, self.modulus = group, buffers.modulus
        everyone = group.size if self.in_blocks else 1
        count = max(1, size // buffers.send.element_size() // everyone) * everyone
        self.count, self.block = count, count // group.size
        self.bytes = count * buffers.send.element_size()
        self.input, self.output = self.views(buffers)

    def views(self, buffers):
        return buffers.send[:self.count], buffers.receive[:self.count]

    def check(self):
        """Calls the operation once on known data, and returns what wrong_values finds on this rank."""
        torch = self.group.torch
        self.output.fill_(POISON)
        fill(torch, self.input, self.group.rank, self.modulus)
        self.call()
        self.group.synchronize()
        return wrong_values(torch, self.output, self.expected(), self.modulus)


class AllReduce(Operation):
    name, in_place = "all_reduce", True

    def bus_factor(self):
        return 2 * (self.group.size - 1) / self.group.size

    def views(self, buffers):
        return buffers.receive[:self.count], buffers.receive[:self.count]

    def call(self):
        self.group.dist.all_reduce(self.output)

    def expected(self):
        return [Segment(0, self.count, range(self.group.size), 0)]


class AllGather(Operation):
    name, in_blocks = "all_gather", True

    def bus_factor(self):
        return (self.group.size - 1) / self.group.size

    def views(self, buffers):
        return buffers.send[:self.block], buffers.receive[:self.count]

    def call(self):
        either(self.group.dist, "all_gather_into_tensor", "_all_gather_base")(self.output, self.input)

    def expected(self):
        return [Segment(rank * self.block, self.block, [rank], 0) for rank in range(self.group.size)]


class ReduceScatter(Operation):
    name, in_blocks = "reduce_scatter", True

    def bus_factor(self):
        return (self.group.size - 1) / self.group.size

    def views(self, buffers):
        return buffers.send[:self.count], buffers.receive[:self.block]

    def call(self):
        either(self.group.dist, "reduce_scatter_tensor", "_reduce_scatter_base")(self.output, self.input)

    def expected(self):
        return [Segment(0, self.block, range(self.group.size), self.group.rank * self.block)]


class Broadcast(Operation):
    name, in_place = "broadcast", True
    root = 0

    def bus_factor(self):
        return 1

    def views(self, buffers):
        return buffers.receive[:self.count], buffers.receive[:self.count]

    def call(self):
        self.group.dist.broadcast(self.output, self.root)

    def expected(self):
        return [Segment(0, self.count, [self.root], 0)]


class AllToAll(Operation):
    name, in_blocks = "alltoall", True

    def bus_factor(self):
        return (self.group.size - 1) / self.group.size

    def call(self):
        self.group.dist.all_to_all_single(self.output, self.input)

    def expected(self):
        source = self.group.rank * self.block
        return [Segment(rank * self.block, self.block, [rank], source) for rank in range(self.group.size)]


class SendRecv(Operation):
    """A ring: each rank sends to the next and receives from the previous one."""

    name = "sendrecv"

    def bus_factor(self):
        return 1

    def call(self):
        dist, rank, size = self.group.dist, self.group.rank, self.group.size
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, self.input, (rank + 1) % size),
                                            dist.P2POp(dist.irecv, self.output, (rank - 1) % size)]):
            work.wait()

    def expected(self):
        return [Segment(0, self.count, [(self.group.rank - 1) % self.group.size], 0)]


OPERATIONS = {kind.name: kind for kind in (AllReduce, AllGather, ReduceScatter, Broadcast, AllToAll, SendRecv)}


def either(module, name, older):
    """The function `name`, or `older` before torch 1.13, which renamed the calls on one tensor."""
    return getattr(module, name) if hasattr(module, name) else getattr(module, older)
