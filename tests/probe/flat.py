#!/usr/bin/env python3
"""flat: prints the probe's payload as the one program that is sent into a container: its modules in the order of MODULES, without
the lines that import one from another. The same as src/probe does."""
import os
import re
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "probe", "payload")
OWN_IMPORT = re.compile(r"from ncclcheck_probe\.(\w+) import (.+)$")


def module_names():
    with open(os.path.join(FOLDER, "MODULES")) as file:
        return file.read().split()


def module_text(name):
    with open(os.path.join(FOLDER, name + ".py"), encoding="ascii") as file:
        return file.read()


def flat_program():
    lines = [line for name in module_names() for line in module_text(name).splitlines() if not OWN_IMPORT.match(line)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(flat_program())
