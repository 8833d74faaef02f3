#!/usr/bin/env python3
"""The tools between a source and its verdict: cases, submissions, the build of one of them."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SUPPORT = REPOSITORY / "checks" / "support"
sys.path.insert(0, str(SUPPORT))
from build_submission import compile_source, link, not_built, read_depfile  # noqa: E402
from scan_cases import ScanError, scan  # noqa: E402
from source_rules import about_object  # noqa: E402


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
        compile_source(str(source), self.object, self.depfile, compiler + ["-x", "c++", f"-I{REPOSITORY}"])
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

    def assert_refused(self, source, reason):
        self.build(source)
        self.assertIn(reason, not_built(self.program) or "built")

    def test_not_one_plain_file(self):
        self.assert_refused(self.write("empty.cu", ""), "empty.cu is empty")
        (self.folder / "folder.cu").mkdir()
        self.assert_refused(self.folder / "folder.cu", "is a folder")
        self.write("real.cu", "int main() {}\n")
        (self.folder / "link.cu").symlink_to("real.cu")
        self.assert_refused(self.folder / "link.cu", "is a symbolic link")
        os.mkfifo(self.folder / "pipe.cu")
        self.assert_refused(self.folder / "pipe.cu", "is no regular file")

    def test_huge_file_is_not_read(self):
        path = self.write("huge.cu", "int main() {}\n")
        os.truncate(path, 500 << 20)  # takes no space on the disk
        self.assert_refused(path, "is it the right file?")

    def test_latin_1_is_compiled(self):
        path = self.write("latin.cu", "")
        path.write_bytes(b"// f\xfcr alle\nint main() { return 3; }\n")
        self.build(path)
        self.assertIsNone(not_built(self.program))
        path.write_bytes(b"int main() { return f\xfcr; }\n")
        self.assert_refused(path, "latin.cu")

    def test_includes(self):
        self.write("own.hpp", "constexpr int code = 0;\n")
        self.build(self.write("fine.cu", '#include "own.hpp"\n#include <cstdio>\nint main() { return code; }\n'))
        self.assertIsNone(not_built(self.program))
        for name in [f"{REPOSITORY}/checks/support/report_state.hpp", f"{self.other()}/stolen.hpp"]:
            with self.subTest(name):
                self.assert_refused(self.write("thief.cu", f'#include "{name}"\nint main() {{}}\n'),
                                    "which is not part of the lesson")

    def test_include_by_a_link(self):
        (self.folder / "mine.hpp").symlink_to(f"{self.other()}/stolen.hpp")
        self.assert_refused(self.write("thief.cu", '#include "mine.hpp"\nint main() {}\n'), "which is not part of the lesson")

    def other(self):
        """A folder of another student."""
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        (Path(holder.name) / "stolen.hpp").write_text("int stolen();\n", encoding="utf-8")
        return holder.name

    def test_functions_of_cuda_are_not_replaced(self):
        self.assert_refused(self.write("own.cu", 'extern "C" int cudaMemcpy() { return 0; }\nint main() {}\n'),
                            "defines cudaMemcpy itself")
        self.build(self.write("fine.cu", "int cudaStreams[8];\nvoid check(int) {}\nint main() {}\n"))
        self.assertIsNone(not_built(self.program))

    def test_functions_of_the_check_are_not_called(self):
        self.assert_refused(self.write("caller.cu", "namespace check { void finish(int); }\nint main() { check::finish(0); }\n"),
                            "belongs to the check")


class Names(Folder):
    """Objects linked with a library in the place of the check."""

    def rule(self, library, submission):
        compiler = os.environ["CXX_FOR_TEST"].split()
        objects = []
        for name, text in [("library", library), ("submission", submission)]:
            objects.append(str(self.folder / f"{name}.o"))
            subprocess.run([*compiler, "-c", str(self.write(f"{name}.cpp", text)), "-o", objects[-1]], check=True)
        return about_object("own.cu", objects[1], objects[:1])

    def test_weak_references_define_nothing(self):
        weak = 'extern "C" void f() __attribute__((weak));\nvoid g() { if (f) f(); }\n'
        self.assertIsNone(self.rule('extern "C" void f();\nvoid h() { f(); }\n', weak))

    def test_what_the_check_calls_is_not_replaced(self):
        check = '#include <unistd.h>\nint answer();\nvoid* f() { return new char[write(1, "", answer())]; }\n'
        write = 'extern "C" long write(int, const void*, unsigned long) { return 0; }\n'
        self.assertIn("write", self.rule(check, write))
        self.assertIn("write", self.rule(check, write.replace("long write", "__attribute__((weak)) long write")))
        self.assertIn("_Znam", self.rule(check, "void* operator new[](unsigned long) { static char c[9]; return c; }\n"))
        self.assertIsNone(self.rule(check, "#include <vector>\nint answer() { return std::vector<int>(3).size(); }\n"))


if __name__ == "__main__":
    unittest.main()
