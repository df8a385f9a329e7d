"""A rank among the others: its device, and what all ranks have to agree on."""
import time


class Group:
    """All ranks of the run, seen from one of them, with torch.distributed initialized."""

    def __init__(self, torch, rank, size, device, phases):
        self.torch, self.dist = torch, torch.distributed
        self.rank, self.size, self.device, self.phases = rank, size, device, phases

    def synchronize(self):
        """Waits until the device has done all that was asked of it; on the CPU calls return when they are done."""
        if self.device.type == "cuda":
            self.torch.cuda.synchronize(self.device)

    def greatest(self, numbers):
        """Of each number the greatest of all ranks: the slowest rank counts."""
        return self.reduced(numbers, self.dist.ReduceOp.MAX)

    def total(self, amount):
        return int(self.reduced([amount], self.dist.ReduceOp.SUM)[0])

    def reduced(self, numbers, by):
        tensor = self.torch.tensor(numbers, dtype=self.torch.float64, device=self.device)
        self.dist.all_reduce(tensor, op=by)
        return tensor.tolist()

    def fence(self):
        """All ranks leave it at about the same time, with nothing left to do on their devices."""
        self.reduced([0.0], self.dist.ReduceOp.SUM)
        self.synchronize()

    def seconds_for(self, function):
        """How long a call takes on this rank, with all that it starts on the device."""
        started = time.perf_counter()
        function()
        self.synchronize()
        return time.perf_counter() - started
