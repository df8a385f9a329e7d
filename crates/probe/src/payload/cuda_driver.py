"""
The CUDA driver API, for facts that only CUDA has: the GPUs it offers, their order, and peer access between them.

Signatures, structures and constants are those of cuda.h of CUDA 12.9 (wheel nvidia-cuda-runtime-cu12 12.9.79).
"""

import ctypes
import uuid

from ncclcheck_probe.foreign import ForeignLibrary
from ncclcheck_probe.nvml import sysfs_pci_address
from ncclcheck_probe.readings import Unread

CUDA_TEXT_BYTES = 256

CUDA_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED = 116
CUDA_ATTRIBUTE_DMA_BUF_SUPPORTED = 124
CUDA_P2P_ATTRIBUTES = {"performance_rank": 1, "access_supported": 2, "native_atomics_supported": 3,
                       "array_access_supported": 4}
CUDA_RANGE_HANDLE_DMA_BUF_FD = 1


class CudaUuid(ctypes.Structure):
    """CUuuid."""
    _fields_ = [("bytes", ctypes.c_ubyte * 16)]


CUDA_DEVICE = ctypes.c_int
CUDA_POINTER = ctypes.c_ulonglong
CUDA_INT_OUT = ctypes.POINTER(ctypes.c_int)

CUDA_PARAMETERS = {
    "cuInit": [ctypes.c_uint],
    "cuGetErrorName": [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)],
    "cuDriverGetVersion": [CUDA_INT_OUT],
    "cuDeviceGetCount": [CUDA_INT_OUT],
    "cuDeviceGet": [ctypes.POINTER(CUDA_DEVICE), ctypes.c_int],
    "cuDeviceGetName": [ctypes.c_char_p, ctypes.c_int, CUDA_DEVICE],
    "cuDeviceGetUuid_v2": [ctypes.POINTER(CudaUuid), CUDA_DEVICE],
    "cuDeviceGetPCIBusId": [ctypes.c_char_p, ctypes.c_int, CUDA_DEVICE],
    "cuDeviceGetAttribute": [CUDA_INT_OUT, ctypes.c_int, CUDA_DEVICE],
    "cuDeviceCanAccessPeer": [CUDA_INT_OUT, CUDA_DEVICE, CUDA_DEVICE],
    "cuDeviceGetP2PAttribute": [CUDA_INT_OUT, ctypes.c_int, CUDA_DEVICE, CUDA_DEVICE],
    "cuDevicePrimaryCtxRetain": [ctypes.POINTER(ctypes.c_void_p), CUDA_DEVICE],
    "cuDevicePrimaryCtxRelease_v2": [CUDA_DEVICE],
    "cuCtxSetCurrent": [ctypes.c_void_p],
    "cuMemAlloc_v2": [ctypes.POINTER(CUDA_POINTER), ctypes.c_size_t],
    "cuMemFree_v2": [CUDA_POINTER],
    "cuMemGetHandleForAddressRange": [ctypes.c_void_p, CUDA_POINTER, ctypes.c_size_t, ctypes.c_int,
                                      ctypes.c_ulonglong],
}


class CudaDriver:
    """libcuda, initialized. Every method raises Unread if it gets no value."""

    def __init__(self):
        signatures = {name: [ctypes.c_int] + parameters for name, parameters in CUDA_PARAMETERS.items()}
        self.library = ForeignLibrary("libcuda.so.1", signatures)

    def initialize(self):
        """Calls cuInit, which every function except cuDriverGetVersion requires."""
        self.call("cuInit", 0)

    def call(self, name, *arguments):
        """Calls the function `name`, which returns a CUresult."""
        code = self.library.function(name)(*arguments)
        if code != 0:
            raise Unread("%s: %s (%d)" % (name, self.error_name(code), code))

    def error_name(self, code):
        """`CUDA_ERROR_NO_DEVICE` for 100."""
        name = ctypes.c_char_p()
        self.library.function("cuGetErrorName")(code, ctypes.byref(name))
        return name.value.decode("ascii", "replace") if name.value else "an error unknown to this driver"

    def number(self, name, *inputs):
        """The number that `name` writes through its first parameter; `inputs` are the parameters after it."""
        output = CUDA_PARAMETERS[name][0]._type_()
        self.call(name, ctypes.byref(output), *inputs)
        return output.value

    def text(self, name, device):
        """The text that `name` writes into a buffer of the given size."""
        buffer = ctypes.create_string_buffer(CUDA_TEXT_BYTES)
        self.call(name, buffer, CUDA_TEXT_BYTES, device)
        return buffer.value.decode("utf-8", "replace")

    def devices(self):
        """Devices that CUDA offers here, by ordinal: the selection and order of CUDA_VISIBLE_DEVICES."""
        return [self.number("cuDeviceGet", ordinal) for ordinal in range(self.number("cuDeviceGetCount"))]

    def uuid(self, device):
        """The UUID, without the prefix `GPU-` or `MIG-` that NVML adds."""
        answer = CudaUuid()
        self.call("cuDeviceGetUuid_v2", ctypes.byref(answer), device)
        return str(uuid.UUID(bytes=bytes(answer.bytes)))

    def pci_bus_id(self, device):
        """The PCI address in sysfs's spelling."""
        return sysfs_pci_address(self.text("cuDeviceGetPCIBusId", device))
