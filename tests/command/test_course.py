#!/usr/bin/env python3
"""What ./course says and answers."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "checks" / "support"))
import course  # noqa: E402


def call(*words, **more):
    return subprocess.run([str(REPOSITORY / "course"), *words], capture_output=True, text=True, **more)


class CommandLine(unittest.TestCase):
    def assert_one_error(self, answer, text):
        self.assertEqual(answer.returncode, 2, answer)
        self.assertIn(text, answer.stderr)
        self.assertEqual(answer.stdout, "")
        self.assertNotIn("Traceback", answer.stderr)

    def test_help(self):
        answer = call("--help")
        self.assertEqual(answer.returncode, 0)
        for command in ["start", "check", "run", "diff", "test"]:
            self.assertIn(command, answer.stdout)

    def test_bad_input(self):
        self.assert_one_error(call(), "required")
        self.assert_one_error(call("grade"), "invalid choice")
        self.assert_one_error(call("check", "9"), 'no lesson "9"')
        self.assert_one_error(call("run", "pinned"), 'no lesson "pinned"')
        self.assert_one_error(call("check", "3", "--node", "cray"), 'no simulated node "cray"')
        self.assert_one_error(call("check", "3", "--node", "h200x8", "--rig", "gpu"), "does not go with --rig gpu")
        self.assert_one_error(call("check", "3", "--submission", "/nowhere"), "/nowhere is not a folder")
        self.assert_one_error(call("check", "3", "--rig", "fpga"), "invalid choice")

    def test_works_from_any_folder(self):
        self.assertEqual(call("diff", "3", cwd="/").returncode, 1)

    def test_without_a_package_manager_it_names_what_is_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            for tool in ["bash", "dirname", "cat", "sed", "env"]:
                os.symlink(subprocess.run(["which", tool], capture_output=True, text=True).stdout.strip(), f"{folder}/{tool}")
            answer = call("start", env={"PATH": folder})
        self.assertEqual(answer.returncode, 1)
        for package in ["python3", "meson", "ninja-build", "catch2", "libtomlplusplus-dev"]:
            self.assertIn(package, answer.stderr)


class Reports(unittest.TestCase):
    def record(self, **more):
        return dict({"case": "a case", "lesson": "3-pinned-memory", "submission": "alice", "rig": "sim",
                     "node": "h200x8", "points": 2, "verdict": "pass"}, **more)

    def test_points(self):
        records = [self.record(), self.record(verdict="fail", points=3), self.record(verdict="skip", points=1)]
        self.assertEqual(course.points(records), (2, 6, 1))
        self.assertEqual(course.points_text(records), "2 of 6 points, 1 not judged")

    def test_only_passing_is_passing(self):
        self.assertTrue(course.all_passed([self.record()]))
        for verdict in ["fail", "skip", "inconclusive", "error"]:
            self.assertFalse(course.all_passed([self.record(), self.record(verdict=verdict)]))

    def printed(self, record, in_full):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            course.print_lesson([record], "3-pinned-memory", in_full)
        return output.getvalue()

    def test_table(self):
        figure = {"name": "upload", "unit": "GB/s", "value": 6.2, "reference": 54.9, "limit": 0.85,
                  "more_is_better": True, "ok": False, "note": ""}
        record = self.record(case="a name that goes on and on " * 4, verdict="fail", figures=[figure],
                             failures=[{"place": "x.cpp:1", "text": "because " * 30}],
                             meaning="it is slow " * 10, where="lessons/3-pinned-memory/README.md")
        for in_full in [False, True]:
            text = self.printed(record, in_full)
            self.assertIn("FAIL", text)
            self.assertIn("upload 6.2 GB/s of 54.9 (11 %), needs 85 %", text)
            self.assertLessEqual(max(map(len, text.splitlines())), 80)
        self.assertIn("This means:", text)
        self.assertIn("Read:", text)

    def test_compile_error_is_shown(self):
        record = self.record(verdict="fail", reason="could not be built", compiler="x.cu(3): error: what?")
        self.assertIn("x.cu(3): error: what?", self.printed(record, in_full=True))


if __name__ == "__main__":
    unittest.main()
