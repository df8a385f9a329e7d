"""One rank that lasts from test to test: it joins a new group for each, measures, and leaves it."""
import datetime
import json
import math
import os
import socket
import statistics
import time

from ncclcheck_probe.group import Group
from ncclcheck_probe.operations import OPERATIONS, Buffers, Segment
from ncclcheck_probe.orders import lines_of
from ncclcheck_probe.pattern import POISON, fill, modulus_for, wrong_values
from ncclcheck_probe.phases import Phases
from ncclcheck_probe.plan import MIB
from ncclcheck_probe.rank import create_group, own_device
from ncclcheck_probe.timing import checked, measure_all, wrong_on_all
from ncclcheck_probe.torch_import import import_torch
from ncclcheck_probe.writes import writes_answer

# Longer than any test. The program that gives orders stops a test that hangs.
LONGEST_WAIT = datetime.timedelta(hours=1)
CONNECT_SECONDS = 2  # for each address of the first node
MESSAGE_BYTES = {"nccl": 64 * MIB, "gloo": 4 * MIB}
SEND_BATCHES, BATCH_SECONDS, MOST_SENDS = 3, 0.1, 64


def run_lasting_rank(arguments, report):
    """The task of a lasting rank's process. It ends with its orders."""
    torch, _ = import_torch()
    backend, is_first = arguments["backend"], os.environ["LOCAL_RANK"] == "0"
    device = own_device(torch, backend)
    served = store_at(torch, "127.0.0.1", 0, serves=True) if is_first else None
    report.part({"kind": "ready", "port": served.port if served else None})
    for line in lines_of(arguments["orders"]):
        test = json.loads(line.decode("ascii"))
        phases = Phases(report, test["rank"], None)
        phases.enter("rendezvous")
        store = served if test["rank"] == 0 else reached_store(torch, test)
        store = torch.distributed.PrefixStore("test %d" % test["test"], store)
        if test["kind"] == "writes":
            phases.enter("RDMA writes")
            report.part(dict(writes_answer(store, test), kind="answer"))
            continue
        phases.enter("communicator")
        create_group(torch, backend, device, store, test["rank"], test["size"], LONGEST_WAIT)
        group = Group(torch, test["rank"], test["size"], device, phases)
        report.part(dict(MEASURES[test["kind"]](group, backend, test, report), kind="answer"))
    return {}


def reached_store(torch, test):
    """The store of the node whose first rank has number 0, at the first of its addresses that answers."""
    why = []
    for address in test["addresses"]:
        try:
            socket.create_connection((address, test["port"]), CONNECT_SECONDS).close()
            return store_at(torch, address, test["port"], serves=False)
        except OSError as error:
            why.append("%s: %s" % (address, error.strerror or error))
    raise OSError("port %d of the node with rank 0 cannot be reached: %s" % (test["port"], "; ".join(why)))


def store_at(torch, address, port, serves):
    """A store for any number of ranks, none of which it waits for. It leaves out their number, for which older releases
    of torch do not accept None."""
    return torch.distributed.TCPStore(address, port, is_master=serves, timeout=LONGEST_WAIT, wait_for_workers=False)


def pair_answer(group, backend, test, report):
    """{received, bytes, busbw, wrong}: what this rank receives in bytes per second from its peer, the local rank of the
    same number on the other node, while all others receive from theirs and none sends back."""
    count = MESSAGE_BYTES[backend] // 4
    send, receive = (group.torch.zeros(count, dtype=group.torch.float32, device=group.device) for _ in range(2))
    buffers = Buffers(send, receive, modulus_for("float32", group.size))
    group.phases.enter("all_reduce")
    reduce = OPERATIONS["all_reduce"](group, buffers, MESSAGE_BYTES[backend])
    reduce.call()
    group.fence()
    seconds, = group.greatest([group.seconds_for(reduce.call)])
    busbw = reduce.bytes / seconds * reduce.bus_factor()
    wrong = checked(group, reduce, report)["wrong"]

    half = group.size // 2
    peer = (group.rank + half) % group.size
    fill(group.torch, send, group.rank, buffers.modulus)
    receive.fill_(POISON)
    received = None
    for way in ("there", "back"):
        group.phases.enter("sends " + way)
        if (group.rank < half) == (way == "there"):
            sending_seconds(group, lambda: group.dist.send(send, peer))
        else:
            received = reduce.bytes / sending_seconds(group, lambda: group.dist.recv(receive, peer))
    group.phases.enter("check of what came")
    found = wrong_values(group.torch, receive, [Segment(0, count, [peer], 0)], buffers.modulus)
    wrong += wrong_on_all(group, found, "recv", reduce.bytes, report)
    leave_group(group)
    return {"received": received, "bytes": reduce.bytes, "busbw": busbw, "wrong": wrong}


def sending_seconds(group, transfer):
    """Seconds of one transfer, the median of batches on this rank. The first call connects the ranks."""
    transfer()
    group.fence()
    once, = group.greatest([group.seconds_for(transfer)])
    calls = max(1, min(MOST_SENDS, math.ceil(BATCH_SECONDS / once)))
    samples = []
    for _ in range(SEND_BATCHES):
        group.fence()
        samples.append(group.seconds_for(lambda: [transfer() for _ in range(calls)]) / calls)
    return statistics.median(samples)


def together_answer(group, backend, test, report):
    """{left_out}. The first rank reports a measurement of each size."""
    options = {"operations": ["all_reduce"], "sizes": test["sizes"], "dtype": "float32",
               "seconds_per_size": BATCH_SECONDS}
    left_out = measure_all(group, options, time.monotonic() + test["seconds"], report)
    leave_group(group)
    return {"left_out": left_out}


def leave_group(group):
    group.phases.enter("leaving the group")
    group.dist.destroy_process_group()


MEASURES = {"pair": pair_answer, "together": together_answer}
