"""NVML, the management library of NVIDIA's driver.

Signatures, structures and constants are those of nvml.h (NVML API version 13, wheel nvidia-nvml-dev 13.5.37).
"""

import ctypes
import re

from ncclcheck_probe.foreign import ForeignLibrary
from ncclcheck_probe.readings import Unread, first_readable
from ncclcheck_probe.task import Skipped

NVML_RETURN_NAMES = {
    1: "UNINITIALIZED", 2: "INVALID_ARGUMENT", 3: "NOT_SUPPORTED", 4: "NO_PERMISSION", 5: "ALREADY_INITIALIZED",
    6: "NOT_FOUND", 7: "INSUFFICIENT_SIZE", 8: "INSUFFICIENT_POWER", 9: "DRIVER_NOT_LOADED", 10: "TIMEOUT",
    11: "IRQ_ISSUE", 12: "LIBRARY_NOT_FOUND", 13: "FUNCTION_NOT_FOUND", 14: "CORRUPTED_INFOROM", 15: "GPU_IS_LOST",
    16: "RESET_REQUIRED", 17: "OPERATING_SYSTEM", 18: "LIB_RM_VERSION_MISMATCH", 19: "IN_USE", 20: "MEMORY",
    21: "NO_DATA", 22: "VGPU_ECC_NOT_SUPPORTED", 23: "INSUFFICIENT_RESOURCES", 24: "FREQ_NOT_SUPPORTED",
    25: "ARGUMENT_VERSION_MISMATCH", 26: "DEPRECATED", 27: "NOT_READY", 28: "GPU_NOT_FOUND", 29: "INVALID_STATE",
    999: "UNKNOWN",
}
NVML_INVALID_ARGUMENT = 2
NVML_NOT_SUPPORTED = 3
NVML_NOT_FOUND = 6
NVML_INSUFFICIENT_SIZE = 7
NVML_VALUE_NOT_AVAILABLE = 2 ** 64 - 1
NVML_NEW_PROCESSES = 8  # room for processes that start between the call that counts them and the one that lists them

NVML_ARCHITECTURES = {2: "kepler", 3: "maxwell", 4: "pascal", 5: "volta", 6: "turing", 7: "ampere", 8: "ada",
                      9: "hopper", 10: "blackwell", 13: "rubin"}
