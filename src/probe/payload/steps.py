"""The steps of a probe: the rows of the table steps.yaml."""
import json
import os
from collections import namedtuple

# deadline: seconds, the default; by_default: whether a plan that names no steps runs it
Step = namedtuple("Step", "name module deadline by_default help")


def step_table():
    """The text of the table: it comes with this program, or is the file beside the folder of the modules."""
    if "STEP_TABLE" in globals():
        return globals()["STEP_TABLE"]
    with open(os.path.join(os.path.dirname(__file__), os.pardir, "steps.yaml"), encoding="ascii") as file:
        return file.read()


def step_of(line):
    row = json.loads(line[len("- "):])
    return Step(row["name"], row["module"], row["deadline"], row["default"], row["help"])


STEPS = tuple(step_of(line) for line in step_table().splitlines() if line.startswith("- "))
