"""Step pytorch: imports PyTorch, reports its build, and runs a kernel on each GPU."""
import ctypes
import os
import re
import time
import warnings
from collections import namedtuple

from ncclcheck_probe.driver import driver_body
from ncclcheck_probe.facts import Facts, Unread, in_words
from ncclcheck_probe.gate import wait_at
from ncclcheck_probe.libraries import libraries_part, mapped_libraries
from ncclcheck_probe.torch_import import import_torch

KERNEL_ELEMENTS = 4096

Code = namedtuple("Code", "kind capability suffix text")


def probe_pytorch(arguments, report):
    torch, seconds = import_torch()
    report.part(libraries_part("import"))
    report.part(build_part(torch, seconds))  # before any CUDA call, which may hang or crash
    wait_at(arguments["gate"])
    facts = Facts()
    facts.body["driver"] = driver_body()
    cuda_facts(facts, torch)
    facts.read("nccl_loaded_version", loaded_nccl_version)
    report.part(libraries_part("cuda"))
    return facts.body


def build_part(torch, import_seconds):
    """Facts from torch's files, which need no GPU."""
    facts = Facts()
    facts.body.update(kind="build", import_seconds=import_seconds, version=torch.__version__)
    facts.read("file", lambda: torch.__file__)
    facts.read("git_version", lambda: torch.version.git_version)
    facts.read("cuda_version", lambda: torch.version.cuda)
    facts.read("config", lambda: torch.__config__.show())
    facts.read("distributed_available", torch.distributed.is_available)
    facts.read("nccl_available", lambda: torch.distributed.is_nccl_available())
    facts.read("nccl_version", lambda: version_text(torch.cuda.nccl.version()))
    facts.read("cudnn_version", torch.backends.cudnn.version)
    facts.read("arch_list", arch_list, torch)
    return facts.body


def arch_list(torch):
    """Architectures that torch has code for. torch.cuda.get_arch_list() would be empty without a GPU."""
    return torch._C._cuda_getArchFlags().split()


def version_text(version):
    """2.27.5. Releases before torch 1.10 return one number, such as 2708."""
    return ".".join(map(str, version)) if isinstance(version, tuple) else nccl_version_text(version)


def nccl_version_text(number):
    """NCCL's version number as text: 22705 is 2.27.5, and before 2.9 2708 was 2.7.8 (nccl.h, NCCL_VERSION)."""
    major, rest = divmod(number, 10000) if number >= 10000 else divmod(number, 1000)
    return "%d.%d.%d" % ((major,) + divmod(rest, 100))


def loaded_nccl_version():
    """Version of the libnccl.so in this process. torch.cuda.nccl.version() is the one that torch was compiled with."""
    path = next((path for path in mapped_libraries() if os.path.basename(path).startswith("libnccl.so")), None)
    if path is None:
        raise Unread("no libnccl.so is mapped in this process: NCCL is linked into torch, or not used")
    number = ctypes.c_int()
    code = ctypes.CDLL(path).ncclGetVersion(ctypes.byref(number))
    if code:
        raise Unread("ncclGetVersion of %s returned %d" % (path, code))
    return nccl_version_text(number.value)


def cuda_facts(facts, torch):
    """PyTorch's view of CUDA, and a kernel on each GPU."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        available = torch.cuda.is_available()
        facts.body.update(cuda_available=available, cuda_error=None if available else cuda_error(torch))
    facts.body["warnings"] = [str(warning.message) for warning in caught]
    devices = range(torch.cuda.device_count()) if available else range(0)
    facts.read("devices", lambda: [device_body(torch, index) for index in devices])
    facts.read("peer_access", lambda: [[None if one == other else torch.cuda.can_device_access_peer(one, other)
                                        for other in devices] for one in devices])


def cuda_error(torch):
    """PyTorch's own message on why it cannot use CUDA."""
    try:
        torch.cuda.init()
    except Exception as error:  # AssertionError of a build without CUDA, RuntimeError of the driver
        return in_words(error)
    return "torch.cuda.is_available() is False, yet CUDA initializes: %d devices" % torch.cuda.device_count()


def device_body(torch, index):
    facts = Facts()
    properties = torch.cuda.get_device_properties(index)
    capability = (properties.major, properties.minor)
    facts.body.update(index=index, name=properties.name, capability="%d.%d" % capability,
                      memory_bytes=properties.total_memory, multiprocessors=properties.multi_processor_count)
    kind, code = code_for(capability, arch_list(torch))
    facts.body.update(code=kind, code_from=code, kernel_correct=None, context_seconds=None, first_kernel_seconds=None,
                      second_kernel_seconds=None, error=None)
    try:
        facts.body.update(run_kernel(torch, index))
    except RuntimeError as error:
        facts.body["error"] = in_words(error)
    return facts.body


def run_kernel(torch, index):
    """Runs a small kernel twice, because with lazy loading the first run includes loading its code."""
    started = time.monotonic()
    values = torch.ones(KERNEL_ELEMENTS, device="cuda:%d" % index)
    torch.cuda.synchronize(index)
    seconds, correct = [time.monotonic() - started], True
    for _ in range(2):
        started = time.monotonic()
        correct = (values * 2 + 1).sum().item() == 3 * KERNEL_ELEMENTS and correct
        seconds.append(time.monotonic() - started)
    return {"kernel_correct": correct, "context_seconds": seconds[0], "first_kernel_seconds": seconds[1],
            "second_kernel_seconds": seconds[2]}


def code_for(capability, architectures):
    """The code of the build that a GPU of this capability runs, by the rules of CUDA's programming guide, as a pair of
    a kind and the code's name. Kinds: "exact" (its own machine code), "compatible" (machine code of a lower minor
    version of its major), "ptx" (compiled at load time); ("none", None) if it runs no code."""
    major, minor = capability
    codes = [code for code in map(parsed_code, architectures) if code]
    machine = [code for code in codes if code.kind == "sm" and code.capability[0] == major
               and (code.capability[1] == minor or code.capability[1] < minor and code.suffix != "a")]
    if machine:
        best = max(machine, key=lambda code: code.capability)
        return "exact" if best.capability == capability else "compatible", best.text
    virtual = [code for code in codes if code.kind == "compute" and code.capability <= capability and not code.suffix]
    return ("ptx", max(virtual, key=lambda code: code.capability).text) if virtual else ("none", None)


def parsed_code(text):
    """Parses a name such as sm_90a: capability 9.0, suffix a. Suffix a means this capability alone, f its family."""
    found = re.match(r"(sm|compute)_(\d+)(\d)([af]?)$", text)
    return found and Code(found.group(1), (int(found.group(2)), int(found.group(3))), found.group(4), text)
