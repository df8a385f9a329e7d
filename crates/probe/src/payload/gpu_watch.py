"""The GPUs beside the ranks: what limits their clocks while the collectives run, and what other processes make them do
after the last rank has ended."""
import time

from ncclcheck_probe.nvlink_traffic import nvlink_traffic
from ncclcheck_probe.nvml import NVML_CLOCKS, NVML_CLOCKS_EVENT_REASONS, NVML_TEMPERATURE_SENSOR_GPU, Nvml
from ncclcheck_probe.nvml import nvml_gpu_count, nvml_words
from ncclcheck_probe.readings import Readings, Unread
from ncclcheck_probe.task import Skipped

# The load of the ranks stays in NVML's sample period, which is at most a second (nvmlUtilization_t), after they ended.
PERIOD_SECONDS = 1.2
IDLE_PERCENT = 10


class GpuWatch:
    """The GPUs of this container during and after the collectives. Without NVML, every answer is None."""

    def __init__(self):
        self.clocks = {}  # by index: the lowest clock, the reasons and the highest temperature seen so far
        try:
            self.nvml = Nvml()
            self.devices = [self.nvml.device(index) for index in range(nvml_gpu_count(self.nvml))]
        except (Unread, Skipped):
            self.nvml, self.devices = None, []

    def look(self):
        """Takes a sample of the clocks, which costs tens of microseconds for each GPU."""
        for index, device in enumerate(self.devices):
            seen = self.clocks.setdefault(index, {"sm_mhz": [], "mask": 0, "celsius": []})
            try:
                seen["mask"] |= self.nvml.clock_limits(device)
                seen["sm_mhz"].append(self.nvml.value("nvmlDeviceGetClockInfo", device, NVML_CLOCKS["sm"]))
                celsius = self.nvml.value("nvmlDeviceGetTemperature", device, NVML_TEMPERATURE_SENSOR_GPU)
                seen["celsius"].append(celsius)
            except Unread:
                pass  # the step `gpus` reports what this driver does not answer

    def during(self):
        """What the samples show of each GPU; None if there are none."""
        return [{"index": index, "event_reasons": nvml_words(NVML_CLOCKS_EVENT_REASONS, seen["mask"]),
                 "sm_mhz_least": min(seen["sm_mhz"], default=None), "celsius_most": max(seen["celsius"], default=None)}
                for index, seen in sorted(self.clocks.items())] or None

    def after(self):
        """The load of each GPU now that all ranks have ended; None without NVML."""
        if self.nvml is None:
            return None
        until = time.monotonic() + PERIOD_SECONDS
        while time.monotonic() < until and any(self.busy(device) > IDLE_PERCENT for device in self.devices):
            time.sleep(0.1)
        traffic = nvlink_traffic(self.nvml, self.devices)
        bodies = []
        for index, (device, rates) in enumerate(zip(self.devices, traffic)):
            body = Readings(index=index, traffic=rates)
            body.read_together(["busy_percent", "memory_busy_percent"], self.nvml.utilization, device)
            bodies.append(body.body())
        return bodies

    def busy(self, device):
        try:
            return self.nvml.utilization(device)[0]
        except Unread:
            return 0
