"""Shared parts of the payload's tests: its modules, its joined program, and runs with every line checked."""
import importlib
import json
import os
import pathlib
import subprocess
import sys
import time
import types
import unittest

import ran_lines
from flat import FOLDER, flat_program

try:
    import jsonschema
except ImportError:
    jsonschema = None

# Seconds until a test gives up. What it waits for takes a fraction of this even on a busy machine, and never comes if it fails.
PATIENCE = 600
REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
START = 'import sys; SOURCE = sys.stdin.read(); exec(compile(SOURCE, "%s", "exec"))' % ran_lines.JOINED
with open(os.path.join(FOLDER, "events.schema.json")) as file:
    SCHEMA = json.load(file)
VALIDATOR = jsonschema and jsonschema.validators.validator_for(SCHEMA)(SCHEMA)

# The modules, under the package name by which they import each other.
package = types.ModuleType("ncclcheck_probe")
package.__path__ = [os.path.realpath(FOLDER)]
sys.modules["ncclcheck_probe"] = package
sys.dont_write_bytecode = True


def module(name):
    return importlib.import_module("ncclcheck_probe." + name)


def program():
    """The text that is sent into a container, with the tracing prelude if coverage is measured."""
    return ran_lines.prelude() + flat_program()


def complaints(value, schema, place="line"):
    """The value's violations of the schema. Supports the part of JSON Schema that events.schema.json uses."""
    if "$ref" in schema:
        return complaints(value, SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]], place)
    if isinstance(schema.get("type"), list):
        schema = {"anyOf": [dict(schema, type=kind) for kind in schema["type"]]}
    for choice in ("oneOf", "anyOf"):
        if choice in schema:
            tried = [complaints(value, one, place) for one in schema[choice]]
            return [] if [] in tried else min(tried, key=len)
    if "const" in schema and value != schema["const"] or "enum" in schema and value not in schema["enum"]:
        return ["%s: %r does not match the schema" % (place, value)]
    kinds = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict, "array": list,
             "null": type(None)}
    kind = schema.get("type")
    if kind and (not isinstance(value, kinds[kind]) or isinstance(value, bool) and kind in ("integer", "number")):
        return ["%s: %.80r is not of type %s" % (place, value, kind)]
    found = []
    if kind == "array" and "items" in schema:
        for index, item in enumerate(value):
            found += complaints(item, schema["items"], "%s[%d]" % (place, index))
    if kind == "object":
        found += ["%s.%s is missing" % (place, name) for name in schema.get("required", []) if name not in value]
        for name, item in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties", {}))
            found += ["%s.%s is unknown" % (place, name)] if inner is False else complaints(
                item, inner, "%s.%s" % (place, name))
    return found


def body_schema(event):
    """The schema of a body. The steps gpus, topology and rdma have none; tests compare them with recordings."""
    name = "part" if event["event"] == "part" else event["step"]
    return SCHEMA["$defs"].get(name, {"type": "object"})


class Payload(unittest.TestCase):
    """Base class of all tests of runs."""

    def start(self, plan, text=None, **more):
        """Starts the program, or `text` instead, as an engine does in a container."""
        process = subprocess.Popen([sys.executable, "-c", START, "--plan", json.dumps(plan)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
        process.stdin.write((text or program()).encode("ascii"))
        process.stdin.close()
        process.stdin = None
        return process

    def start_with_lifeline(self, plan, text=None, **more):
        """Starts the program, or `text` instead, like an engine that keeps standard input open after the program text."""
        text = (text or program()).encode("ascii")
        start = START.replace("sys.stdin.read()", "sys.stdin.buffer.read(%d).decode()" % len(text))
        process = subprocess.Popen([sys.executable, "-c", start, "--plan", json.dumps(dict(plan, lifeline=True))],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more)
        process.stdin.write(text)
        process.stdin.flush()
        return process

    def run_plan(self, plan, **more):
        """The events of a run that reaches its end."""
        process = self.start(plan, **more)
        out, err = process.communicate(timeout=PATIENCE)
        self.assertTrue(process.returncode == 0 and not err, "%d: %r" % (process.returncode, err[-2000:]))
        return self.events(out)

    def events(self, out):
        events = []
        for line in out.splitlines(keepends=True):
            self.assertLess(len(line), 64 * 1024)
            self.assertTrue(line.endswith(b"\n"))
            events.append(json.loads(line.decode("ascii")))
            self.check(events[-1])
        self.assertEqual([event["event"] for event in events][::len(events) - 1], ["hello", "end"])
        return events

    def check(self, event):
        self.assertEqual(complaints(event, SCHEMA), [])
        if VALIDATOR:
            VALIDATOR.validate(event)
        if event["event"] in ("part", "result"):
            self.assertEqual(complaints(event["body"], body_schema(event)), [])
            for name in event["body"].get("unread", {}):
                self.assertIsNone(event["body"][name])

    def last(self, events):
        """The event that closes the only step."""
        return events[-2]

    def hang(self, run, shortest, reached):
        """The event that closes a run which hangs, from `run(limit)` with its limit in seconds. On a busy machine it may not come to
        where it hangs within the shortest limit; `reached(event)` is true if it did."""
        for limit in (shortest, 4 * shortest, 16 * shortest):
            event = run(limit)
            if reached(event):
                break
        return event

    def parts(self, events, kind):
        return [event["body"] for event in events if event["event"] == "part" and event["body"]["kind"] == kind]

    def assert_gone(self, pids):
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and any(self.runs(pid) for pid in pids):
            time.sleep(0.05)
        self.assertEqual([pid for pid in pids if self.runs(pid)], [])

    def runs(self, pid):
        try:
            with open("/proc/%d/stat" % pid) as file:
                return file.read().rsplit(")", 1)[1].split()[0] != "Z"
        except FileNotFoundError:
            return False
