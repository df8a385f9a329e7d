"""Imports the image's torch, with a helpful error if there is none."""
import sys
import time


def import_torch():
    """(torch, seconds of the import)."""
    started = time.monotonic()
    try:
        import torch
        import torch.distributed
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            "%s (Python %d.%d) has no PyTorch: no module named torch in its sys.path. If the image keeps it in another "
            "environment, start the probe with that environment's python" % ((sys.executable,) + sys.version_info[:2]),
            name="torch") from None
    return torch, time.monotonic() - started
