"""The ranks of this container, the address at which all ranks meet, and each rank's environment."""
import os
import socket
from collections import namedtuple

from ncclcheck_probe.driver import driver_body
from ncclcheck_probe.task import Skipped

GLOO_RANKS = 2  # unless the plan sets a number
HOLDERS = []  # sockets of ports that ranks will listen at, until this process ends

World = namedtuple("World", "size offset local master_addr master_port")


def world_of(options):
    """The world that the options describe. Raises Skipped if it lacks GPUs or a port."""
    asked = options["world"]
    if options["backend"] == "gloo":
        local = asked["gpus"] or GLOO_RANKS
    else:
        local = gpus_to_use(asked["gpus"])
    size = asked["size"] or asked["offset"] + local
    if asked["master_port"] is None and size != local:
        raise Skipped("ranks in several containers need a common port: set collectives.world.master_port")
    return World(size, asked["offset"], local, asked["master_addr"], asked["master_port"] or free_port())


def gpus_to_use(asked):
    driver = driver_body()
    devices = driver["devices"]
    if not devices:
        why = driver["init_error"] or driver.get("unread", {}).get("devices") or "cuDeviceGetCount returns 0"
        raise Skipped("CUDA sees no GPU here (%s): start the container with GPUs, as with docker run --gpus all" % why)
    if asked and asked > devices:
        raise Skipped("the plan requests %d GPUs and CUDA sees %d here" % (asked, devices))
    return asked or devices


def free_port():
    """A port that is free now, and that neither bind nor connect gives to another process before rank 0 listens: this
    process keeps it bound, which does not hinder a listener that sets SO_REUSEADDR, as TCPStore does."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("", 0))
    HOLDERS.append(holder)
    return holder.getsockname()[1]


def logging_variables(subsystems):
    """Variables that turn on NCCL's log. NCCL_DEBUG_FILE is set separately for each rank, to a pipe of its parent."""
    return {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": subsystems}


def rank_variables(world, local_rank):
    """The variables of torchrun that training scripts read."""
    variables = {"RANK": world.offset + local_rank, "LOCAL_RANK": local_rank, "WORLD_SIZE": world.size,
                 "LOCAL_WORLD_SIZE": world.local, "MASTER_ADDR": world.master_addr, "MASTER_PORT": world.master_port}
    # torchrun's default too: without it, each rank would start a thread per core
    variables["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "1")
    return {name: str(value) for name, value in variables.items()}
