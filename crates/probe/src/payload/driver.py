"""CUDA's driver library through ctypes: facts from the library itself, without PyTorch."""
import ctypes

from ncclcheck_probe.facts import Facts, Unread

CUDA_LIBRARY = "libcuda.so.1"


def driver_body():
    """{library, init_code, init_error, version, devices}. The version is CUDA's: 13000 is 13.0. init_error is null if
    the driver initialized."""
    facts = Facts()
    facts.body["library"] = CUDA_LIBRARY
    try:
        cuda = ctypes.CDLL(CUDA_LIBRARY)
    except OSError as error:
        for field in ("init_code", "init_error", "version", "devices"):
            facts.missing(field, str(error))
        return facts.body
    code = cuda.cuInit(0)
    facts.body.update(init_code=code, init_error=cuda_words(cuda, code) if code else None)
    facts.read("version", asked_number, cuda, "cuDriverGetVersion")
    facts.read("devices", asked_number, cuda, "cuDeviceGetCount")
    return facts.body


def asked_number(cuda, function):
    value = ctypes.c_int()
    code = getattr(cuda, function)(ctypes.byref(value))
    if code:
        raise Unread("%s: %s" % (function, cuda_words(cuda, code)))
    return value.value


def cuda_words(cuda, code):
    """CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected"""
    name, text = ctypes.c_char_p(), ctypes.c_char_p()
    if cuda.cuGetErrorName(code, ctypes.byref(name)) or cuda.cuGetErrorString(code, ctypes.byref(text)):
        return "CUDA error %d, unknown to this driver" % code
    return "%s (%d): %s" % (name.value.decode(), code, text.value.decode())
