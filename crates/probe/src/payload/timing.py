"""Timing of operations as in nccl-tests: warm-up, then batches of calls between two synchronizations. Times of small
sizes therefore include the overhead of PyTorch's call, as in training."""
import os
import statistics
import time

from ncclcheck_probe.facts import read_text
from ncclcheck_probe.operations import OPERATIONS, Buffers
from ncclcheck_probe.pattern import modulus_for
from ncclcheck_probe.plan import MIB

WARM_UP_CALLS = 2
BATCHES = 5
MOST_CALLS = 100  # per batch; more calls do not improve the result
CALLS_AT_LEAST = WARM_UP_CALLS + 1 + BATCHES + 1  # per operation and size, including the checked call
LINEAR_FROM = MIB
RESERVE = 512 * MIB  # bytes left for the communicator's buffers and for the check


def seconds_left(group, until):
    """Seconds until the monotonic time `until`: the minimum over all ranks, so that all ranks agree."""
    return -group.greatest([time.monotonic() - until])[0]


def measure_all(group, options, until, report):
    """Measures each operation at each size, reports from rank 0, and returns the left out sizes with reasons."""
    buffers, largest = allocate(group, options)
    left_out = []
    for name in options["operations"]:
        seconds, size_before = 0.0, 1
        for size in options["sizes"]:
            why = too_large(size, largest) or too_slow(seconds * growth(size_before, size), seconds_left(group, until))
            if why:
                left_out.append({"operation": name, "bytes": size, "why": why})
                continue
            body = measure(group, OPERATIONS[name](group, buffers, size), options, report)
            seconds, size_before = body["seconds_max"], size
            if group.rank == 0:
                report.part(body)
    return left_out


def allocate(group, options):
    """Two buffers for the largest requested size that fits, and the bytes of the largest size that would fit."""
    torch = group.torch
    free = -group.greatest([-free_bytes(group)])[0]
    largest = int(max(0, free - RESERVE) / 2)
    dtype = getattr(torch, options["dtype"])
    need = max([size for size in options["sizes"] if size <= largest], default=0)
    # At least one element per rank, even if every size is smaller.
    elements = max(group.size, need // torch.empty(0, dtype=dtype).element_size())
    send, receive = (torch.zeros(elements, dtype=dtype, device=group.device) for _ in range(2))
    return Buffers(send, receive, modulus_for(options["dtype"], group.size)), largest


def free_bytes(group):
    """Bytes of memory available to this rank: its GPU's, or its share of the machine's."""
    if group.device.type == "cuda":
        return group.torch.cuda.mem_get_info(group.device)[0]
    lines = read_text("/proc/meminfo").splitlines()
    available, = (line for line in lines if line.startswith("MemAvailable:"))
    return (int(available.split()[1]) << 10) // int(os.environ["LOCAL_WORLD_SIZE"])


def growth(size, larger):
    """Factor by which a larger size may take longer. Below LINEAR_FROM, latency and not size determines the time."""
    return max(1.0, larger / max(size, LINEAR_FROM))


def too_large(size, largest):
    if size > largest:
        return ("two buffers of %.1f MiB do not fit: the device with the least free memory has room for two of %.1f "
                "MiB, with %.0f MiB reserved for NCCL" % (size / MIB, largest / MIB, RESERVE / MIB))
    return None


def too_slow(expected_seconds, left):
    if left <= 0:
        return "the step has no time left; raise its deadline, or request fewer sizes"
    if expected_seconds * CALLS_AT_LEAST > left:
        return ("judging by the previous size, its %d calls would take %.1f seconds, and the step has %.1f left; raise "
                "its deadline, or request fewer sizes" % (CALLS_AT_LEAST, expected_seconds * CALLS_AT_LEAST, left))
    return None


def measure(group, operation, options, report):
    """The body of a measurement. A sample is seconds per call of one batch, on the slowest rank."""
    name = "%s of %d bytes, " % (operation.name, operation.bytes)
    group.phases.enter(name + "warm-up")
    for _ in range(WARM_UP_CALLS):
        operation.call()
    once, = group.greatest([batch_seconds(group, operation, 1)])
    calls = max(1, min(MOST_CALLS, int(options["seconds_per_size"] / BATCHES / once)))
    samples = []
    for batch in range(BATCHES):
        group.phases.enter(name + "batch %d" % (batch + 1))
        samples.append(batch_seconds(group, operation, calls))
    samples = group.greatest(samples)
    median = statistics.median(samples)
    body = {"kind": "measurement", "operation": operation.name, "dtype": options["dtype"], "ranks": group.size,
            "bytes": operation.bytes, "in_place": operation.in_place, "calls_per_batch": calls, "samples": samples,
            "seconds_min": min(samples), "seconds_median": median, "seconds_max": max(samples),
            "algbw_bytes_per_second": operation.bytes / median,
            "busbw_bytes_per_second": operation.bytes / median * operation.bus_factor()}
    group.phases.enter(name + "check of values")
    body.update(checked(group, operation, report))
    return body


def batch_seconds(group, operation, calls):
    def batch():
        for _ in range(calls):
            operation.call()
    group.fence()
    return group.seconds_for(batch) / calls


def checked(group, operation, report):
    """{"wrong": number of wrong elements on all ranks}."""
    if operation.modulus is None:
        return {"wrong": None, "unread": {"wrong": "sums over %d ranks are not exact in this type" % group.size}}
    return {"wrong": wrong_on_all(group, operation.check(), operation.name, operation.bytes, report)}


def wrong_on_all(group, found, name, size, report):
    """Number of wrong elements on all ranks. `found` is what wrong_values found on this one, which reports it."""
    if found["wrong"]:
        report.part(dict(found, kind="wrong-values", rank=group.rank, operation=name, bytes=size))
    return group.total(found["wrong"])
