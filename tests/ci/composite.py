"""Runs the steps of a composite action or of a job as a runner of GitHub Actions does, with its files and variables.

Expressions are evaluated as far as this repository uses them. Steps with `uses` are recorded, not run.
"""
import dataclasses, os, pathlib, re, subprocess

import yaml
from releases import OWN, ROOT

EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
TOKEN = re.compile(r"\s*('(?:[^']|'')*'|\|\||&&|==|!=|[!(),]|[\w.*-]+)")
WORKFLOW = re.compile(r"^```yaml workflow=(\S+)\n(.*?)^```$", re.M | re.S)


def workflows_of_the_book():
    """The workflows in docs/ci-github.md and in the files beside it, by name."""
    texts = dict(WORKFLOW.findall((ROOT / "docs/ci-github.md").read_text()))
    texts |= {path.stem: path.read_text() for path in (ROOT / "docs/ci-github").glob("*.yml")}
    return {name: yaml.safe_load(text) for name, text in texts.items()}


@dataclasses.dataclass
class Run:
    """What is left after the steps."""
    status: int
    log: str
    outputs: dict
    summary: str
    used: list


class Runner:
    def __init__(self, workspace, temporary, environment):
        self.workspace, self.temporary = pathlib.Path(workspace), pathlib.Path(temporary)
        self.environment = {"PATH": "/usr/bin:/bin", "CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(workspace), "RUNNER_TEMP": str(temporary), **environment}
        self.path, self.used, self.log = [], [], ""
        self.files = {name: self.temporary / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_PATH", "GITHUB_ENV")}
        self.files["GITHUB_STEP_SUMMARY"].write_text("")

    def action(self, path, inputs, github):
        """Runs an action with these inputs, as a step with `uses` does."""
        action = yaml.safe_load(pathlib.Path(path, "action.yml").read_text())
        declared = action["inputs"]
        unknown = set(inputs) - set(declared)
        assert not unknown, f"the action has no inputs {unknown}"
        values = {name: str(inputs.get(name, one.get("default", ""))) for name, one in declared.items()}
        context = {"inputs": values, "github": github, "runner": {"arch": "X64"}, "steps": {}}
        status = self.steps(action["runs"]["steps"], context, {"GITHUB_ACTION_PATH": str(path)})
        outputs = {name: substituted(one["value"], context) for name, one in action["outputs"].items()}
        return Run(status, self.log, outputs, self.files["GITHUB_STEP_SUMMARY"].read_text(), self.used)

    def job(self, job, context, action):
        """Runs the job of a workflow, with the action of this repository at `action`."""
        self.action_path, self.log = action, ""
        variables = {name: substituted(str(value), context) for name, value in job.get("env", {}).items()}
        status = self.steps(job["steps"], {**context, "env": variables, "steps": {}}, variables)
        return Run(status, self.log, {}, self.files["GITHUB_STEP_SUMMARY"].read_text(), self.used)

    def uses(self, step, context):
        """A step with an action: ours is run, another one is recorded."""
        given = {name: substituted(as_text(value), context) for name, value in step.get("with", {}).items()}
        if not step["uses"].startswith(f"{OWN}@"):
            self.used.append((step["uses"], given))
            return 0, {}
        own = self.action(self.action_path, {**given, "releases": context["releases"]}, context["github"])
        return own.status, own.outputs

    def steps(self, steps, context, variables):
        failed = 0
        for step in steps:
            condition = str(step.get("if", "success()"))
            always = "always()" in condition
            if (failed and not always) or not (evaluated(condition.replace("${{", "").replace("}}", ""), {**context, "status": failed})):
                continue
            status, outputs = self.uses(step, context) if "uses" in step else self.step(step, context, variables)
            failed = failed or status
            if "id" in step:
                context["steps"][step["id"]] = {"outputs": outputs}
        return failed

    def step(self, step, context, variables):
        environment = {**self.environment, **variables, **{name: substituted(str(value), context) for name, value in step.get("env", {}).items()}}
        environment["PATH"] = os.pathsep.join([*reversed(self.path), environment["PATH"]])
        for name in ("GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_ENV"):
            self.files[name].write_text("")
        environment.update((name, str(path)) for name, path in self.files.items() if name not in self.environment.get("MISSING", ""))
        script = self.temporary / "step.sh"
        script.write_text(substituted(step["run"], context))
        done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", script], cwd=self.workspace, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        self.log += done.stdout + done.stderr
        self.path += self.files["GITHUB_PATH"].read_text().splitlines()
        return done.returncode, dict(line.split("=", 1) for line in self.files["GITHUB_OUTPUT"].read_text().splitlines())


def substituted(text, context):
    return EXPRESSION.sub(lambda match: as_text(evaluated(match[1], context)), text)


def as_text(value):
    """A value as GitHub writes it."""
    return {True: "true", False: "false", None: ""}.get(value, value) if isinstance(value, (bool, type(None))) else str(value)


def evaluated(expression, context):
    """The value of an expression: names, strings, ==, !=, !, &&, || and calls of format(), contains(), always() and success()."""
    tokens = TOKEN.findall(expression)
    assert "".join(tokens) == re.sub(r"\s+(?=(?:[^']*'[^']*')*[^']*$)", "", expression), f"not understood: {expression}"
    value, rest = either(tokens, context)
    assert not rest, f"not understood: {expression}"
    return value


def either(tokens, context):
    value, tokens = both(tokens, context)
    while tokens[:1] == ["||"]:
        other, tokens = both(tokens[1:], context)
        value = value or other
    return value, tokens


def both(tokens, context):
    value, tokens = compared(tokens, context)
    while tokens[:1] == ["&&"]:
        other, tokens = compared(tokens[1:], context)
        value = value and other
    return value, tokens


def compared(tokens, context):
    value, tokens = single(tokens, context)
    if tokens and tokens[0] in ("==", "!="):
        other, rest = single(tokens[1:], context)
        return (value == other) == (tokens[0] == "=="), rest
    return value, tokens


def single(tokens, context):
    first, tokens = tokens[0], tokens[1:]
    if first == "!":
        value, tokens = single(tokens, context)
        return not value, tokens
    if first == "(":
        value, tokens = either(tokens, context)
        return value, tokens[1:]
    if first.startswith("'"):
        return first[1:-1].replace("''", "'"), tokens
    if tokens[:1] != ["("]:
        value = context
        for part in first.split("."):
            value = value.get(part, "") if isinstance(value, dict) else ""
        return value, tokens
    arguments, tokens = [], tokens[1:]
    while tokens[0] != ")":
        value, tokens = either(tokens, context)
        arguments.append(value)
        tokens = tokens[1:] if tokens[0] == "," else tokens
    functions = {
        "always": lambda: True, "success": lambda: not context.get("status"), "failure": lambda: bool(context.get("status")),
        "format": lambda text, *values: re.sub(r"\{(\d+)\}", lambda match: values[int(match[1])], text),
        "contains": lambda text, part: part in text,
    }
    return functions[first](*arguments), tokens[1:]
