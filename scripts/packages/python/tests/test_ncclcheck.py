"""Tests of the module with the program in $NCCLCHECK_PROGRAM, or with the installed one."""
import os
import stat
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[4]
if not os.environ.get("NCCLCHECK_INSTALLED"):
    sys.path.insert(0, str(ROOT / "scripts/packages/python/src"))

import ncclcheck  # noqa: E402

IMAGES = ROOT / "fixtures/images"
OPTIONS = ["--no-config"]


def setUpModule():
    try:
        judgements = ncclcheck.check(IMAGES / "good.oci.tar", options=OPTIONS).judgements
    except ncclcheck.Error as error:
        raise RuntimeError(f"no answer: {error}") from error
    if not judgements:
        raise RuntimeError("no answer: the program judges nothing")


class Check(unittest.TestCase):
    def test_image_that_passes(self):
        report = ncclcheck.check(IMAGES / "good.oci.tar", options=OPTIONS)
        self.assertEqual(report.verdict, "pass")
        self.assertEqual(report.platform, "linux/amd64")
        self.assertRegex(report.manifest, r"\Asha256:[0-9a-f]{64}\Z")
        self.assertRegex(report.value("torch.version"), r"\A2\.")

    def test_findings_have_their_place(self):
        report = ncclcheck.check(IMAGES / "no-nccl.oci.tar", options=OPTIONS)
        self.assertEqual(report.verdict, "fail")
        finding, *more = report.findings
        self.assertEqual((finding.rule, finding.severity, finding.owner, more), ("nccl/missing-library", "error", "image", []))
        self.assertIn("libnccl.so.2", finding.message)
        self.assertEqual(finding.at[0].layer, 2)
        self.assertIsNone(report.value("nccl.loaded.version"))

    def test_worst_finding_is_first(self):
        report = ncclcheck.check(IMAGES / "env-disabled.oci.tar", options=OPTIONS)
        severities = [ncclcheck.SEVERITIES.index(finding.severity) for finding in report.findings]
        self.assertGreaterEqual(len(severities), 2)
        self.assertEqual(severities, sorted(severities))

    def test_host_is_judged(self):
        report = ncclcheck.check(IMAGES / "good.oci.tar", host="driver=450.80.02,gpu=h100x8", options=OPTIONS)
        self.assertIn("host/driver-too-old", [finding.rule for finding in report.findings])

    def test_unknown_fact_is_no_value(self):
        report = ncclcheck.Report("incomplete", "i", None, None, {"a": ncclcheck.Fact("unknown", gap="because")}, (), {})
        with self.assertRaisesRegex(ncclcheck.Error, "a is unknown: because"):
            report.value("a")
        with self.assertRaises(KeyError):
            report.value("b")


class NoVerdict(unittest.TestCase):
    def test_missing_image(self):
        with self.assertRaisesRegex(ncclcheck.Error, "no-such-image.tar"):
            ncclcheck.check(IMAGES / "no-such-image.tar", options=OPTIONS)

    def test_reference_is_no_option(self):
        with self.assertRaisesRegex(ncclcheck.Error, "--help"):
            ncclcheck.check("--help", options=OPTIONS)

    def test_wrong_option(self):
        with self.assertRaisesRegex(ncclcheck.Error, "no-such-profile"):
            ncclcheck.check(IMAGES / "good.oci.tar", profile="no-such-profile", options=OPTIONS)

    def test_missing_program(self):
        with mock.patch.dict(os.environ, {"NCCLCHECK_PROGRAM": "", "PATH": ""}), \
                mock.patch("sysconfig.get_path", return_value="/nonexistent"), \
                self.assertRaisesRegex(ncclcheck.Error, "not installed"):
            ncclcheck.program()

    def program_that(self, script):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = Path(folder.name, "ncclcheck")
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return mock.patch.dict(os.environ, {"NCCLCHECK_PROGRAM": str(path)})

    def test_other_schema(self):
        with self.program_that("""echo '{"schema": "ncclcheck/9"}'"""), self.assertRaisesRegex(ncclcheck.Error, "ncclcheck/9"):
            ncclcheck.check("image")

    def test_report_without_a_field(self):
        for text in ('{"schema": "ncclcheck/2", "verdict": "pass", "image": {}}', "[]", "FAILED"):
            with self.program_that(f"echo '{text}'"), self.assertRaisesRegex(ncclcheck.Error, "image: .*no report of the form"):
                ncclcheck.check("image")

    def test_several_reports(self):
        with self.program_that("echo '{}'; echo '{}'"), self.assertRaisesRegex(ncclcheck.Error, "2 reports"):
            ncclcheck.check("image")

    def test_silent_program(self):
        with self.program_that("exit 0"), self.assertRaisesRegex(ncclcheck.Error, "printed nothing"):
            ncclcheck.check("image")

    def test_hanging_program(self):
        with self.program_that("exec sleep 60"), self.assertRaisesRegex(ncclcheck.Error, "within 0.2 s"):
            ncclcheck.check("image", timeout=0.2)


if __name__ == "__main__":
    unittest.main()
