"""The ranks of a run as one of them sees them: its device, and the values that all ranks agree on."""
import time


class Group:
    """The run's process group in one rank, with torch.distributed initialized."""

    def __init__(self, torch, rank, size, device, phases):
        self.torch, self.dist = torch, torch.distributed
        self.rank, self.size, self.device, self.phases = rank, size, device, phases

    def synchronize(self):
        """Waits until the device has finished all its work. Calls on the CPU return only when they are done."""
        if self.device.type == "cuda":
            self.torch.cuda.synchronize(self.device)

    def greatest(self, numbers):
        """The maximum of each number over all ranks: the slowest rank counts."""
        return self.reduced(numbers, self.dist.ReduceOp.MAX)

    def total(self, amount):
        return int(self.reduced([amount], self.dist.ReduceOp.SUM)[0])

    def reduced(self, numbers, by):
        tensor = self.torch.tensor(numbers, dtype=self.torch.float64, device=self.device)
        self.dist.all_reduce(tensor, op=by)
        return tensor.tolist()

    def fence(self):
        """Barrier: all ranks leave it at about the same time, with idle devices."""
        self.reduced([0.0], self.dist.ReduceOp.SUM)
        self.synchronize()

    def seconds_for(self, function):
        """Seconds that a call takes on this rank, with all work that it starts on the device."""
        started = time.perf_counter()
        function()
        self.synchronize()
        return time.perf_counter() - started
