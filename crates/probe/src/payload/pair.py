"""Cost of the first call between two ranks. On first use NCCL connects them, and PyTorch may create a communicator for
them; a call after a warm-up of the same pair does not pay for that."""
import statistics
import time

PAIR = (0, 1)
PAIR_BYTES = 1024
LATER_CALLS = 20


def measure_pair(group, report, quick):
    """Measures a new group of ranks 0 and 1 for each preparation, so that each starts cold. Creating and destroying a
    group takes half a second, so that a quick run has the first one alone."""
    preparations = (("nothing", lambda pair, tensor: None),
                    ("all_reduce", lambda pair, tensor: group.dist.all_reduce(tensor, group=pair)),
                    ("sendrecv", lambda pair, tensor: send_once(group, pair, tensor)))
    for name, prepare in preparations[:1] if quick else preparations:
        body = pair_body(group, name, prepare)
        if group.rank == 0:
            report.part(body)


def pair_body(group, name, prepare):
    """The body of one measurement. Times are those of the slower rank; ranks outside the pair only wait."""
    group.phases.enter("point to point after %s: group" % name)
    tensor = group.torch.zeros(PAIR_BYTES, dtype=group.torch.uint8, device=group.device)
    started = time.perf_counter()
    pair = group.dist.new_group(list(PAIR))
    seconds = [time.perf_counter() - started]
    takes_part = group.rank in PAIR
    calls = [("preparation", lambda: prepare(pair, tensor))]
    calls += [("call %d" % (number + 1), lambda: send_once(group, pair, tensor)) for number in range(2 + LATER_CALLS)]
    for call, function in calls:
        group.phases.enter("point to point after %s: %s" % (name, call))
        group.fence()
        seconds.append(group.seconds_for(function) if takes_part else 0.0)
    created, prepared, first, second = (group.greatest(seconds))[:4]
    later = group.greatest(seconds[4:])
    return {"kind": "point-to-point", "prepared_by": name, "ranks": list(PAIR), "bytes": PAIR_BYTES,
            "group_seconds": created, "preparation_seconds": prepared, "first_seconds": first,
            "second_seconds": second, "later_seconds": statistics.median(later)}


def send_once(group, pair, tensor):
    sender, receiver = PAIR
    if group.rank == sender:
        group.dist.send(tensor, receiver, group=pair)
    else:
        group.dist.recv(tensor, sender, group=pair)
