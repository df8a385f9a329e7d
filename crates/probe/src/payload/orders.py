"""Orders for a step that runs while its starter decides what comes next: lines on the program's standard input."""
import json
import os


class Orders:
    """A pipe to the process of the step. A line may be for many programs, of which each takes its own part."""

    def __init__(self):
        self.id = os.urandom(8).hex()
        self.far, self.near = os.pipe()

    def take(self, line):
        """Passes this program's part of the line on: {"ID": ORDER, ...}."""
        order = json.loads(line.decode("utf-8")).get(self.id)
        if order is not None:
            try:
                os.write(self.near, json.dumps(order).encode("ascii") + b"\n")
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
