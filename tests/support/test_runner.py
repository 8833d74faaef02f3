#!/usr/bin/env python3
"""The runner's verdicts on cases and submissions whose fate is known."""

import os
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "checks" / "support"))
from run_case import exit_code, report, run_case  # noqa: E402

PROGRAMS, LIBRARY_DIR, NODE = sys.argv.pop(1), sys.argv.pop(1), sys.argv.pop(1)
ANSWER = "the answer is right"


def run(submission, case=ANSWER, seconds=20.0):
    return run_case(os.path.join(PROGRAMS, "runner." + submission), case, "sim", LIBRARY_DIR, NODE, seconds)


class Submissions(unittest.TestCase):
    def assert_fails(self, record, reason):
        self.assertEqual(record["verdict"], "fail", record)
        self.assertEqual(exit_code(record), 1)
        self.assertIn(reason, report(record))

    def test_right(self):
        record = run("right")
        self.assertEqual(record["verdict"], "pass", record)
        self.assertEqual(record["assertions"], 1)
        self.assertEqual(exit_code(record), 0)

    def test_wrong(self):
        record = run("wrong")
        self.assert_fails(record, "41 == 42")
        self.assertIn("This means: answer() does not return 42.", report(record))

    def test_exception(self):
        self.assert_fails(run("throws"), "no answer today")

    def test_early_exit(self):
        self.assert_fails(run("exits"), "exit code 0")

    def test_crash(self):
        self.assert_fails(run("crashes"), "Segmentation fault")

    def test_crash_after_the_check(self):
        self.assert_fails(run("crashes-at-end"), "at its end")

    def test_hang(self):
        self.assert_fails(run("hangs", seconds=2.0), "did not end within 2 s")

    def test_forged_record(self):
        self.assert_fails(run("forges"), "before the check was complete")

    def test_child_left_behind(self):
        started = time.monotonic()
        self.assertEqual(run("leaves-a-child")["verdict"], "pass")
        self.assertLess(time.monotonic() - started, 15)

    def test_compile_error(self):
        self.assert_fails(run("does-not-compile"), "forty_two")

    def test_link_error(self):
        self.assert_fails(run("does-not-link"), "undefined reference to `answer()'")

    def test_missing_file(self):
        self.assert_fails(run("missing"), "missing.cu is missing")


class Cases(unittest.TestCase):
    def assert_verdict(self, case, verdict, code, text):
        record = run("right", case)
        self.assertEqual(record["verdict"], verdict, record)
        self.assertEqual(exit_code(record), code)
        self.assertIn(text, report(record))

    def test_no_assertion(self):
        self.assert_verdict("nothing is asserted", "error", 99, "no assertion ran")

    def test_unknown_case(self):
        self.assert_verdict("no such case", "error", 99, "no assertion ran")

    def test_skip(self):
        self.assert_verdict("a case that is skipped", "skip", 77, "the machine lacks it")

    def test_skip_hides_no_failure(self):
        self.assert_verdict("a skip after a failure", "fail", 1, "failed before")

    def test_too_few_gpus(self):
        self.assert_verdict("a case for a thousand GPUs", "skip", 77, "needs 1000 GPUs")

    def test_inconclusive(self):
        self.assert_verdict("a measurement that scatters", "inconclusive", 99, "too noisy")

    def test_rates(self):
        self.assert_verdict("a rate that is enough", "pass", 0, "upload 50 GB/s of 54.9 (91 %), needs 85 %")
        self.assert_verdict("a rate that is too low", "fail", 1, "upload 6.2 GB/s of 54.9 (11 %), needs 85 %")
        self.assert_verdict("a rate beyond the link", "fail", 1, "not all of the work")
        self.assert_verdict("a time that is too long", "fail", 1, "step 3 ms of 2 (150 %), at most 120 %")

    def test_special_name(self):
        self.assert_verdict("one GPU: names, with [marks] and *stars*", "pass", 0, "PASS")


if __name__ == "__main__":
    unittest.main()
