"""The form of the payload's modules, which are joined into one program."""
import ast
import glob
import os
import unittest

from flat import FOLDER, OWN_IMPORT, flat_program, module_names, module_text
from harness import module


class Form(unittest.TestCase):
    """Joining the modules' texts must give an equivalent program."""

    def test_modules_lists_every_file(self):
        files = {os.path.basename(path)[:-3] for path in glob.glob(os.path.join(FOLDER, "*.py"))}
        self.assertEqual(sorted(module_names()), sorted(files))

    def test_imports_name_earlier_modules_on_one_line(self):
        seen = set()
        for name in module_names():
            for node in ast.walk(ast.parse(module_text(name))):
                if isinstance(node, ast.ImportFrom) and node.module.startswith("ncclcheck_probe"):
                    line = module_text(name).splitlines()[node.lineno - 1]
                    self.assertTrue(OWN_IMPORT.match(line), line)
                    self.assertIn(OWN_IMPORT.match(line).group(1), seen, "%s comes before a module that it imports" % name)
                    self.assertEqual([alias.asname for alias in node.names if alias.asname], [])
            seen.add(name)

    def test_no_name_is_defined_twice(self):
        where = {}
        for name in module_names():
            for node in ast.parse(module_text(name)).body:
                for defined in self.defined_by(node):
                    self.assertEqual(where.setdefault(defined, name), name, "%s is defined twice" % defined)

    def test_no_name_shadows_an_imported_module(self):
        modules, names = set(), set()
        for name in module_names():
            for node in ast.parse(module_text(name)).body:
                if isinstance(node, ast.Import):
                    modules.update(alias.name for alias in node.names)
                names.update(self.defined_by(node))
        self.assertEqual(modules & names, set())

    def defined_by(self, node):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            return [node.name]
        targets = node.targets if isinstance(node, ast.Assign) else []
        return [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]

    def test_imports_have_the_form_that_joining_removes(self):
        for name in module_names():
            for line in module_text(name).splitlines():
                if "ncclcheck_probe." in line:
                    self.assertRegex(line, r"^from ncclcheck_probe\.\w+ import \w+(, \w+)*$", name)

    def test_imported_names_exist(self):
        for name in module_names():
            module(name)

    def test_lines_are_short_and_ascii(self):
        for name in module_names():
            for number, line in enumerate(module_text(name).splitlines(), 1):
                self.assertLessEqual(len(line), 120, "%s:%d" % (name, number))
                self.assertEqual(line, line.rstrip())

    def test_flat_program(self):
        self.assertNotIn("ncclcheck_probe.", flat_program())
        compile(flat_program(), "flat", "exec", dont_inherit=True)