NVML_COMPUTE_MODES = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}
NVML_CLOCKS = {"graphics": 0, "sm": 1, "memory": 2}
NVML_CLOCKS_EVENT_REASONS = {
    0x01: "gpu_idle", 0x02: "applications_clocks_setting", 0x04: "sw_power_cap", 0x08: "hw_slowdown",
    0x10: "sync_boost", 0x20: "sw_thermal_slowdown", 0x40: "hw_thermal_slowdown", 0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
NVML_ECC_ERROR_TYPES = {"corrected": 0, "uncorrected": 1}
NVML_ECC_COUNTERS = {"volatile": 0, "aggregate": 1}
NVML_RETIREMENT_CAUSES = {"multiple_single_bit": 0, "double_bit": 1}
NVML_TEMPERATURE_SENSOR_GPU = 0
NVML_TEMPERATURE_THRESHOLDS = {"shutdown": 0, "slowdown": 1}

NVML_NVLINK_MAX_LINKS = 36
NVML_NVLINK_VERSIONS = {1: "1.0", 2: "2.0", 3: "2.2", 4: "3.0", 5: "3.1", 6: "4.0", 7: "5.0", 8: "6.0"}
NVML_NVLINK_REMOTE_TYPES = {0: "gpu", 1: "ibm_npu", 2: "switch", 255: "unknown"}
NVML_NVLINK_ERROR_COUNTERS = {"replay": 0, "recovery": 1, "crc_flit": 2, "crc_data": 3, "ecc_data": 4}

# NVML_FI_DEV_*: the fields that nvmlDeviceGetFieldValues reads. Fields of a link have the link as scope. Blackwell has
# the NVLINK_COUNT_* fields instead of the error counters above.
NVML_FIELD_MEMORY_TEMPERATURE = 82
NVML_FIELD_NVLINK_SENT, NVML_FIELD_NVLINK_RECEIVED = 138, 139  # NVLINK_THROUGHPUT_DATA_TX and _RX, in KiB
NVML_ALL_LINKS = 2 ** 32 - 1  # as scope of these two: the sum of all links
NVML_FIELD_NVLINK_SPEED = 164
NVML_NVLINK_COUNT_FIELDS = {"link_recovery_events": 215, "effective_errors": 219, "symbol_errors": 221}

NVML_FABRIC_STATES = {0: "not_supported", 1: "not_started", 2: "in_progress", 3: "completed"}
# Bit position in healthMask of each two-bit answer: 0 not supported, 1 true, 2 false.
NVML_FABRIC_HEALTH_ANSWERS = {"degraded_bandwidth": 0, "route_recovery": 2, "route_unhealthy": 4,
                              "access_timeout_recovery": 6}
NVML_FABRIC_CONFIGURATION_SHIFT = 8
NVML_FABRIC_CONFIGURATIONS = {
    1: "correct", 2: "incorrect_sysguid", 3: "incorrect_chassis_sn", 4: "no_partition", 5: "insufficient_nvlinks",
    6: "incompatible_gpu_fw", 7: "invalid_location", 8: "gpu_state_invalid",
}

# nvmlGpuTopologyLevel_t, as `nvidia-smi topo -m` names it. INTERNAL is two GPUs of one board, which it shows as PIX.
NVML_TOPOLOGY_WORDS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
NVML_P2P_CAPABILITIES = {"read": 0, "write": 1, "nvlink": 2, "atomics": 3, "pci": 4}
NVML_P2P_STATUSES = {0: "OK", 1: "CHIPSET_NOT_SUPPORTED", 2: "GPU_NOT_SUPPORTED", 3: "IOH_TOPOLOGY_NOT_SUPPORTED",
                     4: "DISABLED_BY_REGKEY", 5: "NOT_SUPPORTED", 6: "UNKNOWN"}
NVML_AFFINITY_SCOPE_NODE = 0

# Size of the largest text buffer: NVML_DEVICE_NAME_V2_BUFFER_SIZE and NVML_DEVICE_UUID_V2_BUFFER_SIZE.
NVML_TEXT_BYTES = 96
# Linux on x86-64 allows 8192 processors and 1024 NUMA nodes at most (NR_CPUS, NODES_SHIFT in arch/x86/Kconfig).
NVML_CPU_SET_WORDS = 8192 // (8 * ctypes.sizeof(ctypes.c_ulong))
NVML_NODE_SET_WORDS = 1024 // (8 * ctypes.sizeof(ctypes.c_ulong))


class NvmlPciInfo(ctypes.Structure):
    """nvmlPciInfo_t, as the _v3 functions fill it."""
    _fields_ = [
        ("busIdLegacy", ctypes.c_char * 16), ("domain", ctypes.c_uint), ("bus", ctypes.c_uint),
        ("device", ctypes.c_uint), ("pciDeviceId", ctypes.c_uint), ("pciSubSystemId", ctypes.c_uint),
        ("busId", ctypes.c_char * 32),
    ]


class NvmlMemory(ctypes.Structure):
    """nvmlMemory_v2_t."""
    _fields_ = [("version", ctypes.c_uint)] + [(name, ctypes.c_ulonglong) for name in
                                               ("total", "reserved", "free", "used")]


class NvmlUtilization(ctypes.Structure):
    """nvmlUtilization_t."""
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class NvmlFieldAnswer(ctypes.Union):
    """nvmlValue_t."""
    _fields_ = [("dVal", ctypes.c_double), ("siVal", ctypes.c_int), ("uiVal", ctypes.c_uint), ("ulVal", ctypes.c_ulong),
                ("ullVal", ctypes.c_ulonglong), ("sllVal", ctypes.c_longlong), ("usVal", ctypes.c_ushort)]


class NvmlFieldValue(ctypes.Structure):
    """nvmlFieldValue_t."""
    _fields_ = [
        ("fieldId", ctypes.c_uint), ("scopeId", ctypes.c_uint), ("timestamp", ctypes.c_longlong),
        ("latencyUsec", ctypes.c_longlong), ("valueType", ctypes.c_int), ("nvmlReturn", ctypes.c_int),
        ("value", NvmlFieldAnswer),
    ]


# Maps nvmlValueType_t to the member of nvmlValue_t that holds the value.
NVML_VALUE_MEMBERS = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}


