#!/usr/bin/env python3
"""What ./course says and answers."""

import argparse
import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "checks" / "support"))
import checking  # noqa: E402
import project  # noqa: E402
import student  # noqa: E402
import table  # noqa: E402


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
        for command in ["start", "check", "watch", "run", "hint", "diff", "reset", "grade", "export", "test"]:
            self.assertIn(command, answer.stdout)
            self.assertIn(f"example: ./course {command}", call(command, "--help").stdout)

    def test_bad_input(self):
        self.assert_one_error(call("grad"), "invalid choice")
        self.assert_one_error(call("grade", "/nowhere"), "/nowhere is not a folder")
        self.assert_one_error(call("export", "/"), "is not empty")
        self.assert_one_error(call("hint", "7"), 'no lesson "7"')
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
        self.assertEqual(table.points(records), (2, 6, 1))
        self.assertEqual(table.points_text(records), "2 of 6 points, 1 not judged")

    def test_only_passing_is_passing(self):
        self.assertTrue(table.all_passed([self.record()]))
        for verdict in ["fail", "skip", "inconclusive", "error"]:
            self.assertFalse(table.all_passed([self.record(), self.record(verdict=verdict)]))

    def printed(self, record, in_full):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            table.print_lesson([record], "3-pinned-memory", in_full)
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

    def test_of_a_compile_error_only_the_message_is_shown(self):
        record = self.record(verdict="fail", reason="could not be built", compiler="x.cu(3): error: what?")
        self.assertEqual(self.printed(record, in_full=True).splitlines()[1:], ["x.cu(3): error: what?"])

    def test_bar(self):
        def bar(value, reference, limit, more):
            return table.bar({"value": value, "reference": reference, "limit": limit, "more_is_better": more})

        self.assertEqual(bar(0, 50, 0.5, True), "[...............|...............]")
        self.assertEqual(bar(50, 50, 0.5, True), "[###############|###############]")
        self.assertEqual(bar(10, 10, 1, False), "[###############|...............]")
        self.assertEqual(bar(500, 10, 1, False), "[###############|###############]")
        self.assertEqual(bar(None, 10, 1, False), "")


class Student(unittest.TestCase):
    """With a copy of lesson 3, and files of its own for what is remembered."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        lesson = self.folder / "lessons" / "3-pinned-memory"
        lesson.mkdir(parents=True)
        for name in ["pinned-memory.cu", "hints.md"]:
            (lesson / name).write_bytes((REPOSITORY / "lessons" / "3-pinned-memory" / name).read_bytes())
        kept = self.folder / ".starters" / "3-pinned-memory"
        kept.mkdir(parents=True)
        (kept / "pinned-memory.cu").write_text("the starter\n")
        for module, name, value in [(student, "REPOSITORY", self.folder), (student, "PRISTINE", self.folder / ".starters"),
                                    (student, "HINTS", self.folder / "hints.json"),
                                    (checking, "PROGRESS", self.folder / "progress.json")]:
            patch = unittest.mock.patch.object(module, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def call(self, function, **options):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            function(argparse.Namespace(**options))
        return output.getvalue()

    def test_hints_come_one_by_one(self):
        for number in ["1.", "2.", "3.", "3."]:
            self.assertIn(f"hint {number}", self.call(student.hint, lesson="3", again=False))
        self.assertIn("hint 1.", self.call(student.hint, lesson="3", again=True))
        self.assertIn("hint 2.", self.call(student.hint, lesson="3", again=False))

    def test_reset_keeps_the_old_file(self):
        file = self.folder / "lessons" / "3-pinned-memory" / "pinned-memory.cu"
        for number in [1, 2]:
            file.write_text(f"my work {number}\n")
            self.assertIn(f"pinned-memory.cu.{number}", self.call(student.reset, lesson="3"))
            self.assertEqual(file.read_text(), "the starter\n")
            self.assertEqual(file.with_suffix(f".cu.{number}").read_text(), f"my work {number}\n")
        self.assertIn("already", self.call(student.reset, lesson="3"))

    def test_reset_finds_the_starter_behind_the_students_own_commits(self):
        def git(*words):
            subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words], cwd=self.folder, check=True, capture_output=True)

        shutil.rmtree(self.folder / ".starters")
        file = self.folder / "lessons" / "3-pinned-memory" / "pinned-memory.cu"
        starter = file.read_text()
        (self.folder / "course").write_text("the course itself\n")
        git("init")
        git("add", ".")
        git("commit", "-m", "the course")
        for number in [1, 2]:
            file.write_text(f"my work {number}\n")
            git("commit", "-am", "my work")
        self.call(student.reset, lesson="3")
        self.assertEqual(file.read_text(), starter)

    def test_reset_says_so_when_there_is_no_starter(self):
        shutil.rmtree(self.folder / ".starters")
        with self.assertRaisesRegex(project.Complaint, "fresh copy"):
            self.call(student.reset, lesson="3")

    def test_status_tells_what_comes_next(self):
        self.assertIn("./course start", self.call(student.status))
        record = {"case": "a", "lesson": "1-device-memory", "submission": "lessons", "rig": "sim", "node": "h200x8",
                  "points": 2, "verdict": "pass"}
        checking.remember([record, dict(record, lesson="2-peer-copy", verdict="fail"),
                           dict(record, lesson="4-zero-copy", verdict="skip")])
        text = self.call(student.status)
        self.assertIn("done  Lesson 1", text)
        self.assertIn("open  Lesson 2", text)
        self.assertIn("0 of 2 points\n", text)
        self.assertIn("0 of 2 points, 2 not judged", text)
        self.assertIn("check  ./course check 2", text)


if __name__ == "__main__":
    unittest.main()
