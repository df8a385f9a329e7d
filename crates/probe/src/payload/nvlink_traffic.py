"""The data that crosses the NVLinks of each GPU per second. While no rank uses the GPUs, it belongs to other
processes."""
import time

from ncclcheck_probe.nvml import NVML_ALL_LINKS, NVML_FIELD_NVLINK_RECEIVED, NVML_FIELD_NVLINK_SENT
from ncclcheck_probe.readings import Readings, Unread

TRAFFIC_SECONDS = 0.2  # between two readings of the counters


def nvlink_traffic(nvml, devices, pause=time.sleep):
    """[{nvlink_sent_bytes_per_second, nvlink_received_bytes_per_second}] of each of the devices, in which a value that
    cannot be read has its reason."""
    counters = {"sent": NVML_FIELD_NVLINK_SENT, "received": NVML_FIELD_NVLINK_RECEIVED}
    first = [{way: link_counter(nvml, device, field) for way, field in counters.items()} for device in devices]
    pause(TRAFFIC_SECONDS)
    bodies = []
    for device, before in zip(devices, first):
        body = Readings()
        for way, field in counters.items():
            body.read("nvlink_%s_bytes_per_second" % way, link_rate, before[way], link_counter(nvml, device, field))
        bodies.append(body.body())
    return bodies


def link_counter(nvml, device, field):
    """(kibibytes since the driver was loaded, time of the reading), or the Unread that says why there is none."""
    try:
        return nvml.field(device, field, NVML_ALL_LINKS), time.monotonic()
    except Unread as why:
        return why


def link_rate(before, after):
    """Bytes per second between two readings of a counter."""
    for reading in (before, after):
        if isinstance(reading, Unread):
            raise reading
    return int((after[0] - before[0]) * 1024 / (after[1] - before[1]))