class NvmlFabricInfo(ctypes.Structure):
    """nvmlGpuFabricInfo_v2_t."""
    _fields_ = [
        ("version", ctypes.c_uint), ("clusterUuid", ctypes.c_ubyte * 16), ("status", ctypes.c_int),
        ("cliqueId", ctypes.c_uint), ("state", ctypes.c_ubyte), ("healthMask", ctypes.c_uint),
    ]


class NvmlProcessInfo(ctypes.Structure):
    """nvmlProcessInfo_v2_t, which the _v3 functions fill."""
    _fields_ = [("pid", ctypes.c_uint), ("usedGpuMemory", ctypes.c_ulonglong), ("gpuInstanceId", ctypes.c_uint),
                ("computeInstanceId", ctypes.c_uint)]


NVML_DEVICE = ctypes.c_void_p
NVML_ENUM = ctypes.c_int
NVML_UINT = ctypes.c_uint
NVML_UINT_OUT = ctypes.POINTER(ctypes.c_uint)
NVML_INT_OUT = ctypes.POINTER(ctypes.c_int)
NVML_ULONG_OUT = ctypes.POINTER(ctypes.c_ulong)
NVML_ULONGLONG_OUT = ctypes.POINTER(ctypes.c_ulonglong)

NVML_PARAMETERS = {
    "nvmlInit_v2": [],
    "nvmlSystemGetDriverVersion": [ctypes.c_char_p, NVML_UINT],
    "nvmlSystemGetNVMLVersion": [ctypes.c_char_p, NVML_UINT],
    "nvmlSystemGetCudaDriverVersion_v2": [NVML_INT_OUT],
    "nvmlDeviceGetCount_v2": [NVML_UINT_OUT],
    "nvmlDeviceGetHandleByIndex_v2": [NVML_UINT, ctypes.POINTER(NVML_DEVICE)],
    "nvmlDeviceGetUUID": [NVML_DEVICE, ctypes.c_char_p, NVML_UINT],
    "nvmlDeviceGetName": [NVML_DEVICE, ctypes.c_char_p, NVML_UINT],
    "nvmlDeviceGetSerial": [NVML_DEVICE, ctypes.c_char_p, NVML_UINT],
    "nvmlDeviceGetPciInfo_v3": [NVML_DEVICE, ctypes.POINTER(NvmlPciInfo)],
    "nvmlDeviceGetMinorNumber": [NVML_DEVICE, NVML_UINT_OUT],
    "nvmlDeviceGetCudaComputeCapability": [NVML_DEVICE, NVML_INT_OUT, NVML_INT_OUT],
    "nvmlDeviceGetArchitecture": [NVML_DEVICE, NVML_UINT_OUT],
    "nvmlDeviceGetMemoryInfo_v2": [NVML_DEVICE, ctypes.POINTER(NvmlMemory)],
    "nvmlDeviceGetUtilizationRates": [NVML_DEVICE, ctypes.POINTER(NvmlUtilization)],
    "nvmlDeviceGetMigMode": [NVML_DEVICE, NVML_UINT_OUT, NVML_UINT_OUT],
    "nvmlDeviceGetMaxMigDeviceCount": [NVML_DEVICE, NVML_UINT_OUT],
    "nvmlDeviceGetMigDeviceHandleByIndex": [NVML_DEVICE, NVML_UINT, ctypes.POINTER(NVML_DEVICE)],
    "nvmlDeviceGetGpuInstanceId": [NVML_DEVICE, NVML_UINT_OUT],
    "nvmlDeviceGetComputeInstanceId": [NVML_DEVICE, NVML_UINT_OUT],
    "nvmlDeviceGetEccMode": [NVML_DEVICE, NVML_INT_OUT, NVML_INT_OUT],
    "nvmlDeviceGetTotalEccErrors": [NVML_DEVICE, NVML_ENUM, NVML_ENUM, NVML_ULONGLONG_OUT],
    "nvmlDeviceGetRemappedRows": [NVML_DEVICE, NVML_UINT_OUT, NVML_UINT_OUT, NVML_UINT_OUT, NVML_UINT_OUT],
    "nvmlDeviceGetRetiredPages": [NVML_DEVICE, NVML_ENUM, NVML_UINT_OUT, NVML_ULONGLONG_OUT],
    "nvmlDeviceGetRetiredPagesPendingStatus": [NVML_DEVICE, NVML_INT_OUT],
    "nvmlDeviceGetPersistenceMode": [NVML_DEVICE, NVML_INT_OUT],
    "nvmlDeviceGetComputeMode": [NVML_DEVICE, NVML_INT_OUT],
    "nvmlDeviceGetClockInfo": [NVML_DEVICE, NVML_ENUM, NVML_UINT_OUT],
    "nvmlDeviceGetMaxClockInfo": [NVML_DEVICE, NVML_ENUM, NVML_UINT_OUT],
    "nvmlDeviceGetApplicationsClock": [NVML_DEVICE, NVML_ENUM, NVML_UINT_OUT],
    "nvmlDeviceGetCurrentClocksEventReasons": [NVML_DEVICE, NVML_ULONGLONG_OUT],
    "nvmlDeviceGetCurrentClocksThrottleReasons": [NVML_DEVICE, NVML_ULONGLONG_OUT],
    "nvmlDeviceGetTemperature": [NVML_DEVICE, NVML_ENUM, NVML_UINT_OUT],
    "nvmlDeviceGetTemperatureThreshold": [NVML_DEVICE, NVML_ENUM, NVML_UINT_OUT],
    "nvmlDeviceGetFieldValues": [NVML_DEVICE, ctypes.c_int, ctypes.POINTER(NvmlFieldValue)],
    "nvmlDeviceGetPowerUsage": [NVML_DEVICE, NVML_UINT_OUT],
    "nvmlDeviceGetEnforcedPowerLimit": [NVML_DEVICE, NVML_UINT_OUT],
    "nvmlDeviceGetPowerManagementDefaultLimit": [NVML_DEVICE, NVML_UINT_OUT],
    "nvmlDeviceGetCurrPcieLinkGeneration": [NVML_DEVICE, NVML_UINT_OUT],
    "nvmlDeviceGetMaxPcieLinkGeneration": [NVML_DEVICE, NVML_UINT_OUT],
    "nvmlDeviceGetGpuMaxPcieLinkGeneration": [NVML_DEVICE, NVML_UINT_OUT],
    "nvmlDeviceGetCurrPcieLinkWidth": [NVML_DEVICE, NVML_UINT_OUT],
    "nvmlDeviceGetMaxPcieLinkWidth": [NVML_DEVICE, NVML_UINT_OUT],
    "nvmlDeviceGetPcieReplayCounter": [NVML_DEVICE, NVML_UINT_OUT],
    "nvmlDeviceGetNvLinkState": [NVML_DEVICE, NVML_UINT, NVML_INT_OUT],
    "nvmlDeviceGetNvLinkVersion": [NVML_DEVICE, NVML_UINT, NVML_UINT_OUT],
    "nvmlDeviceGetNvLinkRemotePciInfo_v2": [NVML_DEVICE, NVML_UINT, ctypes.POINTER(NvmlPciInfo)],
    "nvmlDeviceGetNvLinkRemoteDeviceType": [NVML_DEVICE, NVML_UINT, NVML_INT_OUT],
    "nvmlDeviceGetNvLinkErrorCounter": [NVML_DEVICE, NVML_UINT, NVML_ENUM, NVML_ULONGLONG_OUT],
    "nvmlDeviceGetGpuFabricInfoV": [NVML_DEVICE, ctypes.POINTER(NvmlFabricInfo)],
    "nvmlDeviceGetComputeRunningProcesses_v3": [NVML_DEVICE, NVML_UINT_OUT, ctypes.POINTER(NvmlProcessInfo)],
    "nvmlDeviceGetTopologyCommonAncestor": [NVML_DEVICE, NVML_DEVICE, NVML_INT_OUT],
    "nvmlDeviceGetP2PStatus": [NVML_DEVICE, NVML_DEVICE, NVML_ENUM, NVML_INT_OUT],
    "nvmlDeviceGetCpuAffinity": [NVML_DEVICE, NVML_UINT, NVML_ULONG_OUT],
    "nvmlDeviceGetMemoryAffinity": [NVML_DEVICE, NVML_UINT, NVML_ULONG_OUT, NVML_UINT],
    "nvmlDeviceGetNumaNodeId": [NVML_DEVICE, NVML_UINT_OUT],
}


