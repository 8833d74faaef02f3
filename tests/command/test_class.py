#!/usr/bin/env python3
"""Collecting a class, its gradebook, and submissions that are alike."""

import csv
import io
import json
import sys
import tarfile
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "checks" / "support"))
import class_folder  # noqa: E402
import gradebook  # noqa: E402
import instructor  # noqa: E402
from project import lessons, source_of  # noqa: E402
from similarity import groups  # noqa: E402

PINNED = source_of("3-pinned-memory")


class Class(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        self.handed_in = self.folder / "class"
        self.handed_in.mkdir()

    def write(self, path, text="int x;\n"):
        path = self.handed_in / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def zip(self, name, files):
        with zipfile.ZipFile(self.handed_in / name, "w") as archive:
            for path, text in files.items():
                archive.writestr(path, text)

    def tar(self, name, files):
        with tarfile.open(self.handed_in / name, "w:gz") as archive:
            for path, text in files.items():
                entry = tarfile.TarInfo(path)
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text.encode()))

    def collect(self):
        return {one.name: one for one in class_folder.collect(self.handed_in, self.folder / "collected")}

    def text(self, name, source=PINNED):
        path = self.folder / "collected" / name / source
        return path.read_text() if path.is_file() else None

    def test_folders_archives_and_what_lies_deeper(self):
        self.write(f"alice/{PINNED}", "alice")
        self.write(f"bob/upload/{PINNED}", "bob")
        self.write("carol/pinned-memory.cu", "carol")
        self.zip("dave.zip", {f"dave_1234/lessons/{PINNED}": "dave", "__MACOSX/pinned-memory.cu": "clutter"})
        self.tar("erin.tar.gz", {f"./{PINNED}": "erin"})
        self.write("notes.txt")
        found = self.collect()
        self.assertEqual(sorted(found), ["alice", "bob", "carol", "dave", "erin"])
        for name in found:
            self.assertEqual(self.text(name), name)
            self.assertIn("not handed in", found[name].remarks[-1])

    def test_nothing_leaves_its_folder(self):
        self.zip("evil.zip", {f"../../{PINNED}": "evil", "/etc/peer-copy.cu": "absolute"})
        self.collect()
        inside = {path for path in self.folder.rglob("*.cu")}
        self.assertEqual(inside, {self.folder / "collected" / "evil" / source_of(lesson)
                                  for lesson in ["2-peer-copy", "3-pinned-memory"]})

    def test_links_are_not_followed(self):
        (self.handed_in / "alice" / "3-pinned-memory").mkdir(parents=True)
        (self.handed_in / "alice" / PINNED).symlink_to(REPOSITORY / "solutions" / PINNED)
        self.collect()
        self.assertIsNone(self.text("alice"))

    def test_broken_and_empty_ones_are_submissions_all_the_same(self):
        (self.handed_in / "nothing").mkdir()
        (self.handed_in / "broken.zip").write_bytes(b"PK not really")
        self.write(f"huge/{PINNED}", "x" * (class_folder.LARGEST_SOURCE + 1))
        found = self.collect()
        self.assertEqual(sorted(found), ["broken", "huge", "nothing"])
        self.assertIn("cannot be read", found["broken"].remarks[0])
        self.assertIn("left out", found["huge"].remarks[0])
        self.assertIsNone(self.text("huge"))

    def test_names_are_made_fit_and_kept_apart(self):
        self.write(f"Zoë O'Neil (late)/{PINNED}")
        self.write(f"sam/{PINNED}", "folder")
        self.zip("sam.zip", {PINNED: "archive"})
        self.write(f"solutions/{PINNED}")
        self.assertEqual(sorted(self.collect()), sorted(["Zoë-O-Neil-late", "sam", "sam-2", "solutions-2"]))

    def test_what_is_gone_goes_and_what_stays_is_not_touched(self):
        self.write(f"alice/{PINNED}")
        self.write(f"bob/{PINNED}")
        self.collect()
        before = (self.folder / "collected" / "alice" / PINNED).stat().st_mtime_ns
        (self.handed_in / "bob" / PINNED).unlink()
        self.collect()
        self.assertEqual((self.folder / "collected" / "alice" / PINNED).stat().st_mtime_ns, before)
        self.assertIsNone(self.text("bob"))

    def test_only_what_changed_is_graded_again(self):
        self.write(f"alice/{PINNED}", "first")
        records = [{"case": "a", "points": 1, "verdict": "pass"}]

        def results(node="h200x8"):
            return instructor.Results(self.folder / "graded", "sim", node)

        alice = self.collect()["alice"]
        self.assertIsNone(results().find(alice, "3-pinned-memory"))
        results().keep(alice, "3-pinned-memory", records)
        self.assertEqual(results().find(alice, "3-pinned-memory"), records)
        self.assertIsNone(results("pcie2").find(alice, "3-pinned-memory"))
        self.write(f"alice/{PINNED}", "second")
        self.assertIsNone(results().find(self.collect()["alice"], "3-pinned-memory"))

    def test_equal_files_are_graded_once(self):
        for name, text in (("alice", "same"), ("bob", "same"), ("carol", "other")):
            self.write(f"{name}/{PINNED}", text)
        found = self.collect()
        results = instructor.Results(self.folder / "graded", "sim", "h200x8")
        work = [(found[name], lesson) for name in found for lesson in ("3-pinned-memory", "2-peer-copy")]
        graded = [sorted(one.name for one, _ in equals) for equals in instructor.equal_files(work, results)]
        self.assertEqual(sorted(graded), [["alice", "bob"], ["alice", "bob", "carol"], ["carol"]])
        records = instructor.renamed([{"case": "a", "submission": "alice"}], found["bob"])
        self.assertEqual(records, [{"case": "a", "submission": "bob"}])


