"""The same measurement without the variables that make NCCL choose a slower way, which shows what they cost. NCCL runs
once without all of them and, if there are several, once without each."""
import os
import pwd
import time

from ncclcheck_probe.facts import read_text
from ncclcheck_probe.supervise import Supervisor
from ncclcheck_probe.task import Report, StepFailed

OPERATION = "all_reduce"
MOST_RUNS = 5
# Variables that lower the speed of communication within a host: those of NCCL's transports, algorithms, protocols,
# channels, threads and buffers. NCCL_NVLS_ENABLE is not one of them: a host may be unable to do multicast.
SLOWING = ("NCCL_ALGO", "NCCL_BUFFSIZE", "NCCL_CGA_CLUSTER_SIZE", "NCCL_CHECKS_DISABLE", "NCCL_CHUNK_SIZE",
           "NCCL_CUMEM_ENABLE", "NCCL_GRAPH_FILE", "NCCL_LAUNCH_MODE", "NCCL_LL128_BUFFSIZE", "NCCL_LL128_NTHREADS",
           "NCCL_LL_BUFFSIZE", "NCCL_MAX_CTAS", "NCCL_MAX_NCHANNELS", "NCCL_MAX_NRINGS", "NCCL_MAX_P2P_NCHANNELS",
           "NCCL_MIN_CTAS", "NCCL_MIN_NCHANNELS", "NCCL_MIN_NRINGS", "NCCL_MIN_P2P_NCHANNELS",
           "NCCL_NCHANNELS_PER_PEER", "NCCL_NTHREADS", "NCCL_P2P_DIRECT_DISABLE", "NCCL_P2P_DISABLE",
           "NCCL_P2P_LEVEL", "NCCL_P2P_NVL_CHUNKSIZE", "NCCL_P2P_USE_CUDA_MEMCPY", "NCCL_PROTO",
           "NCCL_SINGLE_PROC_MEM_REG_ENABLE", "NCCL_SHM_DISABLE", "NCCL_TOPO_FILE", "CUDA_LAUNCH_BLOCKING")
# What stands for a variable of a configuration file, which only another value replaces. NCCL reads an empty number as
# its default, and an empty list of protocols or algorithms as none; at large sizes it would choose these anyway.
NEUTRAL = {"NCCL_ALGO": "Ring", "NCCL_PROTO": "Simple"}


def slowing_variables(environment=os.environ):
    """The variables of SLOWING that are set, in the order of SLOWING, each with what to set it to for a run without
    it; None removes it."""
    in_files = configured()
    replaced = {name: None for name in environment}
    replaced.update((name, NEUTRAL.get(name, "")) for name in in_files)
    return {name: replaced[name] for name in SLOWING if name in replaced}


def configured():
    """Names of the variables in NCCL's configuration files (initEnvFunc of src/misc/param.cc)."""
    paths = [os.environ.get("NCCL_CONF_FILE") or folder_of_user() + "/.nccl.conf", "/etc/nccl.conf"]
    names = set()
    for path in paths:
        try:
            lines = read_text(path).splitlines()
        except OSError:
            continue
        names.update(line.split("=")[0].strip() for line in lines if "=" in line and not line.startswith("#"))
    return names


def folder_of_user():
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a user without an entry, for whom NCCL reads no file either
        return ""


def runs_without(variables):
    """The lists of variables to leave out: all of them, and then each of several."""
    names = list(variables)
    return [names] + ([[name] for name in names] if len(names) > 1 else [])[:MOST_RUNS - 1]


def measured_without(variables, start, until):
    """[{variables, sizes, failed}] of each run. `start` makes a Run from the variables to set and the seconds left. A
    run that would not end before `until` is left out."""
    bodies, longest = [], 0.0
    for names in runs_without(variables):
        began = time.monotonic()
        if until - began < longest:
            break
        run = start({name: variables[name] for name in names}, until - began)
        sizes, failed = [], None
        try:
            Supervisor(run, Unheard(), lambda part: sizes.extend(size_of(part))).results()
        except StepFailed as failure:
            failed = failure.body
        bodies.append({"variables": names, "sizes": sizes, "failed": failed})
        longest = max(longest, time.monotonic() - began)
    return bodies


def size_of(part):
    """The size and samples of a part that is a measurement; else nothing."""
    if part["kind"] != "measurement":
        return []
    return [{"bytes": part["bytes"], "median_seconds": part["seconds_median"], "samples": part["samples"]}]


class Unheard(Report):
    """A report that drops everything: the run of interest is the one with the variables."""

    def __init__(self):
        super().__init__(None)

    def log(self, run, rank, line, left_out=None):
        pass
