"""The GitLab component, the Jenkins step and the hooks for pre-commit, run with what each service sets."""
import json, os, pathlib, re, shutil, subprocess, tempfile, tomllib, unittest

import yaml
from releases import IMAGES, ROOT, VERSION, program_folder, require_answers, served, write

setUpModule = require_answers


class Service(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.work = self.folder / "work"
        self.work.mkdir()
        for image in ("good", "no-nccl"):
            shutil.copy(IMAGES / f"{image}.oci.tar", self.work)
        write(self.folder / "releases")
        server = served(self.folder / "releases")
        self.url, _ = server.__enter__()
        self.addCleanup(server.__exit__, None, None, None)
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "TMPDIR": str(self.folder), "CI": "true"}

    def run_script(self, script, shell=("bash", "-eo", "pipefail"), **environment):
        # What the scripts keep in /tmp is kept apart.
        script = script.replace("/tmp/", f"{self.folder}/tmp-")
        return subprocess.run([*shell, "-c", script], cwd=self.work, env={**self.environment, **environment}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


class GitLab(Service):
    def job(self, **inputs):
        """The job that GitLab makes of the component."""
        header, text = (ROOT / "scripts/packages/ci/templates/ncclcheck.yml").read_text().split("\n---\n")
        declared = yaml.safe_load(header)["spec"]["inputs"]
        inputs = {"version": VERSION, "releases": self.url, **{name.replace("_", "-"): value for name, value in inputs.items()}}
        values = {name: inputs.pop(name, one.get("default")) for name, one in declared.items()}
        self.assertEqual((inputs, [name for name, value in values.items() if value is None]), ({}, []))

        def filled(node):
            if isinstance(node, dict):
                return {filled(key): filled(value) for key, value in node.items()}
            if isinstance(node, list):
                return [filled(one) for one in node]
            return re.sub(r"\$\[\[ inputs\.([\w-]+) \]\]", lambda match: values[match[1]], node) if isinstance(node, str) else node

        (name, job), = filled(yaml.safe_load(text)).items()
        self.assertEqual(name, "ncclcheck")
        return job

    def run_job(self, job, **environment):
        variables = {"GITLAB_CI": "true", "CI_PROJECT_DIR": str(self.work), "CI_JOB_ID": "1", **environment}
        job_variables = {name: value.replace("$CI_PROJECT_DIR", variables["CI_PROJECT_DIR"]) for name, value in job["variables"].items()}
        return self.run_script("\n".join(job["script"]), **job_variables, **variables)

    def test_job(self):
        job = self.job(image="good.oci.tar\nno-nccl.oci.tar", profile="ci")
        done = self.run_job(job)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("nccl/missing-library", done.stdout)
        reports = job["artifacts"]["reports"]
        quality = json.loads((self.work / reports["codequality"]).read_text())
        self.assertEqual([one["check_name"] for one in quality], ["nccl/missing-library"])
        self.assertIn("<testsuite", (self.work / reports["junit"]).read_text())
        for path in [*job["artifacts"]["paths"], *job["cache"]["paths"]]:
            self.assertTrue(list((self.work / path).rglob("*")), f"{path} is kept, but is empty")
        self.assertEqual(self.run_job(self.job(image="good.oci.tar", fail_on="warning")).returncode, 0)

    def test_missing_variable(self):
        done = self.run_job(self.job(image="good.oci.tar"), CI_PROJECT_DIR="")
        self.assertIn("CI_PROJECT_DIR: is not set", done.stderr)
        self.assertNotEqual(done.returncode, 0)


class Jenkins(Service):
    """The script of the step; with groovy, the whole step."""
    VARIABLES = {"JENKINS_URL": "http://127.0.0.1/", "BUILD_NUMBER": "1"}
    STEP = ROOT / "scripts/packages/ci/vars/ncclcheck.groovy"

    def run_step(self, image, **more):
        return self.run_script(re.search(r"'''(.*)'''", self.STEP.read_text(), re.S)[1], ("sh",), **self.VARIABLES, WORKSPACE=str(self.work),
                               RELEASES=self.url, VERSION=VERSION, INPUT_IMAGE=image, INPUT_FORMAT="junit", **more)

    def test_script(self):
        self.assertEqual(self.run_step("good.oci.tar").returncode, 0)
        self.assertIn("<testsuite", (self.work / "ncclcheck-reports/ncclcheck.xml").read_text())
        self.assertEqual(self.run_step("no-nccl.oci.tar").returncode, 1)
        self.assertEqual(self.run_step("nothing.tar").returncode, 2)

    def test_whole_step(self):
        if shutil.which("groovy") is None:
            self.skipTest("no groovy on this machine")
        # Stands in for Jenkins: the steps that the library step calls.
        (self.folder / "jenkins.groovy").write_text("""
            class Stop extends RuntimeException { Stop(String text) { super(text) } }
            def step = new GroovyShell(binding).parse(new File(args[0]))
            def variables = [:]
            step.metaClass.withEnv = { List all, Closure body -> all.each { variables.put(*it.split('=', 2)) }; body() }
            step.metaClass.error = { text -> println "error: ${text}"; throw new Stop(text.toString()) }
            step.metaClass.junit = { Map given -> println "junit: ${new File(given.testResults).exists()}" }
            step.metaClass.sh = { Map given ->
              def builder = new ProcessBuilder('sh', '-c', given.script)
              builder.environment().putAll(variables)
              builder.inheritIO().start().waitFor()
            }
            try { println "status: ${step.call(Eval.me(args[1]))}" } catch (Stop stop) { System.exit(1) }
        """)
        def run(settings):
            done = subprocess.run(["groovy", self.folder / "jenkins.groovy", self.STEP, settings], cwd=self.work, env={**self.environment, **self.VARIABLES, "WORKSPACE": str(self.work)}, capture_output=True, text=True, timeout=120)
            return done.returncode, done.stdout
        where = f"version: '{VERSION}', releases: '{self.url}'"
        status, text = run(f"[image: 'good.oci.tar', profile: 'ci', {where}]")
        self.assertEqual(status, 0, text)
        self.assertIn("junit: true\nstatus: 0", text)
        status, text = run(f"[image: 'no-nccl.oci.tar', {where}]")
        self.assertEqual(status, 1)
        self.assertIn("error: ncclcheck exited with 1", text)
        self.assertIn("status: 1", run(f"[image: 'no-nccl.oci.tar', fail: false, {where}]")[1])
        self.assertIn("status: 0", run(f"[image: 'no-nccl.oci.tar', failOn: 'never', {where}]")[1])
        self.assertIn("the setting 'version' is missing", run("[image: 'good.oci.tar']")[1])


class PreCommit(Service):
    FOLDER = ROOT / "scripts/packages/ci/pre-commit"

    def setUp(self):
        super().setUp()
        self.hooks = {hook["id"]: hook for hook in yaml.safe_load((self.FOLDER / ".pre-commit-hooks.yaml").read_text())}
        self.environment["PATH"] = f"{program_folder(self.folder)}:{self.environment['PATH']}"

    def run_hook(self, hook, files=(), arguments=()):
        hook = self.hooks[hook]
        chosen = [file for file in files if re.search(hook.get("files", ""), file)] if hook.get("pass_filenames", True) else []
        return self.run_script(f"{hook['entry']} {' '.join([*arguments, *chosen])}")

    def test_pre_commit_installs_this_version(self):
        project = tomllib.loads((self.FOLDER / "pyproject.toml").read_text())["project"]
        self.assertEqual((project["version"], project["dependencies"]), (VERSION, [f"ncclcheck=={VERSION}"]))
        self.assertEqual({hook["language"] for hook in self.hooks.values()}, {"python"})

    def test_rules(self):
        rules = self.work / "rules/our"
        rules.mkdir(parents=True)
        text = (ROOT / "rules/nccl/missing-library.yaml").read_text()
        (rules / "good.yaml").write_text(text.replace("id: nccl/missing-library", "id: our/good"))
        done = self.run_hook("ncclcheck-rules", ["rules/our/good.yaml", "README.md"])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("1 rules, ", done.stdout)
        (rules / "bad.yaml").write_text("title: [\n")
        done = self.run_hook("ncclcheck-rules", ["rules/our/bad.yaml"])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("bad.yaml", done.stdout + done.stderr)

    def test_image(self):
        self.assertEqual(self.run_hook("ncclcheck-image", arguments=["good.oci.tar"]).returncode, 0)
        self.assertEqual(self.run_hook("ncclcheck-image", arguments=["no-nccl.oci.tar"]).returncode, 1)


if __name__ == "__main__":
    unittest.main()
