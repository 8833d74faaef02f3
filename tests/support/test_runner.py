#!/usr/bin/env python3
"""The runner's verdicts on cases and submissions whose fate is known."""

import os
import socket
import sys
import tempfile
import time
import unittest
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "checks" / "support"))
from run_case import exit_code, report, run_case  # noqa: E402
from sandbox import why_not  # noqa: E402

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

    def test_device_reset(self):
        record = run("resets-the-device")
        self.assert_fails(record, "cudaDeviceReset() was called")
        self.assertIn("takes from the whole process", report(record))

    def test_sticky_error(self):
        record = run("leaves-a-sticky-error")
        self.assert_fails(record, "the GPU is left unusable: cudaErrorIllegalAddress")
        self.assertIn("A kernel did what it must not do", report(record))

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


@contextmanager
def variable(name, value):
    former = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
        if former is not None:
            os.environ[name] = former


def processes_of(submission):
    """Processes that still run the submission's program."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode("utf-8", "replace").split("\0")
            state = (path.parent / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state != "Z" and os.path.join(os.path.abspath(PROGRAMS), f"runner.{submission}") == words[0]:
            found.append(path.parent.name)
    return found


class Contained:
    """What holds with namespaces and without."""

    SANDBOX = ""

    def setUp(self):
        holder = variable("COURSE_SANDBOX", self.SANDBOX)
        holder.__enter__()
        self.addCleanup(holder.__exit__, None, None, None)

    def fails(self, submission, reason, seconds=20.0):
        record = run(submission, seconds=seconds)
        self.assertEqual(record["verdict"], "fail", record)
        self.assertIn(reason, report(record))
        self.assertNothingRuns(submission)
        # And the next one is judged as ever.
        self.assertEqual(run("right")["verdict"], "pass")

    def assertNothingRuns(self, submission):
        end = time.monotonic() + 5
        while processes_of(submission) and time.monotonic() < end:
            time.sleep(0.01)
        self.assertEqual(processes_of(submission), [])

    def test_exit_at_once(self):
        self.fails("exits-at-once", "exit code 0")

    def test_printed_report(self):
        self.fails("prints-a-report", "41 == 42")

    def test_forged_record_before_the_true_one(self):
        self.fails("forges-and-goes-on", "41 == 42")

    def test_endless_loop(self):
        self.fails("loops", "did not end within 0.5 s", seconds=0.5)

    def test_endless_kernel(self):
        self.fails("endless-kernel", "did not end within 1 s", seconds=1.0)

    def test_stack_overflow(self):
        self.fails("overflows-the-stack", "Segmentation fault")

    def test_memory(self):
        self.fails("takes-all-memory", "std::bad_alloc")

    def test_forks(self):
        self.fails("forks", "did not end within 0.5 s", seconds=0.5)

    def test_daemon(self):
        self.assertEqual(run("leaves-a-daemon")["verdict"], "pass")
        self.assertNothingRuns("leaves-a-daemon")

    def test_thread(self):
        self.assertEqual(run("leaves-a-thread")["verdict"], "pass")

    def test_closed_descriptors(self):
        self.fails("closes-descriptors", "closed the file descriptor by which the check reports")

    def test_endless_output(self):
        self.fails("prints-without-end", "printed more than 16 MiB")

    def test_core_file(self):
        before = set(os.listdir("."))
        self.fails("aborts", "Aborted")
        self.assertEqual(set(os.listdir(".")), before)

    def files_left(self):
        """What a submission that writes files leaves here and in a folder of others."""
        before = set(os.listdir("."))
        with tempfile.TemporaryDirectory(dir=".") as folder, variable("TEST_FOLDER", os.path.abspath(folder)):
            record = run("writes-files")
            return record["verdict"], os.listdir(folder), set(os.listdir(".")) - before - {Path(folder).name}


@unittest.skipIf(why_not() is not None, why_not())
class InNamespaces(Contained, unittest.TestCase):
    def test_files(self):
        self.assertEqual(self.files_left(), ("pass", [], set()))
        self.assertFalse(os.path.exists("/tmp/course-left-behind"))

    def test_network(self):
        with socket.create_server(("127.0.0.1", 0)) as server, variable("TEST_PORT", str(server.getsockname()[1])):
            self.assertEqual(run("calls-home")["verdict"], "pass")


class WithoutNamespaces(Contained, unittest.TestCase):
    """Only limits hold here, and files are kept from the folder in which the runner runs."""

    SANDBOX = "off"

    def test_files(self):
        self.addCleanup(Path("/tmp/course-left-behind").unlink, missing_ok=True)
        self.assertEqual(self.files_left(), ("fail", ["left-behind"], set()))

    def test_network_is_there(self):
        with socket.create_server(("127.0.0.1", 0)) as server, variable("TEST_PORT", str(server.getsockname()[1])):
            self.assertEqual(run("calls-home")["verdict"], "fail")


class NamespacesThatCannotBeMade(unittest.TestCase):
    def test_runs_without(self):
        with tempfile.TemporaryDirectory() as folder:
            broken = Path(folder) / "bwrap"
            broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n", encoding="utf-8")
            broken.chmod(0o755)
            with variable("PATH", f"{folder}:{os.environ['PATH']}"):
                self.assertIn("No permissions", why_not())
                self.assertEqual(run("right")["verdict"], "pass")
                self.assertEqual(run("wrong")["verdict"], "fail")


class Replacing(unittest.TestCase):
    def test_runtime_call(self):
        record = run("replaces-cuda")
        self.assertEqual(record["verdict"], "fail")
        self.assertIn("defines cudaMemcpy itself", record["compiler"])

    def test_function_of_the_check(self):
        record = run("reports-itself")
        self.assertEqual(record["verdict"], "fail")
        self.assertIn("belongs to the check", record["compiler"])


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
