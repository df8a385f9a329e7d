"""The action for GitHub, run with the files and variables of a runner, and the release served on 127.0.0.1."""
import json, os, pathlib, re, shutil, subprocess, tempfile, unittest

import yaml
from composite import Runner, evaluated, workflows_of_the_book
from releases import IMAGES, NAME, OWN, REPOSITORY, ROOT, VERSION, require_answers, served, write


setUpModule = require_answers


class Action(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.workspace, self.home = self.folder / "work", self.folder / "home"
        self.workspace.mkdir()
        self.home.mkdir()
        for image in ("good", "no-nccl", "use-nccl-off", "debug-on"):
            shutil.copy(IMAGES / f"{image}.oci.tar", self.workspace)
        self.sha256 = write(self.folder / "releases")
        server = served(self.folder / "releases")
        self.url, self.asked = server.__enter__()
        self.addCleanup(server.__exit__, None, None, None)

    def run_action(self, environment=None, action=ROOT, **inputs):
        temporary = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        self.runner = Runner(self.workspace, temporary, {"HOME": str(self.home), **(environment or {})})
        self.runner.files["GITHUB_STEP_SUMMARY"].write_text("# of a step before\n")
        given = {"releases": self.url, **{name.replace("_", "-"): value for name, value in inputs.items()}}
        return self.runner.action(action, given, {"run_id": "7", "run_attempt": "1"})

    def test_image_that_passes(self):
        run = self.run_action(image="good.oci.tar", sha256=self.sha256)
        self.assertEqual((run.status, run.outputs["verdict"], run.outputs["status"], run.outputs["errors"]), (0, "pass", "0", "0"), run.log)
        self.assertEqual(self.asked, [f"/v{VERSION}/SHA256SUMS", f"/v{VERSION}/{NAME}.tar.gz"])
        self.assertEqual([uses.split("@")[0] for uses, _ in run.used], ["actions/cache"])
        self.assertEqual(run.used[0][1]["path"], "~/.cache/ncclcheck")
        self.assertTrue(list((self.home / ".cache/ncclcheck").rglob("*")), "the cache is where the action saves it")

    def test_findings_fail_the_last_step_and_are_in_every_report(self):
        run = self.run_action(image="no-nccl.oci.tar", format="sarif junit")
        self.assertEqual((run.status, run.outputs["verdict"], run.outputs["errors"]), (1, "fail", "1"), run.log)
        self.assertIn("::error", run.log)
        self.assertTrue(run.summary.startswith("# of a step before\n") and "nccl/missing-library" in run.summary)
        report = json.loads((self.workspace / run.outputs["report"]).read_text())
        failed = [one["severity"] for one in report["judgements"] if one["outcome"] == "fail"]
        counts = {name: int(run.outputs[f"{name}s"]) for name in ("error", "warning", "info")}
        self.assertEqual(counts, {name: failed.count(name) for name in counts})
        self.assertEqual(int(run.outputs["unknown"]), sum(one["outcome"] == "unknown" for one in report["judgements"]))
        self.assertIn("nccl/missing-library", (self.workspace / run.outputs["comment"]).read_text())
        self.assertIn(("github/codeql-action/upload-sarif", {"sarif_file": run.outputs["sarif"]}), [(uses.split("@")[0], given) for uses, given in run.used])
        self.assertIn("nccl/missing-library", (self.workspace / run.outputs["sarif"]).read_text())
        self.assertIn("<testsuite", (self.workspace / "ncclcheck-reports/ncclcheck.xml").read_text())

    def test_several_images_and_the_worst_verdict(self):
        run = self.run_action(image="good.oci.tar\nno-nccl.oci.tar\n", cache="false")
        self.assertEqual((run.status, run.outputs["verdict"]), (1, "fail"), run.log)
        self.assertEqual(len((self.workspace / run.outputs["report"]).read_text().splitlines()), 2)
        self.assertEqual(run.used, [])
        self.assertFalse((self.home / ".cache").exists())

    def test_policy_of_the_repository_counts_only_if_it_is_named(self):
        (self.workspace / "ncclcheck.yaml").write_text("rules:\n  severity:\n    nccl/missing-library: off\n")
        run = self.run_action(image="no-nccl.oci.tar")
        self.assertEqual((run.outputs["verdict"], run.outputs["errors"]), ("fail", "1"), run.log)
        self.assertIn("::notice title=ncclcheck::ncclcheck.yaml is ignored", run.log)
        run = self.run_action(image="no-nccl.oci.tar", policy="ncclcheck.yaml")
        self.assertEqual((run.status, run.outputs["errors"]), (0, "0"), run.log)
        self.assertNotIn("ignored", run.log)

    def test_release_is_the_one_of_the_ref(self):
        run = self.run_action(image="good.oci.tar")
        self.assertIn(f"/v{VERSION}/SHA256SUMS", self.asked)
        answer = subprocess.run([run.outputs["program"], "--version"], capture_output=True, text=True).stdout
        self.assertTrue(answer.startswith(f"ncclcheck {VERSION}\n"), answer)
        run = self.run_action(image="good.oci.tar", version="9.9.9")
        self.assertIn("has no SHA256SUMS of version 9.9.9", run.log)
        self.assertNotEqual(run.status, 0)

    def test_many_images_have_several_sarif_files(self):
        run = self.run_action(image="good.oci.tar\n" * 21, format="sarif")
        self.assertEqual(run.status, 0, run.log)
        self.assertEqual(run.outputs["sarif"], "ncclcheck-reports")

    def test_options_reach_the_program(self):
        (self.workspace / "ours.yaml").write_text("fail-on: never\n")
        (self.workspace / "Dockerfile").write_text("FROM scratch\nRUN pip install torch==2.9.0\n")
        self.assertEqual(self.run_action(image="no-nccl.oci.tar", policy="ours.yaml").status, 0)
        outputs = self.run_action(image="no-nccl.oci.tar", fail_on="never").outputs
        self.assertEqual((outputs["verdict"], outputs["errors"]), ("pass", "1"))
        self.assertEqual(self.run_action(image="no-nccl.oci.tar", baseline="no-nccl.oci.tar").status, 0)
        self.assertEqual(self.run_action(image="debug-on.oci.tar", fail_on="info", profile="ci").status, 1)
        self.assertIn("file=Dockerfile,line=2", self.run_action(image="no-nccl.oci.tar", dockerfile="Dockerfile").log)
        self.run_action(image="use-nccl-off.oci.tar", cache=str(self.folder / "shared"))
        self.assertTrue(list((self.folder / "shared").rglob("*")), "the shared cache is filled")

    def test_no_verdict(self):
        run = self.run_action(image="nothing.oci.tar")
        self.assertEqual((run.status, run.outputs["verdict"]), (2, "error"), run.log)
        self.assertIn("nothing.oci.tar", run.summary)
        run = self.run_action(image="good.oci.tar", profile="none-such")
        self.assertEqual((run.status, run.outputs["verdict"]), (2, "error"), run.log)
        self.assertIn("no verdict", run.summary)
        self.assertIn("none-such", run.log)
        self.assertEqual(self.run_action(image=" \n").status, 2)
        self.assertIn("no such report: pdf", self.run_action(image="good.oci.tar", format="pdf").log)

    def test_release_of_the_named_repository_is_the_default(self):
        shutil.move(self.folder / "releases", self.folder / "moved")
        shutil.move(self.folder / "moved", self.folder / "releases/owner/ncclcheck/releases/download")
        action = self.folder / "action"
        shutil.copytree(ROOT / "scripts/packages/ci", action / "scripts/packages/ci")
        shutil.copy(ROOT / "action.yml", action)
        text = (ROOT / "Cargo.toml").read_text()
        (action / "Cargo.toml").write_text(text.replace(REPOSITORY, f"{self.url}/owner/ncclcheck"))
        self.assertEqual(self.run_action(action=action, image="good.oci.tar", releases="").status, 0)

    def test_missing_variable_of_the_runner(self):
        for variable in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
            run = self.run_action({"MISSING": variable}, image="good.oci.tar")
            self.assertIn(f"{variable} is not", run.log)
            self.assertNotEqual(run.status, 0)

    def test_inputs_are_no_code(self):
        self.run_action(image="$(touch one) `touch two`; touch three\n", profile="$(touch four)")
        self.assertEqual(sorted(path.name for path in self.workspace.iterdir() if path.suffix != ".tar"), ["ncclcheck-reports"])

    def test_read_only_home(self):
        if os.geteuid() == 0:
            # Root may write everywhere, but not below a file.
            self.home.rmdir()
            self.home.write_text("")
        else:
            self.home.chmod(0o500)
        run = self.run_action(image="good.oci.tar")
        self.assertEqual((run.status, run.outputs["verdict"]), (0, "pass"), run.log)


class Comment(unittest.TestCase):
    """The step of docs/ci-github/pull-request.yml that comments, with a stand-in for gh that keeps the comments of a pull request."""
    GH = """#!/usr/bin/env python3
import json, pathlib, subprocess, sys
store, words = pathlib.Path("comments.json"), sys.argv[1:]
comments = json.loads(store.read_text())
where = next(word for word in words if word.startswith("repos/"))
if "--jq" in words:
    assert where == "repos/team/train/issues/5/comments"
    sys.exit(subprocess.run(["jq", "-r", words[words.index("--jq") + 1]], input=json.dumps(comments), text=True).returncode)
(name, file), = [word.split("=@") for word in words if "=@" in word]
one = {name: pathlib.Path(file).read_text()}
if "PATCH" in words:
    next(known for known in comments if where == f"repos/team/train/issues/comments/{known['id']}").update(one)
else:
    assert where == "repos/team/train/issues/5/comments"
    comments.append({"id": 40 + len(comments), "user": {"login": "github-actions[bot]"}, **one})
store.write_text(json.dumps(comments))
"""

    def test_one_comment_is_kept(self):
        step = workflows_of_the_book()["pull-request"]["jobs"]["image"]["steps"][-1]
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "gh").write_text(self.GH)
            (folder / "gh").chmod(0o755)
            others = [{"id": 7, "user": {"login": "someone"}, "body": "<!-- ncclcheck -->\nmine"}, {"id": 8, "user": {"login": "github-actions[bot]"}, "body": "the last of another job"}]
            (folder / "comments.json").write_text(json.dumps(others))
            for text in ("first", "second"):
                (folder / "report.md").write_text(text)
                environment = {"PATH": f"{folder}:{os.environ['PATH']}", "GITHUB_REPOSITORY": "team/train", "NUMBER": "5", "REPORT": "report.md"}
                subprocess.run(["bash", "-eo", "pipefail", "-c", step["run"]], cwd=folder, env=environment, check=True)
                kept = json.loads((folder / "comments.json").read_text())
                self.assertEqual((kept[:2], [one["body"] for one in kept[2:]]), (others, [f"<!-- ncclcheck -->\n{text}"]))