class NvmlError(Unread):
    """An NVML function that did not return NVML_SUCCESS."""

    def __init__(self, function, code):
        super().__init__("%s: NVML_ERROR_%s" % (function, NVML_RETURN_NAMES.get(code, code)))
        self.code = code


class Nvml:
    """The library, initialized. Every method raises Unread if it gets no value."""

    def __init__(self):
        signatures = {name: [ctypes.c_int] + parameters for name, parameters in NVML_PARAMETERS.items()}
        self.library = ForeignLibrary("libnvidia-ml.so.1", signatures)
        self.call("nvmlInit_v2")

    def call(self, name, *arguments):
        """Calls the function `name`, which returns an nvmlReturn_t."""
        code = self.library.function(name)(*arguments)
        if code != 0:
            raise NvmlError(name, code)

    def values(self, name, *inputs):
        """The numbers that `name` writes through its parameters after `inputs`, all of them pointers to a number."""
        outputs = [pointer._type_() for pointer in NVML_PARAMETERS[name][len(inputs):]]
        self.call(name, *inputs, *map(ctypes.byref, outputs))
        return [output.value for output in outputs]

    def value(self, name, *inputs):
        """The one number that `name` writes through its last parameter."""
        return self.values(name, *inputs)[0]

    def flags(self, name, *inputs):
        """The nvmlEnableState_t that `name` writes, as bools."""
        return [bool(value) for value in self.values(name, *inputs)]

    def flag(self, name, *inputs):
        """The one nvmlEnableState_t that `name` writes, as a bool."""
        return self.flags(name, *inputs)[0]

    def text(self, name, *inputs):
        """The text that `name` writes. The function's last two parameters are a buffer and its size."""
        buffer = ctypes.create_string_buffer(NVML_TEXT_BYTES)
        self.call(name, *inputs, buffer, NVML_TEXT_BYTES)
        return buffer.value.decode("utf-8", "replace")

    def count(self, name, *inputs):
        """Number of entries that `name` has. Called with room for none, it returns their number."""
        number = ctypes.c_uint(0)
        try:
            self.call(name, *inputs, ctypes.byref(number), None)
        except NvmlError as error:
            if error.code != NVML_INSUFFICIENT_SIZE:
                raise
        return number.value

    def processes(self, device):
        """[(process ID, bytes of device memory or None)] of the processes with a context on `device`."""
        name = "nvmlDeviceGetComputeRunningProcesses_v3"
        room = self.count(name, device) + NVML_NEW_PROCESSES
        number, entries = ctypes.c_uint(room), (NvmlProcessInfo * room)()
        self.call(name, device, ctypes.byref(number), entries)
        return [(entry.pid, None if entry.usedGpuMemory == NVML_VALUE_NOT_AVAILABLE else entry.usedGpuMemory)
                for entry in entries[:number.value]]

    def field(self, device, field, scope=0):
        """The value of an NVML_FI_DEV_* field of `device`; `scope` is the link, for a field of one NVLink."""
        answer = NvmlFieldValue(fieldId=field, scopeId=scope)
        self.call("nvmlDeviceGetFieldValues", device, 1, ctypes.byref(answer))
        if answer.nvmlReturn != 0:
            raise NvmlError("nvmlDeviceGetFieldValues of field %d" % field, answer.nvmlReturn)
        if answer.valueType not in NVML_VALUE_MEMBERS:
            raise Unread("nvmlDeviceGetFieldValues of field %d: a value of unknown type %d" % (field, answer.valueType))
        return getattr(answer.value, NVML_VALUE_MEMBERS[answer.valueType])

    def pci_bus_id(self, name, *inputs):
        """The PCI address that `name` writes as an nvmlPciInfo_t, in sysfs's spelling: 0000:3b:00.0."""
        info = NvmlPciInfo()
        self.call(name, *inputs, ctypes.byref(info))
        return sysfs_pci_address(info.busId.decode("ascii", "replace"))

    def memory(self, device):
        """(total, reserved, free, used) in bytes."""
        info = NvmlMemory(version=nvml_struct_version(NvmlMemory, 2))
        self.call("nvmlDeviceGetMemoryInfo_v2", device, ctypes.byref(info))
        return info.total, info.reserved, info.free, info.used

    def utilization(self, device):
        """(percent of the last sample period with a kernel running, percent with memory traffic)."""
        rates = NvmlUtilization()
        self.call("nvmlDeviceGetUtilizationRates", device, ctypes.byref(rates))
        return rates.gpu, rates.memory

    def clock_limits(self, device):
        """Clocks event reasons as bits; older drivers know only the name "throttle reasons"."""
        return first_readable(lambda: self.value("nvmlDeviceGetCurrentClocksEventReasons", device),
                              lambda: self.value("nvmlDeviceGetCurrentClocksThrottleReasons", device))

    def fabric(self, device):
        """The NvmlFabricInfo of `device`."""
        info = NvmlFabricInfo(version=nvml_struct_version(NvmlFabricInfo, 2))
        self.call("nvmlDeviceGetGpuFabricInfoV", device, ctypes.byref(info))
        return info

    def numbers(self, name, device, words, *scope):
        """The set of numbers that `name` writes as a bit set of `words` unsigned longs."""
        bits = (ctypes.c_ulong * words)()
        self.call(name, device, words, bits, *scope)
        width = 8 * ctypes.sizeof(ctypes.c_ulong)
        return {word * width + bit for word in range(words) for bit in range(width) if bits[word] >> bit & 1}

    def device(self, index):
        """The handle of GPU `index`, in NVML's order, which is that of the PCI bus."""
        return self.value("nvmlDeviceGetHandleByIndex_v2", index)


