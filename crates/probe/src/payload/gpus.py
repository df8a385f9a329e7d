"""The step `gpus`: the driver and every GPU as NVML reports them, and whether CUDA sees the same GPUs."""

import os
import re
import uuid

from ncclcheck_probe.cuda_driver import CudaDriver
from ncclcheck_probe.nvlink_traffic import nvlink_traffic
from ncclcheck_probe.nvml import nvlink_states, nvml_gpu_count, nvml_word, nvml_words, open_nvml
from ncclcheck_probe.nvml import NVML_ARCHITECTURES, NVML_CLOCKS, NVML_COMPUTE_MODES
from ncclcheck_probe.nvml import NVML_CLOCKS_EVENT_REASONS, NVML_ECC_COUNTERS, NVML_ECC_ERROR_TYPES, NVML_FABRIC_STATES
from ncclcheck_probe.nvml import NVML_FABRIC_CONFIGURATION_SHIFT, NVML_FABRIC_CONFIGURATIONS, NVML_FABRIC_HEALTH_ANSWERS
from ncclcheck_probe.nvml import NVML_FIELD_MEMORY_TEMPERATURE, NVML_FIELD_NVLINK_SPEED, NVML_NOT_FOUND, NvmlError
from ncclcheck_probe.nvml import NVML_NVLINK_COUNT_FIELDS, NVML_NVLINK_ERROR_COUNTERS, NVML_NVLINK_REMOTE_TYPES
from ncclcheck_probe.nvml import NVML_NVLINK_VERSIONS, NVML_RETIREMENT_CAUSES, NVML_RETURN_NAMES
from ncclcheck_probe.nvml import NVML_TEMPERATURE_SENSOR_GPU, NVML_TEMPERATURE_THRESHOLDS
from ncclcheck_probe.pci import pci_link_gts
from ncclcheck_probe.readings import Readings, Unread, errno_name, known
from ncclcheck_probe.sysfs import kernel_text, number_ranges

# Set by the container's or job's launcher. They select and number the GPUs that NVML and CUDA show.
GPU_VARIABLES = ["NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"]
INITIAL_PID_NAMESPACE = 0xEFFFFFFC  # PROC_PID_INIT_INO of include/linux/proc_ns.h
KERNEL_LOG = "/dev/kmsg"
KERNEL_LOG_RECORD_BYTES = 8192  # CONSOLE_EXT_LOG_MAX of kernel/printk, the longest record


def probe_gpus(plan, _report):
    return gpus(plan)


def gpus(plan):
    """The body of the step, with every GPU visible to this process. `plan` has no options for it."""
    nvml = open_nvml()
    seen, unreachable = gpu_bodies(nvml)
    return {
        "driver": gpu_driver_body(nvml),
        "environment": {name: os.environ[name] for name in GPU_VARIABLES if name in os.environ},
        "gpus": seen,
        "unreachable_gpus": unreachable,
        "cuda": cuda_body(seen),
        "xid": xid_body(),
    }


def gpu_driver_body(nvml):
    """The driver's user-space library, and the kernel module below it."""
    driver = Readings()
    driver.read("version", nvml.text, "nvmlSystemGetDriverVersion")
    driver.read("nvml_version", nvml.text, "nvmlSystemGetNVMLVersion")
    driver.read("cuda_version", lambda: cuda_release(nvml.value("nvmlSystemGetCudaDriverVersion_v2")))
    driver.read("nvml_library", nvml.library.path, "nvmlInit_v2")
    driver.read("kernel_module_version", kernel_text, "/sys/module/nvidia/version")
    driver.read("kernel_module", lambda: kernel_text("/proc/driver/nvidia/version").splitlines()[0])
    return driver.body()