class Safety(unittest.TestCase):
    """What zizmor asks of workflows, for those of this repository, the action and the workflows in the book."""

    def test_steps(self):
        files = {path.name: yaml.safe_load(path.read_text()) for path in (ROOT / ".github/workflows").glob("*.yml")} | workflows_of_the_book()
        self.assertGreater(len(files), 7)
        steps = [("action.yml", step) for step in yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]]
        for name, file in files.items():
            self.assertIn("permissions", file, name)
            steps += [(name, step) for job in file["jobs"].values() for step in job["steps"]]
        for name, step in steps:
            self.assertNotIn("${{", step.get("run", ""), f"{name}: a value in a script is code; pass it in env")
            self.assertNotRegex(step.get("run", ""), "GITHUB_(PATH|ENV)", f"{name}: what later steps run is not set for all of them")
            uses = step.get("uses", "@" + "0" * 40)
            if not uses.startswith(f"{OWN}@"):
                self.assertRegex(uses, "@[0-9a-f]{40}$", f"{name}: an action is named by its commit")
            if uses.startswith("actions/checkout@"):
                self.assertIs(step["with"]["persist-credentials"], False, f"{name}: the token stays in the checkout")

    def test_one_commit_of_each_action(self):
        texts = [path.read_text() for path in [ROOT / "action.yml", ROOT / "docs/ci-github.md", *(ROOT / "docs/ci-github").glob("*.yml"), *(ROOT / ".github/workflows").glob("*.yml")]]
        pins = re.findall(r"uses: (\S+)@([0-9a-f]{40})(?: # (v\d+\.\d+\.\d+))?$", "\n".join(texts), re.M)
        self.assertGreater(len(pins), 5)
        self.assertEqual([pin for pin in pins if not pin[2]], [], "the release is a comment behind the commit")
        self.assertEqual(len({name for name, _, _ in pins}), len(set(pins)), "two commits of one action")


class Expressions(unittest.TestCase):
    def test_values(self):
        context = {"a": {"b": "x"}}
        for expression, value in [("a.b == 'x'", True), ("a.c", ""), ("a.c || 'y'", "y"), ("!a.c && a.b", "x"), ("format('{1}-{0}', 'p', a.b)", "x-p"), ("contains(a.b, 'x') && a.b != ''", True)]:
            self.assertEqual(evaluated(expression, context), value, expression)
        with self.assertRaises(AssertionError):
            evaluated("a.b > 3", context)


if __name__ == "__main__":
    unittest.main()
