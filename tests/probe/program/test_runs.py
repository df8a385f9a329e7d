"""Runs of the whole program: its protocol, and steps that crash, hang, exit or print."""
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

from harness import PATIENCE, START, Payload, program


class Runs(Payload):
    """Runs of the whole program, with misbehaving torch modules."""

    def torch(self, text, also=()):
        """The variable that makes children import this text as torch."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, content in dict(also, **({"torch": text} if text else {})).items():
            with open(os.path.join(folder.name, name + ".py"), "w") as file:
                file.write(content)
        return {"PYTHONPATH": folder.name}

    def pytorch(self, text, deadline=PATIENCE, also=()):
        return self.last(self.run_plan({"steps": ["pytorch"], "deadlines": {"pytorch": deadline},
                                        "env": self.torch(text, also)}))

    def test_limits(self):
        event = self.last(self.run_plan({"steps": ["limits"]}, env=dict(os.environ, NCCL_ALGO="Ring", SECRET_KEY="x")))
        body = event["body"]
        self.assertEqual(event["event"], "result")
        self.assertEqual(body["user"]["uid"], os.getuid())
        self.assertEqual(body["namespaces"]["net"], os.stat("/proc/self/ns/net").st_ino)
        self.assertIn("lo", [interface["name"] for interface in body["interfaces"]])
        self.assertEqual(body["variables"]["NCCL_ALGO"], "Ring")
        self.assertNotIn("SECRET_KEY", body["variables"])

    def test_as_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "payload.py")
            with open(path, "w") as file:
                file.write(program())
            out = subprocess.run([sys.executable, path, "--plan", '{"steps": ["limits"]}'], stdout=subprocess.PIPE).stdout
        self.assertEqual(self.last(self.events(out))["event"], "result")

    def test_from_standard_input(self):
        run = [sys.executable, "-", "--plan", '{"steps": ["limits"]}']
        with tempfile.TemporaryFile() as file:
            file.write(program().encode("ascii"))
            file.seek(0)
            out = subprocess.run(run, stdin=file, stdout=subprocess.PIPE).stdout
        self.assertEqual(self.last(self.events(out))["event"], "result")
        piped = subprocess.run(run, input=program().encode("ascii"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((piped.returncode, piped.stdout), (1, b""))
        self.assertIn(b"start this program from a file", piped.stderr)

    def test_wrong_plans(self):
        for plan, words in (("{", b"--plan is not JSON"), ('{"step": []}', b"unknown key 'step'")):
            done = subprocess.run([sys.executable, "-c", START, "--plan", plan], input=program().encode("ascii"),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stdout), (2, b""))
            self.assertIn(words, done.stderr)

    def test_no_torch(self):
        blocked = {"sitecustomize": "import sys\nclass Finder:\n    def find_spec(self, name, *_):\n        if name == 'torch':\n"
                   "            raise ModuleNotFoundError(name='torch')\nsys.meta_path.insert(0, Finder())"}
        event = self.pytorch(None, also=blocked)
        self.assertEqual((event["event"], event["how"], event["type"]), ("failed", "exception", "ModuleNotFoundError"))
        self.assertIn("has no PyTorch", event["message"])

    def test_no_gpu(self):
        for step in ("collectives", "forced-network"):
            event = self.last(self.run_plan({"steps": [step]}))
            self.assertEqual(event["event"], "skipped")
            self.assertIn("CUDA sees no GPU here", event["why"])

    def test_a_crash(self):
        event = self.pytorch("import os, signal\nprint('last words', flush=True)\nos.kill(os.getpid(), signal.SIGSEGV)")
        self.assertEqual((event["event"], event["how"], event["signal"]), ("failed", "signal", "SIGSEGV"))
        self.assertIn("last words", event["stderr"])
        self.assertIn("Fatal Python error: Segmentation fault", event["stderr"])

    def test_a_crash_before_the_turn_of_the_step(self):
        crash = "import os, signal\nprint('last words', flush=True)\nos.kill(os.getpid(), signal.SIGSEGV)"
        events = self.run_plan({"steps": ["limits", "storage", "pytorch", "collectives"], "env": self.torch(crash)})
        closing = {event["step"]: event for event in events if event["event"] in ("result", "failed", "skipped")}
        self.assertEqual([closing[step]["event"] for step in ("limits", "storage", "collectives")], ["result", "result", "skipped"])
        event = closing["pytorch"]
        self.assertEqual((event["event"], event["how"], event["signal"]), ("failed", "signal", "SIGSEGV"))
        self.assertIn("last words", event["stderr"])

    def test_an_exit(self):
        event = self.pytorch("import os, sys\nprint('no licence', file=sys.stderr, flush=True)\nos._exit(3)")
        self.assertEqual((event["how"], event["code"], event["stderr"]), ("exit", 3, ["no licence"]))

    def test_an_exit_with_status_0_before_the_result(self):
        self.assertEqual(self.pytorch("import os\nos._exit(0)")["how"], "protocol")

    def test_a_system_exit(self):
        event = self.pytorch("raise SystemExit('enough')")
        self.assertEqual((event["how"], event["type"], event["message"]), ("exception", "SystemExit", "enough"))

    def test_a_hang(self):
        def run(limit):
            return self.pytorch("import time\ndef forever():\n    time.sleep(3600)\nforever()", deadline=limit)

        event = self.hang(run, 2, lambda event: "in forever" in str(event.get("stacks")))
        self.assertEqual((event["event"], event["how"]), ("failed", "deadline"))
        stack, = event["stacks"]
        self.assertEqual((stack["process"], stack["state"]), ("pytorch", "S (sleeping)"))
        self.assertIn("in forever", "\n".join(stack["stack"]))

    def test_printed_text_stays_off_the_wire(self):
        event = self.pytorch("import sys\nfor _ in range(20000): print('x' * 1000)\nraise ValueError('then this')",
                             also={"sitecustomize": "print('banner of the image')"})
        self.assertEqual((event["type"], event["message"]), ("ValueError", "then this"))
        self.assertLessEqual(len(event["stderr"]), 40)
        self.assertLessEqual(max(map(len, event["stderr"])), 500)

    def test_the_log_of_nccl(self):
        """Ranks forward lines written to NCCL_DEBUG_FILE, up to a limit, and some warnings above it."""
        plan = {"steps": ["collectives"], "collectives": {"backend": "gloo"}, "env": self.torch(
            "import os\nwith open(os.environ['NCCL_DEBUG_FILE'], 'w') as log:\n"
            "    for number in range(4100): print('NCCL INFO', number, file=log)\n"
            "    for number in range(103): print('a:1:1 [0] NCCL WARN', number, file=log)\nraise ValueError('enough')")}
        events = self.run_plan(plan, env=dict(os.environ, NCCL_DEBUG="WARN", NCCL_DEBUG_FILE="/logs/%h.%p"))
        self.assertEqual(self.parts(events, "setup")[0]["replaced"], {"NCCL_DEBUG": "WARN", "NCCL_DEBUG_FILE": "/logs/%h.%p"})
        for rank in (0, 1):
            lines = [event for event in events if event["event"] == "log" and event["rank"] == rank]
            self.assertEqual((len(lines), lines[0]["line"], lines[0]["left_out"]), (4101, "NCCL INFO 0", None))
            self.assertEqual((lines[-1]["left_out"], lines[-1]["line"]), (103, "103 more lines were left out"))
        self.assertEqual((self.last(events)["type"], self.last(events)["rank"] in (0, 1)), ("ValueError", True))

    def test_an_invalid_message(self):
        event = self.pytorch("import os, sys\nprint('before')\n"
                             "os.write(int(sys.argv[sys.argv.index('--report') + 1]), b'nonsense\\n')")
        self.assertEqual(event["how"], "protocol")
        self.assertIn("an invalid message: 'nonsense'", event["message"])

    def test_a_process_that_does_not_end_after_its_result(self):
        text = program().replace("EXIT_GRACE = 10", "EXIT_GRACE = 1")
        plan = {"steps": ["pytorch"], "env": self.torch(
            "import atexit, time\natexit.register(time.sleep, 3600)\nraise ValueError('enough')")}
        event = self.last(self.run_plan(plan, text=text))
        self.assertEqual((event["how"], event["message"]), ("exception", "enough"))
        self.assertLess(event["seconds"], PATIENCE)

    def test_a_process_that_cannot_start(self):
        event = self.last(self.run_plan({"steps": ["limits"]}, preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_NOFILE, (8, 8))))
        self.assertEqual((event["how"], event["type"]), ("exception", "OSError"))
        self.assertEqual(event["message"], "cannot start a process for the step: Too many open files")

    def test_without_anonymous_files(self):
        text = program().replace("os.memfd_create(", "os.absent(")
        self.assertEqual(self.last(self.run_plan({"steps": ["limits"]}, text=text))["event"], "result")

    def test_it_ends_when_its_input_ends(self):
        with tempfile.TemporaryDirectory() as folder:
            mark = os.path.join(folder, "pid")
            process = self.start_with_lifeline({"steps": ["pytorch"], "env": self.torch(
                "import os, time\nwith open(%r + '.new', 'w') as file: file.write(str(os.getpid()))\n"
                "os.rename(%r + '.new', %r)\ntime.sleep(3600)" % (mark, mark, mark))})
            pids = self.pids_in(mark)
            process.stdin.close()
            self.assertEqual(process.wait(timeout=PATIENCE), 128 + signal.SIGTERM)
            process.stdout.close()
            self.assert_gone(pids)

    def test_it_ends_when_its_output_is_closed(self):
        process = self.start({"steps": ["limits"]})
        process.stdout.readline()
        process.stdout.close()
        self.assertEqual(process.wait(timeout=PATIENCE), 1)
        process.stderr.close()

    def test_a_process_left_behind_does_not_hold_the_step(self):
        event = self.pytorch("import subprocess, os\nsubprocess.Popen(['sleep', '3600'])\nos._exit(4)")
        self.assertEqual((event["how"], event["code"]), ("exit", 4))
        self.assertLess(event["seconds"], PATIENCE)

    def test_imports_search_the_working_folder(self):
        event = self.pytorch("import sys\nraise ValueError(sys.path[0])")
        self.assertEqual(event["message"], repr(ValueError("")))

    def test_signals_end_it_and_all_its_processes(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with tempfile.TemporaryDirectory() as folder:
                mark = os.path.join(folder, "pids")
                text = ("import os, subprocess, time\nother = subprocess.Popen(['sleep', '3600'])\n"
                        "with open(%r + '.new', 'w') as file: file.write('%%d %%d' %% (os.getpid(), other.pid))\n"
                        "os.rename(%r + '.new', %r)\ntime.sleep(3600)" % (mark, mark, mark))
                process = self.start({"steps": ["pytorch"], "env": self.torch(text)})
                pids = self.pids_in(mark)
                process.send_signal(number)
                process.communicate(timeout=PATIENCE)
                self.assertEqual(process.returncode, 128 + number)
                self.assert_gone(pids)

    def test_a_kill_leaves_no_process_behind(self):
        with tempfile.TemporaryDirectory() as folder:
            mark = os.path.join(folder, "pid")
            process = self.start({"steps": ["pytorch"], "env": self.torch(
                "import os, time\nwith open(%r + '.new', 'w') as file: file.write(str(os.getpid()))\n"
                "os.rename(%r + '.new', %r)\ntime.sleep(3600)" % (mark, mark, mark))})
            pids = self.pids_in(mark)
            process.kill()
            process.communicate(timeout=PATIENCE)
            self.assert_gone(pids)

    def pids_in(self, mark):
        """The process IDs in a file that the program's processes write."""
        until = time.monotonic() + PATIENCE
        while not os.path.exists(mark) and time.monotonic() < until:
            time.sleep(0.05)
        with open(mark) as file:
            return [int(pid) for pid in file.read().split()]
