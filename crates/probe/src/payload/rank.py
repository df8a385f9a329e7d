"""One rank: times a training process from its start to its first collectives, then measures operations."""
import datetime
import inspect
import os
import time

from ncclcheck_probe.cpu_wait import CpuWait
from ncclcheck_probe.facts import Facts
from ncclcheck_probe.gate import wait_at
from ncclcheck_probe.group import Group
from ncclcheck_probe.libraries import libraries_part
from ncclcheck_probe.pair import measure_pair
from ncclcheck_probe.phases import Phases
from ncclcheck_probe.timing import measure_all
from ncclcheck_probe.torch_import import import_torch

MEASURING_SHARE = 0.8  # of the run's time; sizes that would exceed it are left out
PATIENCE = 60


def run_rank(arguments, report):
    """The task of a rank's process. The environment sets its rank, as torchrun's does."""
    started = time.monotonic()
    options = arguments["options"]
    phases = Phases(report, int(os.environ["RANK"]), options["sleep_rank"])
    phases.enter("import of torch")
    torch, import_seconds = import_torch()
    waited = wait_at(arguments["gate"])
    group, times = join(torch, phases, arguments)
    report.part(dict(times, import_seconds=import_seconds))
    if group.rank == 0:
        report.part(libraries_part("collective"))
    left_out = alone(options)
    cpu_wait = CpuWait()
    if group.size > 1:
        if options["point_to_point"]:
            measure_pair(group, report, options["quick"])
        left_out = measure_all(group, options, started + waited + arguments["seconds"] * MEASURING_SHARE, report)
    cpu_wait = dict(cpu_wait.until_now(), rank=group.rank)
    group.phases.enter("leaving the group")
    group.dist.destroy_process_group()
    return {"rank": group.rank, "left_out": left_out, "cpu_wait": cpu_wait}


def alone(options):
    why = "a single rank has no peer: give the container a second GPU, or join containers"
    return [{"operation": name, "bytes": None, "why": why} for name in options["operations"]]


def join(torch, phases, arguments):
    """The group, and the body of a `times` part: the seconds of each phase that training waits for before its first
    step, apart from the import of torch."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    options = arguments["options"]
    facts = Facts()
    facts.body.update(kind="times", rank=rank, torch_version=torch.__version__)

    phases.enter("device")
    # Longer than the run, because the supervisor describes a hang better than torch's own timeout and must come first.
    patience = datetime.timedelta(seconds=arguments["seconds"] + PATIENCE)
    # Rank 0 listens before the others connect: one that comes too early pauses for half a second.
    store = store_of(torch, rank, size, patience) if rank == 0 else None
    started = time.monotonic()
    device = own_device(torch, options["backend"])
    group = Group(torch, rank, size, device, phases)
    group.synchronize()
    facts.body["device_seconds"] = time.monotonic() - started

    phases.enter("rendezvous")
    started = time.monotonic()
    store = store or store_of(torch, rank, size, patience)
    facts.body["rendezvous_seconds"] = time.monotonic() - started

    phases.enter("communicator")
    started = time.monotonic()
    eager = create_group(torch, options["backend"], device, store, rank, size, patience, options["eager"])
    facts.body.update(init_seconds=time.monotonic() - started, eager=eager)

    tensor = torch.ones(1, device=device)
    for call in ("first", "second"):
        phases.enter("%s call" % call)
        facts.body[call + "_call_seconds"] = group.seconds_for(lambda: torch.distributed.all_reduce(tensor))
    if not eager:
        facts.missing("communicator_seconds", "without eager initialization it is created in the first call")
    else:
        facts.body["communicator_seconds"] = facts.body["init_seconds"]
    return group, facts.body


def create_group(torch, backend, device, store, rank, size, patience, eager=True):
    """Initializes torch.distributed. Returns true if that created the communicator: on request, where torch can."""
    eager = eager and device.type == "cuda" and takes_device(torch)
    torch.distributed.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=patience,
                                         **({"device_id": device} if eager else {}))
    return eager


def store_of(torch, rank, size, patience):
    """The store at which the ranks meet. Rank 0 serves it, and does not wait for the others here."""
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    return torch.distributed.TCPStore(address, port, size, rank == 0, timeout=patience, wait_for_workers=False)


def own_device(torch, backend):
    """The GPU of this local rank, with a CUDA context, or the CPU."""
    if backend == "gloo":
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    torch.zeros(1, device=device)
    return device


def takes_device(torch):
    """True if init_process_group accepts device_id (torch 2.3 and later) and then creates its communicator at once."""
    return "device_id" in inspect.signature(torch.distributed.init_process_group).parameters
