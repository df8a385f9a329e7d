"""A stand-in for PyTorch: the part that the payload calls, on Python lists, with ranks that communicate over a socket.

It lets tests run without PyTorch how the payload starts, follows, times and checks ranks. It is slow, and tests nothing of
PyTorch itself. TORCH_GPUS is the number of GPUs that it claims to have. TORCH_FAULT injects a fault, as three words: the fault
(spoil, crash, freeze, raise, refuse, exit, warn), the operation (or `every`), and the rank or GPU.
"""
import collections
import ctypes
import os
import types
import warnings

__version__ = "0.0.0+stand.in"
version = types.SimpleNamespace(git_version="0" * 40, cuda="13.0" if "TORCH_GPUS" in os.environ else None)
__config__ = types.SimpleNamespace(show=lambda: "no PyTorch: a stand-in of the tests")
backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: None))
_C = types.SimpleNamespace(_cuda_getArchFlags=lambda: "sm_80 sm_90 compute_90")

dtype = collections.namedtuple("dtype", "name size")
float16, bfloat16, float32, float64 = dtype("float16", 2), dtype("bfloat16", 2), dtype("float32", 4), dtype("float64", 8)
int64, uint8, bool8 = dtype("int64", 8), dtype("uint8", 1), dtype("bool", 1)


def planted(what, operation, number):
    """True if TORCH_FAULT requests this fault here."""
    fault = os.environ.get("TORCH_FAULT", "").split()
    return fault in ([what, operation, str(number)], [what, "every", str(number)])


class device:
    """A device: cpu, or cuda with an index, as in device("cuda:1") and device("cuda", 1)."""

    def __init__(self, kind, index=None):
        self.type, _, number = str(kind).partition(":")
        self.index = int(number) if number else index

    def __str__(self):
        return self.type if self.index is None else "%s:%d" % (self.type, self.index)


class Tensor:
    """A one-dimensional tensor: a list, or a part of a list that it shares with other tensors."""

    def __init__(self, numbers, type_of, where="cpu", start=0, length=None):
        self.numbers, self.dtype, self.start = numbers, type_of, start
        self.device = where if isinstance(where, device) else device(where)
        self.length = len(numbers) if length is None else length

    def tolist(self):
        return self.numbers[self.start:self.start + self.length]

    def numel(self):
        return self.length

    __len__ = numel

    def element_size(self):
        return self.dtype.size

    def __getitem__(self, key):
        if isinstance(key, slice):
            start, stop, _ = key.indices(self.length)
            return Tensor(self.numbers, self.dtype, self.device, self.start + start, max(0, stop - start))
        return Tensor(self.numbers, self.dtype, self.device, self.start + key, 1)

    def __setitem__(self, key, other):
        part = self[key]
        new = other.tolist() if isinstance(other, Tensor) else [other] * part.length
        assert len(new) == part.length, "%d numbers do not fit into %d" % (len(new), part.length)
        self.numbers[part.start:part.start + part.length] = new

    def fill_(self, number):
        self[:] = number

    def to(self, type_of):
        return Tensor(self.tolist(), type_of, self.device)

    def combined(self, other, function, type_of=None):
        others = other.tolist() if isinstance(other, Tensor) else [other] * self.length
        return Tensor(list(map(function, self.tolist(), others)), type_of or self.dtype, self.device)

    def __add__(self, other):
        return self.combined(other, lambda one, two: one + two)

    __radd__ = __add__

    def __mul__(self, other):
        return self.combined(other, lambda one, two: one * two)

    def __mod__(self, other):
        return self.combined(other, lambda one, two: one % two)

    def __ne__(self, other):
        return self.combined(other, lambda one, two: one != two, bool8)

    def nonzero(self):
        return [index for index, number in enumerate(self.tolist()) if number]

    def sum(self):
        return Tensor([sum(self.tolist())], self.dtype, self.device)

    def item(self):
        number, = self.tolist()
        return number

    def __int__(self):
        return int(self.item())

    def __float__(self):
        return float(self.item())


def tensor(numbers, dtype=float32, device="cpu"):
    return Tensor(list(numbers), dtype, device)


def zeros(length, dtype=float32, device="cpu"):
    return tensor([0] * length, dtype, device)


def empty(length, dtype=float32, device="cpu"):
    return tensor([float("nan")] * length, dtype, device)


def arange(start, end, dtype=int64, device="cpu"):
    return tensor(range(start, end), dtype, device)


def ones(length, dtype=float32, device="cpu"):
    made = tensor([1] * length, dtype, device)
    if planted("raise", "ones", made.device.index):
        raise RuntimeError("CUDA error: no kernel image is available for execution on the device")
    if planted("refuse", "ones", made.device.index):
        raise RuntimeError("CUDA error: CUDA-capable device(s) is/are busy or unavailable")
    if planted("spoil", "ones", made.device.index):
        made[0] = 2
    return made


class cuda:
    """torch.cuda with GPUs that compute on the CPU."""

    Properties = collections.namedtuple("Properties", "name major minor total_memory multi_processor_count")
    nccl = types.SimpleNamespace(version=lambda: (2, 28, 9))

    @staticmethod
    def device_count():
        return int(os.environ.get("TORCH_GPUS", "0"))

    @classmethod
    def is_available(cls):
        if planted("warn", "is_available", 0):
            warnings.warn("CUDA initialization: Unexpected error from cudaGetDeviceCount()")
        return cls.device_count() > 0 and not planted("raise", "is_available", 0)

    @classmethod
    def init(cls):
        if not cls.device_count():
            raise AssertionError("Torch not compiled with CUDA enabled")

    @classmethod
    def get_device_properties(cls, _index):
        return cls.Properties("Stand-in", 9, 0, 1 << 30, 132)

    @staticmethod
    def can_device_access_peer(one, other):
        return one != other

    @staticmethod
    def set_device(_device):
        pass

    @staticmethod
    def synchronize(_device):
        pass

    @staticmethod
    def mem_get_info(_device):
        return 1 << 30, 1 << 30


if cuda.device_count():  # a build with CUDA maps it on import
    ctypes.CDLL("libnccl.so.2")

from torch import distributed  # noqa: E402,F401
