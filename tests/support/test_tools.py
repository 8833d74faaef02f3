#!/usr/bin/env python3
"""The tools between a source and its verdict: cases, submissions, the build of one of them."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SUPPORT = Path(__file__).resolve().parents[2] / "checks" / "support"
sys.path.insert(0, str(SUPPORT))
from build_submission import compile_source, link, not_built, read_depfile  # noqa: E402
from scan_cases import ScanError, scan  # noqa: E402


class Folder(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path


class ScanCases(Folder):
    def scan(self, text):
        return scan(self.write("check.cpp", text))

    def test_names_and_tags(self):
        cases = self.scan('TEST_CASE("one, two: [three]", "[pts:3][starter-fails]") {\n}\n'
                          'TEST_CASE("in two "\n          "parts",\n          "[gpus:2]") {}\n'
                          'TEST_CASE("bare") {}\n')
        self.assertEqual([case.name for case in cases], ["one, two: [three]", "in two parts", "bare"])
        self.assertEqual([case.points for case in cases], [3, 1, 1])
        self.assertEqual([case.gpus for case in cases], [1, 2, 1])
        self.assertEqual([case.starter_fails for case in cases], [True, False, False])

    def test_refused(self):
        for text in ['TEST_CASE("a", "[points:2]") {}', 'TEST_CASE("a", "[pts:two]") {}',
                     'TEST_CASE("a", "[.]") {}', 'TEST_CASE("a") {}\nTEST_CASE("a") {}',
                     'TEST_CASE("a;b") {}', "TEST_CASE(NAME) {}", '  TEST_CASE("indented") {}',
                     'SCENARIO("a") {}', 'TEST_CASE_METHOD(Fixture, "a") {}', 'TEST_CASE("") {}']:
            with self.subTest(text), self.assertRaises(ScanError):
                self.scan(text)


class ListSubmissions(Folder):
    def list(self, folder):
        return subprocess.run([sys.executable, str(SUPPORT / "list_submissions.py"), str(folder)],
                              capture_output=True, text=True)

    def test_one_submission(self):
        self.write("alice/3-pinned-memory/pinned-memory.cu", "")
        self.assertEqual(self.list(self.folder / "alice").stdout, f"alice\t{self.folder.resolve()}/alice\n")

    def test_class(self):
        self.write("alice/3-pinned-memory/pinned-memory.cu", "")
        self.write("bob/notes.txt", "")
        self.write(".git/config", "")
        names = [line.split("\t")[0] for line in self.list(self.folder).stdout.splitlines()]
        self.assertEqual(names, ["alice", "bob"])

    def test_refused(self):
        self.assertIn("is not a folder", self.list(self.folder / "nobody").stderr)
        self.assertIn("holds no submission", self.list(self.folder).stderr)
        self.write("two words/x", "")
        answer = self.list(self.folder)
        self.assertIn("rename", answer.stderr)
        self.assertNotEqual(answer.returncode, 0)


class BuildSubmission(Folder):
    """With the C++ compiler in the place of nvcc."""

    def build(self, source):
        compiler = os.environ["CXX_FOR_TEST"].split()
        self.program = str(self.folder / "program")
        self.object = str(self.folder / "program.o")
        self.depfile = str(self.folder / "program.o.d")
        compile_source(str(source), self.object, self.depfile, compiler + ["-x", "c++"])
        link(str(source), self.object, self.program, compiler + ["@OBJECT@"])

    def test_success(self):
        header = self.write("a header.hpp", "constexpr int code = 3;\n")
        self.build(self.write("right.cu", '#include "a header.hpp"\nint main() { return code; }\n'))
        self.assertIsNone(not_built(self.program))
        self.assertEqual(subprocess.run([self.program]).returncode, 3)
        self.assertIn(str(header), read_depfile(self.depfile))

    def test_failure_is_a_script_that_says_why(self):
        source = self.write("wrong.cu", "int main() { return it's; }\n")
        self.build(source)
        self.assertIn("wrong.cu", not_built(self.program))
        answer = subprocess.run([self.program], capture_output=True, text=True)
        self.assertEqual(answer.returncode, 1)
        self.assertIn("error", answer.stderr)
        self.assertEqual(read_depfile(self.depfile)[0], str(source))

    def test_failure_leaves_no_old_program(self):
        self.build(self.write("same.cu", "int main() {}\n"))
        self.build(self.write("same.cu", "int main() { return }\n"))
        self.assertIsNotNone(not_built(self.program))

    def test_missing_file(self):
        self.build(self.folder / "nothing.cu")
        self.assertIn("nothing.cu is missing", not_built(self.program))
        self.assertEqual(read_depfile(self.depfile), [str(self.folder / "nothing.cu")])

    def test_missing_function(self):
        self.build(self.write("half.cu", "int f();\nint main() { return f(); }\n"))
        self.assertIn("does not link", not_built(self.program))


if __name__ == "__main__":
    unittest.main()
