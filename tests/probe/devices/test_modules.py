"""The payload's modules are joined into one flat program: no name may be defined twice, no import may span lines."""

import ast
import collections
import contextlib
import re
import unittest

import payload

# In an order in which they can be joined.
DEVICE_MODULES = ("readings", "foreign", "sysfs", "pci", "nvml", "cuda_driver", "gpus", "infiniband", "topology",
                  "verbs", "nccl_gid", "rdma_providers", "verbs_ping", "gpu_direct", "rdma")
FROM_PAYLOAD = re.compile(r"from ncclcheck_probe\.(\w+) import \w+(, \w+)*$")


def sources():
    return {path.name: path.read_text() for path in sorted(payload.PAYLOAD.glob("*.py"))}


def defined_names(source):
    """What a module defines at its top, imports left out."""
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        yield name.id


class Modules(unittest.TestCase):
    def test_every_name_is_defined_once(self):
        counts = collections.Counter(name for source in sources().values() for name in defined_names(source))
        self.assertEqual([name for name, count in counts.items() if count > 1], [])

    def test_no_name_is_also_that_of_an_imported_module(self):
        modules = {alias.name for source in sources().values() for node in ast.parse(source).body
                   if isinstance(node, ast.Import) for alias in node.names}
        names = {name for source in sources().values() for name in defined_names(source)}
        self.assertEqual(modules & names, set())

    def test_imports_have_the_form_that_is_dropped(self):
        for file, source in sources().items():
            for line in source.splitlines():
                if "ncclcheck_probe" in line:
                    self.assertRegex(line, FROM_PAYLOAD, file)

    def test_the_steps_run_as_one_program(self):
        # Names are looked up when a function runs, but classes name their bases when they are defined.
        joined = "\n".join((payload.PAYLOAD / (name + ".py")).read_text(encoding="ascii")
                           for name in ("wire", "task") + DEVICE_MODULES)
        flat = "\n".join(line for line in joined.splitlines() if not FROM_PAYLOAD.match(line))
        names = {"__name__": "flat"}
        exec(compile(flat, "flat", "exec"), names)
        self.assertIn("devices", names["rdma"]({}))
        for step in ("gpus", "topology"):
            with contextlib.suppress(names["Skipped"]):
                names[step]({})


if __name__ == "__main__":
    unittest.main()
