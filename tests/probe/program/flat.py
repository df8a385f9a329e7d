#!/usr/bin/env python3
"""flat: prints the probe's payload as the single program that runs in a container. It joins the table of steps, the shared
modules in the order of MODULES, the modules of the steps, and main, without the lines that import one module from another, as
crates/probe/src/payload.rs does."""
import json
import os
import re
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "crates", "probe", "src", "payload")
STEPS = os.path.join(FOLDER, "..", "steps.yaml")
OWN_IMPORT = re.compile(r"from ncclcheck_probe\.(\w+) import (.+)$")


def step_table():
    with open(STEPS, encoding="ascii") as file:
        return file.read()


def module_names():
    with open(os.path.join(FOLDER, "MODULES")) as file:
        shared = file.read().split()
    of_steps = [json.loads(line[2:])["module"] for line in step_table().splitlines() if line.startswith("- ")]
    return list(dict.fromkeys(shared + of_steps)) + ["main"]


def module_text(name):
    with open(os.path.join(FOLDER, name + ".py"), encoding="ascii") as file:
        return file.read()


def flat_lines():
    """(module, number of the line in it, line) of each line of the program. The table of steps belongs to no module."""
    for line in ('STEP_TABLE = r"""%s"""' % step_table()).splitlines():
        yield None, 0, line
    for name in module_names():
        for number, line in enumerate(module_text(name).splitlines(), 1):
            if not OWN_IMPORT.match(line):
                yield name, number, line


def flat_program():
    return "".join(line + "\n" for _, _, line in flat_lines())


if __name__ == "__main__":
    sys.stdout.write(flat_program())
