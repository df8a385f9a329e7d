"""The steps of a probe, from the table steps.yaml."""
import json
import os
from collections import namedtuple

# deadline: default, in seconds; by_default: true if a plan that names no steps runs it
Step = namedtuple("Step", "name module deadline by_default help")


def step_table():
    """The text of the table: part of the joined program, or the file beside the folder of the modules."""
    if "STEP_TABLE" in globals():
        return globals()["STEP_TABLE"]
    with open(os.path.join(os.path.dirname(__file__), os.pardir, "steps.yaml"), encoding="ascii") as file:
        return file.read()


def step_of(line):
    row = json.loads(line[len("- "):])
    return Step(row["name"], row["module"], row["deadline"], row["default"], row["help"])


STEPS = tuple(step_of(line) for line in step_table().splitlines() if line.startswith("- "))