class Gradebook(unittest.TestCase):
    def setUp(self):
        def record(case, points, verdict, **more):
            return dict({"case": case, "lesson": "3-pinned-memory", "submission": "alice", "rig": "sim", "node": "h200x8",
                         "points": points, "verdict": verdict}, **more)

        figure = {"name": "upload", "unit": "GB/s", "value": 6.2, "reference": 54.9, "limit": 0.85,
                  "more_is_better": True, "ok": False, "note": ""}
        self.grades = [
            gradebook.Grade("alice", {
                "1-device-memory": [record("one", 1, "pass"), record("two", 3, "fail", reason="did not end \x07 in time")],
                "3-pinned-memory": [record("three", 2, "pass"), record("four", 2, "fail", figures=[figure], meaning="slow")],
            }, ["late"]),
            gradebook.Grade("bob", {
                "1-device-memory": [record("one", 1, "skip", reason="needs 2 GPUs"), record("two", 3, "pass")],
                "3-pinned-memory": [record("three", 2, "fail", compiler="x.cu(1): error"), record("four", 2, "fail", compiler="x.cu(1): error")],
            }, []),
        ]
        self.weights = {"1-device-memory": 1, "3-pinned-memory": 3}
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        gradebook.write_all(self.folder, self.grades, self.weights, "the simulated node h200x8")

    def test_lessons_count_by_weight(self):
        self.assertAlmostEqual(self.grades[0].total(self.weights), 100 * (1 * 0.25 + 3 * 0.5) / 4)

    def test_csv(self):
        with open(self.folder / "gradebook.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["submission"] for row in rows], ["alice", "bob"])
        self.assertEqual(rows[0]["3-pinned-memory (of 4)"], "2")
        self.assertEqual(rows[0]["total (of 100)"], "43.8")
        self.assertEqual(rows[0]["remarks"], "late")
        self.assertEqual(rows[1]["not judged"], "1")

    def test_report(self):
        alice = (self.folder / "reports" / "alice.md").read_text()
        for text in ["43.8 of 100", "the simulated node h200x8", "- late", "upload 6.2 GB/s of 54.9", "This means: slow"]:
            self.assertIn(text, alice)
        bob = (self.folder / "reports" / "bob.md").read_text()
        self.assertEqual(bob.count("x.cu(1): error"), 1)
        self.assertIn("needs 2 GPUs", bob)

    def test_junit_is_xml(self):
        root = ElementTree.parse(self.folder / "junit.xml").getroot()
        cases = root.findall(".//testcase")
        self.assertEqual(len(cases), 8)
        self.assertEqual(len(root.findall(".//failure")), 4)
        self.assertEqual(len(root.findall(".//skipped")), 1)

    def test_platforms(self):
        gradescope = json.loads((self.folder / "gradescope" / "alice.json").read_text())
        self.assertEqual(sum(test["score"] for test in gradescope["tests"]), 3)
        self.assertEqual(sum(test["max_score"] for test in gradescope["tests"]), 8)
        self.assertEqual({test["status"] for test in gradescope["tests"]}, {"passed", "failed"})
        prairielearn = json.loads((self.folder / "prairielearn" / "alice.json").read_text())
        self.assertAlmostEqual(prairielearn["score"], 3 / 8)
        github = json.loads((self.folder / "github-classroom" / "bob.json").read_text())
        self.assertEqual((github["status"], github["max_score"]), ("fail", 8))

    def test_every_lesson_has_a_weight(self):
        self.assertEqual(sorted(instructor.read_weights()), lessons())


class Similarity(unittest.TestCase):
    STARTER = "void f() { int a = 0; cudaMalloc(&p, a); }"

    def test_names_layout_and_comments_do_not_count(self):
        texts = {
            "alice": "// mine\nvoid f() { int size = 4; cudaMallocHost(&p, size); }",
            "bob": "void g( ) {\n  int bytes = 4; /* ! */\n  cudaMallocHost(&q, bytes);\n}",
            "carol": "void g() { int bytes = 4; cudaMalloc(&q, bytes); }",
        }
        self.assertEqual(groups(texts), [["alice", "bob"]])

    def test_what_everybody_was_given_does_not_count(self):
        self.assertEqual(groups({"alice": self.STARTER, "bob": self.STARTER + "\n"}, [self.STARTER]), [])
        self.assertEqual(groups({"alice": self.STARTER, "bob": self.STARTER}), [["alice", "bob"]])


if __name__ == "__main__":
    unittest.main()
