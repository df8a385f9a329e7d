"""GPUDirect RDMA: tests by registration whether a device accepts GPU memory, through nvidia_peermem or DMA-BUF."""

import ctypes
import os
import re

from ncclcheck_probe.cuda_driver import CUDA_ATTRIBUTE_DMA_BUF_SUPPORTED, CUDA_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED
from ncclcheck_probe.cuda_driver import CUDA_POINTER, CUDA_RANGE_HANDLE_DMA_BUF_FD, CudaDriver
from ncclcheck_probe.readings import Readings, Unread
from ncclcheck_probe.sysfs import folder_names
from ncclcheck_probe.verbs import VERBS_ACCESS_LOCAL_WRITE, VERBS_ACCESS_REMOTE_READ, VERBS_ACCESS_REMOTE_WRITE
from ncclcheck_probe.verbs import VerbsError

# Files whose presence makes NCCL register GPU memory: the first since 2.23, the others in every release.
PEERMEM_FILES = ["/sys/module/nvidia_peermem/version", "/sys/kernel/mm/memory_peers/nv_mem/version",
                 "/sys/kernel/mm/memory_peers/nv_mem_nc/version"]
PEERMEM_MODULES = ["nvidia_peermem", "nv_peer_mem"]
# Linux 5.12 introduced the uverbs method that ibv_reg_dmabuf_mr calls.
DMABUF_KERNEL = (5, 12)
GPU_REGION_BYTES = 2 << 20


def gpu_direct_body(verbs, opened):
    """The body. `verbs` is None without libibverbs; `opened` maps each open device to its protection domain."""
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
    """True if the kernel's release has DMA-BUF registration. `device_dmabuf` shows whether the driver supports it."""
    release = os.uname().release
    match = re.match(r"(\d+)\.(\d+)", release)
    if not match:
        raise Unread("the kernel release %s has no version number" % release)
    return tuple(map(int, match.groups())) >= DMABUF_KERNEL


def dmabuf_call(verbs, pd):
    """NCCL's own test: registers descriptor -1, which must fail; errno shows whether the driver supports the call."""
    try:
        verbs.new("ibv_reg_dmabuf_mr", pd, 0, 0, 0, -1, 0)
    except VerbsError as error:
        return {"supported": error.error not in ("EOPNOTSUPP", "EPROTONOSUPPORT"), "error": error.error}
    except Unread as why:
        return {"supported": False, "error": str(why)}
    return {"supported": True}


def gpu_direct_gpus(verbs, opened):
    """For each GPU, CUDA's attributes and an attempt to register its memory with each device."""
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
    """Registers memory of one GPU with every device, through nvidia_peermem and through DMA-BUF."""
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
    """Outcome of one registration."""
    try:
        region = register(verbs, *arguments)
    except Unread as why:
        return {"ok": False, "error": str(why)}
    verbs.library.function("ibv_dereg_mr")(region)
    return {"ok": True}


def gpu_access():
    """The access flags that NCCL requests."""
    return VERBS_ACCESS_LOCAL_WRITE | VERBS_ACCESS_REMOTE_WRITE | VERBS_ACCESS_REMOTE_READ


def peermem_region(verbs, pd, pointer):
    """Registers by address alone: the kernel asks nvidia_peermem for the owner."""
    return verbs.new("ibv_reg_mr", pd, pointer.value, GPU_REGION_BYTES, gpu_access())


def dmabuf_region(verbs, pd, pointer, driver):
    """Registers by the DMA-BUF file descriptor that the driver exports for the memory."""
    descriptor = ctypes.c_int(-1)
    driver.call("cuMemGetHandleForAddressRange", ctypes.byref(descriptor), pointer, GPU_REGION_BYTES,
                CUDA_RANGE_HANDLE_DMA_BUF_FD, 0)
    try:
        return verbs.new("ibv_reg_dmabuf_mr", pd, 0, GPU_REGION_BYTES, pointer.value, descriptor.value, gpu_access())
    finally:
        os.close(descriptor.value)