def cuda_release(number):
    """`12.8` for 12080."""
    return "%d.%d" % (number // 1000, number % 1000 // 10)


def gpu_bodies(nvml):
    """(body of each GPU that NVML can open, index and reason of each GPU that it cannot)."""
    seen, unreachable = [], []
    devices = []
    for index in range(nvml_gpu_count(nvml)):
        try:
            device = nvml.device(index)
            seen.append(gpu_body(nvml, index, device))
            devices.append(device)
        except Unread as why:
            unreachable.append({"index": index, "why": str(why)})
    for body, traffic in zip(seen, nvlink_traffic(nvml, devices)):
        body["traffic"] = traffic
    return seen, unreachable


def gpu_body(nvml, index, device):
    """Body of one GPU."""
    gpu = Readings(index=index)
    gpu.read("uuid", nvml.text, "nvmlDeviceGetUUID", device)
    gpu.read("name", nvml.text, "nvmlDeviceGetName", device)
    address = gpu.read("pci_bus_id", nvml.pci_bus_id, "nvmlDeviceGetPciInfo_v3", device)
    gpu.read("serial", nvml.text, "nvmlDeviceGetSerial", device)
    gpu.read("minor_number", nvml.value, "nvmlDeviceGetMinorNumber", device)
    gpu.read("compute_capability", lambda: "%d.%d" % tuple(nvml.values("nvmlDeviceGetCudaComputeCapability", device)))
    gpu.read("architecture", lambda: nvml_word(NVML_ARCHITECTURES, nvml.value("nvmlDeviceGetArchitecture", device)))
    gpu.read("persistence_mode", nvml.flag, "nvmlDeviceGetPersistenceMode", device)
    gpu.read("compute_mode", lambda: nvml_word(NVML_COMPUTE_MODES, nvml.value("nvmlDeviceGetComputeMode", device)))
    gpu.read("compute_processes", nvml.count, "nvmlDeviceGetComputeRunningProcesses_v3", device)
    gpu.read("processes", lambda: [process_body(*process) for process in nvml.processes(device)])
    # A share of the last second or less: what other processes do, because this one computes nothing yet.
    gpu.read_together(["busy_percent", "memory_busy_percent"], nvml.utilization, device)
    gpu.fields["memory"] = gpu_memory(nvml, device)
    gpu.fields["mig"] = gpu_mig(nvml, device)
    gpu.fields["ecc"] = gpu_ecc(nvml, device)
    gpu.fields["remapped_rows"] = gpu_remapped_rows(nvml, device)
    gpu.fields["retired_pages"] = gpu_retired_pages(nvml, device)
    gpu.fields["clocks"] = gpu_clocks(nvml, device)
    gpu.fields["temperature"] = gpu_temperature(nvml, device)
    gpu.fields["power"] = gpu_power(nvml, device)
    gpu.fields["pcie"] = gpu_pcie(nvml, device, address)
    gpu.read_together(["nvlinks", "nvlinks_unread"], gpu_nvlinks, nvml, device)
    gpu.fields["fabric"] = gpu_fabric(nvml, device)
    return gpu.body()


def process_body(pid, used_bytes):
    """A process with a context on a GPU."""
    process = Readings(pid=pid)
    process.read("name", process_name, pid)
    process.read("used_bytes", process_memory, used_bytes)
    return process.body()


def process_name(pid):
    """NVML counts processes of the whole host, so a number means the same process only in the host's PID namespace."""
    if os.stat("/proc/self/ns/pid").st_ino != INITIAL_PID_NAMESPACE:
        raise Unread("this container has a PID namespace of its own: run with --pid host")
    return kernel_text("/proc/%d/comm" % pid)


def process_memory(used_bytes):
    if used_bytes is None:
        raise Unread("the driver does not report it")
    return used_bytes


def gpu_memory(nvml, device):
    """Device memory in bytes. `reserved` is what the driver keeps for itself; `used` does not include it."""
    memory = Readings()
    memory.read_together(["total_bytes", "reserved_bytes", "free_bytes", "used_bytes"], nvml.memory, device)
    return memory.body()


def gpu_mig(nvml, device):
    """Multi-Instance GPU: whether it is on now, whether it will be after a reset, and the visible instances."""
    mig = Readings()
    mig.read_together(["enabled", "pending"], nvml.flags, "nvmlDeviceGetMigMode", device)
    mig.read("devices", lambda: list(mig_devices(nvml, device)))
    return mig.body()


def mig_devices(nvml, device):
    """The MIG devices of a GPU. Their indices may have gaps."""
    for index in range(nvml.value("nvmlDeviceGetMaxMigDeviceCount", device)):
        try:
            instance = nvml.value("nvmlDeviceGetMigDeviceHandleByIndex", device, index)
        except NvmlError as error:
            if error.code == NVML_NOT_FOUND:
                continue
            raise
        body = Readings(index=index)
        body.read("uuid", nvml.text, "nvmlDeviceGetUUID", instance)
        body.read("name", nvml.text, "nvmlDeviceGetName", instance)
        body.read("gpu_instance", nvml.value, "nvmlDeviceGetGpuInstanceId", instance)
        body.read("compute_instance", nvml.value, "nvmlDeviceGetComputeInstanceId", instance)
        body.fields["memory"] = gpu_memory(nvml, instance)
        yield body.body()


def gpu_ecc(nvml, device):
    """ECC mode and error counts: volatile since the driver was loaded, aggregate over the GPU's lifetime."""
    ecc = Readings()
    ecc.read_together(["enabled", "pending"], nvml.flags, "nvmlDeviceGetEccMode", device)
    for counter, counter_number in NVML_ECC_COUNTERS.items():
        for kind, kind_number in NVML_ECC_ERROR_TYPES.items():
            ecc.read("%s_%s" % (counter, kind), nvml.value, "nvmlDeviceGetTotalEccErrors", device, kind_number,
                     counter_number)
    return ecc.body()


def gpu_remapped_rows(nvml, device):
    """Remapped memory rows (Ampere and later). `pending`: remapped at the next reset; `failure`: no spare row left."""
    rows = Readings()
    rows.read_together(["correctable", "uncorrectable", "pending", "failure"], gpu_row_counts, nvml, device)
    return rows.body()


def gpu_row_counts(nvml, device):
    """(correctable, uncorrectable, pending, failure): two counts and two flags."""
    correctable, uncorrectable, pending, failure = nvml.values("nvmlDeviceGetRemappedRows", device)
    return correctable, uncorrectable, bool(pending), bool(failure)


def gpu_retired_pages(nvml, device):
    """Retired memory pages by cause, on GPUs before Ampere."""
    pages = Readings()
    for cause, number in NVML_RETIREMENT_CAUSES.items():
        pages.read(cause, nvml.count, "nvmlDeviceGetRetiredPages", device, number)
    pages.read("pending", nvml.flag, "nvmlDeviceGetRetiredPagesPendingStatus", device)
    return pages.body()


def gpu_clocks(nvml, device):
    """Current, maximum and application clocks, and the reasons why they are not higher now."""
    clocks = Readings()
    for name, number in NVML_CLOCKS.items():
        clocks.read("%s_mhz" % name, nvml.value, "nvmlDeviceGetClockInfo", device, number)
        clocks.read("%s_max_mhz" % name, nvml.value, "nvmlDeviceGetMaxClockInfo", device, number)
        clocks.read("%s_application_mhz" % name, nvml.value, "nvmlDeviceGetApplicationsClock", device, number)
    mask = clocks.read("event_reasons_mask", nvml.clock_limits, device)
    if mask is None:
        clocks.give_up(["event_reasons"], clocks.unread["event_reasons_mask"])
    else:
        clocks.fields["event_reasons"] = nvml_words(NVML_CLOCKS_EVENT_REASONS, mask)
    return clocks.body()


def gpu_temperature(nvml, device):
    """Current temperatures and the thresholds of slowdown and shutdown, in degrees Celsius."""
    temperature = Readings()
    temperature.read("gpu_celsius", nvml.value, "nvmlDeviceGetTemperature", device, NVML_TEMPERATURE_SENSOR_GPU)
    temperature.read("memory_celsius", nvml.field, device, NVML_FIELD_MEMORY_TEMPERATURE)
    for name, number in NVML_TEMPERATURE_THRESHOLDS.items():
        temperature.read("%s_celsius" % name, nvml.value, "nvmlDeviceGetTemperatureThreshold", device, number)
    return temperature.body()


def gpu_power(nvml, device):
    """Current power draw, the enforced limit (the lowest of all limits set) and the default limit."""
    power = Readings()
    power.read("now_milliwatts", nvml.value, "nvmlDeviceGetPowerUsage", device)
    power.read("limit_milliwatts", nvml.value, "nvmlDeviceGetEnforcedPowerLimit", device)
    power.read("default_limit_milliwatts", nvml.value, "nvmlDeviceGetPowerManagementDefaultLimit", device)
    return power.body()


def gpu_pcie(nvml, device, address):
    """
    The current PCIe link, the maximum of this system, and the maximum of the GPU.

    Generation and width may be lower while the GPU is idle (manual of nvidia-smi).
    """
    pcie = Readings()
    pcie.read("generation", nvml.value, "nvmlDeviceGetCurrPcieLinkGeneration", device)
    pcie.read("generation_max", nvml.value, "nvmlDeviceGetMaxPcieLinkGeneration", device)
    pcie.read("generation_gpu_max", nvml.value, "nvmlDeviceGetGpuMaxPcieLinkGeneration", device)
    pcie.read("width", nvml.value, "nvmlDeviceGetCurrPcieLinkWidth", device)
    pcie.read("width_max", nvml.value, "nvmlDeviceGetMaxPcieLinkWidth", device)
    pcie.read("replays", nvml.value, "nvmlDeviceGetPcieReplayCounter", device)
    pcie.read("speed_gts", lambda: pci_link_gts(known(address, "its PCI address"), "current"))
    pcie.read("speed_max_gts", lambda: pci_link_gts(known(address, "its PCI address"), "max"))
    return pcie.body()


def gpu_nvlinks(nvml, device):
    """
    The GPU's NVLinks, and the reasons for their missing fields, as a pair.

    Eight GPUs have 144 links, which mostly miss the same fields for the same reasons, so the reasons are beside the
    list, once for all links. `errors` has the nonzero counters.
    """
    states = dict(nvlink_states(nvml, device))
    links, unread = {link: {"link": link, "errors": {}} for link in states}, {}
    fields = {
        "active": lambda link: nvlink_state(states[link]),
        "version": lambda link: nvml_word(NVML_NVLINK_VERSIONS, nvml.value("nvmlDeviceGetNvLinkVersion", device, link)),
        "speed_mbytes_per_s": lambda link: nvml.field(device, NVML_FIELD_NVLINK_SPEED, link),
        "remote_type": lambda link: nvml_word(NVML_NVLINK_REMOTE_TYPES, nvml.value(
            "nvmlDeviceGetNvLinkRemoteDeviceType", device, link)),
        "remote_pci_bus_id": lambda link: nvml.pci_bus_id("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link),
    }
    for name, read in fields.items():
        for link, value in gpu_nvlink_values(links, name, read, unread):
            links[link][name] = value
    for name, read in gpu_nvlink_counters(nvml, device).items():
        for link, value in gpu_nvlink_values(links, "errors." + name, read, unread):
            if value:
                links[link]["errors"][name] = value
    return list(links.values()), unread


def gpu_nvlink_counters(nvml, device):
    """Maps each error counter to the function that reads it from a link."""
    counters = {}
    for name, counter in NVML_NVLINK_ERROR_COUNTERS.items():
        counters[name] = lambda link, number=counter: nvml.value(
            "nvmlDeviceGetNvLinkErrorCounter", device, link, number)
    for name, field in NVML_NVLINK_COUNT_FIELDS.items():
        counters[name] = lambda link, number=field: nvml.field(device, number, link)
    return counters


def gpu_nvlink_values(links, name, read, unread):
    """[(link, value)] of the readable links. Adds each reason of the other links to `unread` once, with its links."""
    values, failures = [], {}
    for link in links:
        try:
            values.append((link, read(link)))
        except Unread as why:
            failures.setdefault(str(why), []).append(link)
    if failures:
        unread[name] = "; ".join("links %s: %s" % (number_ranges(failed), why) for why, failed in failures.items())
    return values


def nvlink_state(state):
    """Returns the bool of nvlink_states, or raises its NvmlError."""
    if isinstance(state, NvmlError):
        raise state
    return state


def gpu_fabric(nvml, device):
    """The GPU's registration with the fabric manager. GPUs behind NVSwitches reach no peer without it."""
    fabric = Readings()
    info = fabric.read("state", nvml.fabric, device)
    if info is None:
        fabric.give_up(["status", "cluster_uuid", "clique", "configuration", *NVML_FABRIC_HEALTH_ANSWERS],
                       fabric.unread["state"])
        return fabric.body()
    fabric.fields["state"] = nvml_word(NVML_FABRIC_STATES, info.state)
    fabric.fields["status"] = "SUCCESS" if info.status == 0 else nvml_word(NVML_RETURN_NAMES, info.status)
    fabric.fields["cluster_uuid"] = str(uuid.UUID(bytes=bytes(info.clusterUuid)))
    fabric.fields["clique"] = info.cliqueId
    for name, shift in NVML_FABRIC_HEALTH_ANSWERS.items():
        fabric.read(name, fabric_health_answer, info.healthMask >> shift & 3)
    fabric.read("configuration", fabric_configuration, info.healthMask >> NVML_FABRIC_CONFIGURATION_SHIFT & 0xF)
    return fabric.body()


def fabric_health_answer(bits):
    """A two-bit field of the health mask, as a bool."""
    if bits not in (1, 2):
        raise Unread("the fabric's health mask has no answer: %d" % bits)
    return bits == 1


def fabric_configuration(number):
    """`correct`, or the part of the configuration that is incorrect."""
    if number == 0:
        raise Unread("the fabric's health mask has no answer: 0")
    return nvml_word(NVML_FABRIC_CONFIGURATIONS, number)


def cuda_body(seen):
    """CUDA's own list of GPUs, and its differences from NVML's `seen`."""
    cuda = Readings()
    try:
        driver = CudaDriver()
    except Unread as why:
        cuda.give_up(["library", "library_version", "in_compat_folder", "cuda_version", "devices", "only_nvml_sees",
                      "only_cuda_sees"], why)
        return cuda.body()
    cuda.read("library", driver.library.path, "cuInit")
    cuda.read("library_version", lambda: library_release(known(cuda.fields["library"], "its file")))
    cuda.read("in_compat_folder", lambda: "compat" in known(cuda.fields["library"], "its file").split("/"))
    cuda.read("cuda_version", lambda: cuda_release(driver.number("cuDriverGetVersion")))
    devices = cuda.read("devices", cuda_devices, driver)
    if devices is None:
        cuda.give_up(["only_nvml_sees", "only_cuda_sees"], cuda.unread["devices"])
    else:
        cuda.fields.update(cuda_differences(devices, seen))
    return cuda.body()


def library_release(path):
    """
    The driver release in the file name of its library: 580.95.05 for libcuda.so.580.95.05.

    A release other than the driver's own means a forward-compatibility library from the image.
    """
    match = re.search(r"\.so\.(\d+\.[\d.]+)$", path)
    if not match:
        raise Unread("the file name %s has no release" % path)
    return match.group(1)


def cuda_devices(driver):
    """CUDA's devices by ordinal."""
    driver.initialize()
    bodies = []
    for ordinal, device in enumerate(driver.devices()):
        body = Readings(ordinal=ordinal)
        body.read("uuid", driver.uuid, device)
        body.read("name", driver.text, "cuDeviceGetName", device)
        body.read("pci_bus_id", driver.pci_bus_id, device)
        bodies.append(body.body())
    return bodies


def cuda_differences(devices, seen):
    """UUIDs of GPUs (of MIG devices, if a GPU is partitioned) that only NVML or only CUDA lists."""
    nvml_uuids = {bare_uuid(name): name for gpu in seen for name in schedulable_uuids(gpu)}
    cuda_uuids = [device["uuid"] for device in devices if device["uuid"]]
    return {
        "only_nvml_sees": [name for bare, name in nvml_uuids.items() if bare not in cuda_uuids],
        "only_cuda_sees": [bare for bare in cuda_uuids if bare not in nvml_uuids],
    }


def schedulable_uuids(gpu):
    """UUIDs that a program can be assigned: those of the GPU's MIG devices, or of the GPU itself."""
    devices = gpu["mig"]["devices"] if gpu["mig"]["enabled"] else [gpu]
    return [device["uuid"] for device in devices or [] if device["uuid"]]


def bare_uuid(name):
    """NVML's UUID without its prefix GPU- or MIG-."""
    return name.split("-", 1)[1]


def xid_body():
    """Xid errors. The driver records them only in the kernel's log; NVML has no history of them."""
    xid = Readings()
    xid.read("events", lambda: [event for event in map(xid_event, kernel_messages()) if event])
    return xid.body()


def xid_event(record):
    """The Xid in a record of /dev/kmsg (`priority,sequence,microseconds since boot,flags;text`), or None."""
    head, _, text = record.partition(";")
    match = re.match(r"NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+)", text)
    if not match:
        return None
    return {"pci": match.group(1).lower(), "xid": int(match.group(2)), "boot_time_us": int(head.split(",")[2]),
            "text": text.splitlines()[0]}


def kernel_messages():
    """The records of the kernel's log."""
    try:
        log = os.open(KERNEL_LOG, os.O_RDONLY | os.O_NONBLOCK)
        try:
            return list(log_records(log))
        finally:
            os.close(log)
    except OSError as error:
        why = errno_name(error.errno)
        raise Unread("%s: %s. Only the host's log records Xid errors." % (KERNEL_LOG, why)) from None


def log_records(log):
    """Yields one record per read(2), until none is left."""
    while True:
        try:
            yield os.read(log, KERNEL_LOG_RECORD_BYTES).decode("utf-8", "replace")
        except BrokenPipeError:
            continue  # The record was overwritten before it was read; the next read continues after it.
        except BlockingIOError:
            return
