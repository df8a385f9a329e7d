#!/usr/bin/env python3
"""flat: prints the probe's payload as the one program that is sent into a container: its modules in the order of MODULES, without
the lines that import one from another. The same as src/probe does."""
import os
import re
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "src", "probe", "payload")
OWN_IMPORT = re.compile(r"from ncclcheck_probe\.(\w+) import (.+)$")


def module_names():
    with open(os.path.join(FOLDER, "MODULES")) as file:
        return file.read().split()


def module_text(name):
    with open(os.path.join(FOLDER, name + ".py"), encoding="ascii") as file:
        return file.read()


def flat_lines():
    """(module, number of the line in it, line) of each line of the program."""
    for name in module_names():
        for number, line in enumerate(module_text(name).splitlines(), 1):
            if not OWN_IMPORT.match(line):
                yield name, number, line


def flat_program():
    return "".join(line + "\n" for _, _, line in flat_lines())


if __name__ == "__main__":
    sys.stdout.write(flat_program())
