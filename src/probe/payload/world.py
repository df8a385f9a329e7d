"""Which ranks run in this container, where all meet, and the environment that each gets."""
import os
import socket
from collections import namedtuple

from ncclcheck_probe.driver import driver_body
from ncclcheck_probe.task import Skipped

GLOO_RANKS = 2  # where the plan does not say how many

World = namedtuple("World", "size offset local master_addr master_port")


def world_of(options):
    """The world that the options describe. Raises Skipped where there are no GPUs for it."""
    asked = options["world"]
    if options["backend"] == "gloo":
        local = asked["gpus"] or GLOO_RANKS
    else:
        local = gpus_to_use(asked["gpus"])
    size = asked["size"] or asked["offset"] + local
    if asked["master_port"] is None and size != local:
        raise Skipped("ranks of several containers need a port to meet at: give collectives.world.master_port")
    return World(size, asked["offset"], local, asked["master_addr"], asked["master_port"] or free_port())


def gpus_to_use(asked):
    driver = driver_body()
    devices = driver["devices"]
    if not devices:
        why = driver["init_error"] or driver.get("unread", {}).get("devices") or "cuDeviceGetCount says 0"
        raise Skipped("CUDA sees no GPU here (%s): start the container with GPUs, as with docker run --gpus all" % why)
    if asked and asked > devices:
        raise Skipped("the plan asks for %d GPUs and CUDA sees %d here" % (asked, devices))
    return asked or devices


def free_port():
    """A port that nobody listens at now. Another process may take it before rank 0 does; the run then fails and says
    so. torchrun chooses in the same way."""
    with socket.socket() as listener:
        listener.bind(("", 0))
        return listener.getsockname()[1]


def logging_variables(subsystems):
    """NCCL_DEBUG_FILE is set for each rank, to a pipe of ours."""
    return {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": subsystems}


def rank_variables(world, local_rank):
    """The variables that torchrun sets, as far as training scripts read them."""
    variables = {"RANK": world.offset + local_rank, "LOCAL_RANK": local_rank, "WORLD_SIZE": world.size,
                 "LOCAL_WORLD_SIZE": world.local, "MASTER_ADDR": world.master_addr, "MASTER_PORT": world.master_port}
    # torchrun does so too, or each of the ranks would start a thread for every core
    variables["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "1")
    return {name: str(value) for name, value in variables.items()}
