"""Orders for a step that runs while its starter decides what comes next: lines on the program's standard input."""
import json
import os

from ncclcheck_probe.wire import write_all


class Orders:
    """A pipe to the process of the step. A line may be for many programs, of which each takes its own part."""

    def __init__(self):
        self.id = os.urandom(8).hex()
        self.far, self.near = os.pipe()

    def hand_over(self):
        """Closes the reading end, which the process of the step has inherited. Otherwise orders to a step that has
        ended would fill the pipe, and the thread that follows the input would not notice its end."""
        os.close(self.far)
        self.far = None

    def take(self, line):
        """Passes this program's part of the line on: {"ID": ORDER, ...}. Ignores anything else: the end of an order to
        other programs, whose beginning was read with the text of this one, is no JSON."""
        try:
            order = json.loads(line.decode("utf-8")).get(self.id)
        except (ValueError, AttributeError):
            return
        if order is not None:
            try:
                write_all(self.near, json.dumps(order).encode("ascii") + b"\n")
            except BrokenPipeError:
                pass  # the step has ended


def lines_of(fd):
    """Yields the lines of a descriptor until its end."""
    rest = b""
    while True:
        piece = os.read(fd, 1 << 16)
        if not piece:
            return
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
