"""GPUDirect RDMA: whether a device can register GPU memory, by nvidia_peermem or DMA-BUF, found by registering some."""

import ctypes
import os
import re

from ncclcheck_probe.cuda_driver import CUDA_ATTRIBUTE_DMA_BUF_SUPPORTED, CUDA_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED
from ncclcheck_probe.cuda_driver import CUDA_POINTER, CUDA_RANGE_HANDLE_DMA_BUF_FD, CudaDriver
from ncclcheck_probe.readings import Readings, Unread
from ncclcheck_probe.sysfs import folder_names
from ncclcheck_probe.verbs import VERBS_ACCESS_LOCAL_WRITE, VERBS_ACCESS_REMOTE_READ, VERBS_ACCESS_REMOTE_WRITE
from ncclcheck_probe.verbs import VerbsError

# The files by which NCCL decides that GPU memory can be registered: the first since 2.23, the others in every release.
PEERMEM_FILES = ["/sys/module/nvidia_peermem/version", "/sys/kernel/mm/memory_peers/nv_mem/version",
                 "/sys/kernel/mm/memory_peers/nv_mem_nc/version"]
PEERMEM_MODULES = ["nvidia_peermem", "nv_peer_mem"]
# Linux 5.12 has the uverbs method by which ibv_reg_dmabuf_mr registers.
DMABUF_KERNEL = (5, 12)
GPU_REGION_BYTES = 2 << 20


def gpu_direct_body(verbs, opened):
    """`verbs` is None without libibverbs; `opened` maps each device that could be opened to its protection domain."""
    body = Readings(kernel_release=os.uname().release)
    body.read("kernel_has_dmabuf", kernel_has_dmabuf)
    body.fields["peermem_modules"] = [name for name in PEERMEM_MODULES if os.path.isdir("/sys/module/" + name)]
    body.fields["peermem_files"] = [path for path in PEERMEM_FILES if os.path.exists(path)]
    body.read("memory_peers", folder_names, "/sys/kernel/mm/memory_peers")
    body.fields["libibverbs_has_dmabuf"] = verbs is not None and verbs.library.has("ibv_reg_dmabuf_mr")
    body.fields["device_dmabuf"] = [dict(device=name, **dmabuf_call(verbs, pd)) for name, pd in opened.items()]
    body.read("gpus", gpu_direct_gpus, verbs, opened)
    return body.body()


def kernel_has_dmabuf():
    """By the kernel's release; what a driver makes of it is told by `device_dmabuf`."""
    release = os.uname().release
    match = re.match(r"(\d+)\.(\d+)", release)
    if not match:
        raise Unread("a kernel release without numbers: %s" % release)
    return tuple(map(int, match.groups())) >= DMABUF_KERNEL


def dmabuf_call(verbs, pd):
    """NCCL's own test: a call that must fail, since -1 is no descriptor, tells by errno whether it was looked at."""
    try:
        verbs.new("ibv_reg_dmabuf_mr", pd, 0, 0, 0, -1, 0)
    except VerbsError as error:
        return {"supported": error.error not in ("EOPNOTSUPP", "EPROTONOSUPPORT"), "error": error.error}
    except Unread as why:
        return {"supported": False, "error": str(why)}
    return {"supported": True}


def gpu_direct_gpus(verbs, opened):
    """What CUDA says of each GPU, and a registration of its memory with each device."""
    driver = CudaDriver()
    driver.initialize()
    return [gpu_direct_gpu(driver, device, verbs, opened) for device in driver.devices()]


def gpu_direct_gpu(driver, device, verbs, opened):
    """One GPU."""
    gpu = Readings()
    gpu.read("pci_bus_id", driver.pci_bus_id, device)
    gpu.read("dma_buf_supported", lambda: bool(driver.number(
        "cuDeviceGetAttribute", CUDA_ATTRIBUTE_DMA_BUF_SUPPORTED, device)))
    gpu.read("gpu_direct_rdma_supported", lambda: bool(driver.number(
        "cuDeviceGetAttribute", CUDA_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, device)))
    if opened:
        gpu.read("registrations", gpu_registrations, driver, device, verbs, opened)
    else:
        gpu.fields["registrations"] = []
    return gpu.body()


def gpu_registrations(driver, device, verbs, opened):
    """Registers memory of one GPU with every device, in both ways."""
    driver.call("cuCtxSetCurrent", driver.number("cuDevicePrimaryCtxRetain", device))
    try:
        pointer = CUDA_POINTER()
        driver.call("cuMemAlloc_v2", ctypes.byref(pointer), GPU_REGION_BYTES)
        try:
            return [{"device": name, "peermem": gpu_registration(verbs, peermem_region, pd, pointer),
                     "dmabuf": gpu_registration(verbs, dmabuf_region, pd, pointer, driver)}
                    for name, pd in opened.items()]
        finally:
            driver.call("cuMemFree_v2", pointer)
    finally:
        driver.call("cuDevicePrimaryCtxRelease_v2", device)


def gpu_registration(verbs, register, *arguments):
    """The outcome of one way to register."""
    try:
        region = register(verbs, *arguments)
    except Unread as why:
        return {"ok": False, "error": str(why)}
    verbs.library.function("ibv_dereg_mr")(region)
    return {"ok": True}


def gpu_access():
    """What NCCL asks for."""
    return VERBS_ACCESS_LOCAL_WRITE | VERBS_ACCESS_REMOTE_WRITE | VERBS_ACCESS_REMOTE_READ


def peermem_region(verbs, pd, pointer):
    """By the address alone: the kernel asks nvidia_peermem whose it is."""
    return verbs.new("ibv_reg_mr", pd, pointer.value, GPU_REGION_BYTES, gpu_access())


def dmabuf_region(verbs, pd, pointer, driver):
    """By a file descriptor that the driver gives for the memory."""
    descriptor = ctypes.c_int(-1)
    driver.call("cuMemGetHandleForAddressRange", ctypes.byref(descriptor), pointer, GPU_REGION_BYTES,
                CUDA_RANGE_HANDLE_DMA_BUF_FD, 0)
    try:
        return verbs.new("ibv_reg_dmabuf_mr", pd, 0, GPU_REGION_BYTES, pointer.value, descriptor.value, gpu_access())
    finally:
        os.close(descriptor.value)
