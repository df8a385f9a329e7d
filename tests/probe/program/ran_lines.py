"""
Coverage of the payload: records which statements run, in every process of the program.

A traced process appends each new line to its own file at once, because most processes of the payload are killed and could not
write the lines later. A prelude before the first line of the joined program starts the trace; it also reaches the children,
since they run the same text.
"""
import ast
import os
import sys
import tempfile
import threading

FOLDER_VARIABLE = "NCCLCHECK_RAN_LINES"
JOINED = "ncclcheck-probe"  # the file name that the start command compiles the joined program under
IN_FRONT = "in front of the program"  # the name of this module when it is the prelude


def prelude():
    """The prelude of a joined program that traces itself; empty if coverage is not measured."""
    if FOLDER_VARIABLE not in os.environ:
        return ""
    text = 'exec(compile(open(%r).read(), "ran_lines", "exec"), {"__name__": %r}); '
    return text % (os.path.abspath(__file__), IN_FRONT)


class Tracer:
    """Records each line of the payload once."""

    def __init__(self, folder):
        self.fd, _ = tempfile.mkstemp(prefix="%d-" % os.getpid(), dir=folder)
        os.set_inheritable(self.fd, False)
        self.modules, self.seen = {}, set()

    def start(self, frame=None):
        """Traces all later calls, in every thread, and the rest of `frame`."""
        if frame:
            self.modules[frame.f_code.co_filename] = JOINED
            frame.f_trace = self.line
        threading.settrace(self.call)
        sys.settrace(self.call)

    def call(self, frame, _event, _argument):
        """Returns a line tracer for the payload's own code only."""
        return self.line if self.module(frame.f_code.co_filename) else None

    def line(self, frame, event, _argument):
        place = frame.f_code.co_filename, frame.f_lineno
        if event == "line" and place not in self.seen:
            self.seen.add(place)
            os.write(self.fd, b"%s %d\n" % (self.module(place[0]).encode(), place[1]))
        return self.line

    def module(self, file_name):
        """`joined`, the module's name, or None for other code."""
        if file_name not in self.modules:
            folder, base = os.path.split(file_name)
            is_module = folder.endswith(("/ncclcheck_probe", "/crates/probe/src/payload"))
            self.modules[file_name] = JOINED if file_name == JOINED else base[:-3] if is_module else None
        return self.modules[file_name]


def statements(source):
    """Maps each line to the first line of the statement whose head covers it, without docstrings and bare `try`, whose
    lines do not show that anything ran."""
    heads = {}
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, (ast.stmt, ast.ExceptHandler)) or isinstance(node, ast.Try) or is_text(node):
            continue
        last = node.body[0].lineno - 1 if hasattr(node, "body") else node.end_lineno
        for line in range(node.lineno, max(last, node.lineno) + 1):
            heads.setdefault(line, node.lineno)
    return heads


def is_text(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def coverage(folder, sources, joined):
    """{module: (lines of statements, lines of those that ran)}. `sources` maps modules to their texts, `joined` each
    line of the joined program to its (module, line)."""
    ran = {name: set() for name in sources}
    for entry in os.scandir(folder):
        with open(entry.path) as file:
            for text in file:
                name, _, number = text.rpartition(" ")
                name, line = joined[int(number) - 1] if name == JOINED else (name, int(number))
                ran[name].add(line)
    found = {}
    for name, source in sources.items():
        heads = statements(source)
        found[name] = set(heads.values()), {heads[line] for line in ran[name] if line in heads}
    return found


if __name__ == IN_FRONT:
    Tracer(os.environ[FOLDER_VARIABLE]).start(sys._getframe(1))