def open_nvml():
    """Opens NVML; raises Skipped if this container has none."""
    try:
        return Nvml()
    except Unread as why:
        raise Skipped("NVIDIA's driver cannot be asked: %s. Its libraries come from the host: run with --gpus all or "
                      "the CDI device nvidia.com/gpu=all, and with `utility` in NVIDIA_DRIVER_CAPABILITIES."
                      % why) from None


def nvml_gpu_count(nvml):
    """Number of GPUs that the driver shows here; raises Skipped if it does not report it."""
    try:
        return nvml.value("nvmlDeviceGetCount_v2")
    except Unread as why:
        raise Skipped("NVIDIA's driver does not report the number of GPUs: %s." % why) from None


def nvml_struct_version(structure, version):
    """NVML_STRUCT_VERSION: the size and the version of a structure in one number."""
    return ctypes.sizeof(structure) | version << 24


def nvml_word(words, number):
    """The word for `number`, or the number as text if the driver is newer than this program."""
    return words.get(number, str(number))


def nvml_words(words, mask):
    """The words of the bits of `mask`, from the lowest."""
    return [nvml_word(words, 1 << bit) for bit in range(mask.bit_length()) if mask >> bit & 1]


def sysfs_pci_address(address):
    """NVML's and CUDA's 00000000:3B:00.0 in sysfs's spelling: 0000:3b:00.0."""
    match = re.match(r"([0-9a-f]+):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])$", address.lower())
    if not match:
        raise Unread("%r is not a PCI address" % address)
    return "%04x:%s" % (int(match.group(1), 16), match.group(2))


def nvlink_states(nvml, device):
    """[(link, active)] for each NVLink of the GPU. `active` is an NvmlError if the state cannot be read."""
    states = []
    for link in range(NVML_NVLINK_MAX_LINKS):
        try:
            states.append((link, nvml.flag("nvmlDeviceGetNvLinkState", device, link)))
        except NvmlError as error:
            if error.code in (NVML_INVALID_ARGUMENT, NVML_NOT_SUPPORTED):
                break
            states.append((link, error))
    return states
