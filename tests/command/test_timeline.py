#!/usr/bin/env python3
"""Timelines: what is read, what overlaps, what is drawn. With a program and the simulated node also a real one."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "checks" / "support"))
import timeline  # noqa: E402

PROGRAM, LIBRARY_DIR = sys.argv[1:3] if len(sys.argv) > 2 else (None, None)


def span(kind, begin, end, owner="GPU 0"):
    return timeline.Span(owner, kind, kind, begin, end)


class Traces(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.path = Path(holder.name) / "trace.json"

    def write(self, events):
        self.path.write_text(json.dumps({"traceEvents": events}))
        return timeline.read(self.path)

    def test_times_count_from_the_first_event(self):
        spans = self.write([
            {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "GPU 0"}},
            {"ph": "X", "name": "a", "cat": "kernel", "pid": 1, "tid": 1, "ts": 5000, "dur": 1000},
            {"ph": "X", "name": "b", "cat": "H2D", "pid": 1, "tid": 1, "ts": 4000, "dur": 500},
            {"ph": "X", "name": "c", "cat": "something else", "pid": 1, "tid": 1, "ts": 0, "dur": 500},
        ])
        self.assertEqual([(one.owner, one.kind, one.begin, one.end) for one in spans],
                         [("GPU 0", "kernel", 1.0, 2.0), ("GPU 0", "H2D", 0.0, 0.5)])

    def test_gpus_without_work_are_named(self):
        self.write([
            *({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
              for pid, name in enumerate(["host", "GPU 0", "GPU 1", "GPU 2", "GPU 3", "GPU 4"])),
            {"ph": "X", "name": "a", "cat": "kernel", "pid": 3, "tid": 1, "ts": 0, "dur": 1000},
            {"ph": "X", "name": "b", "cat": "wait", "pid": 0, "tid": 1, "ts": 0, "dur": 1000},
        ])
        self.assertEqual(list(timeline.unused(self.path)),
                         ["GPU 0 to GPU 1: did nothing", "GPU 3 to GPU 4: did nothing"])

    def test_what_is_no_timeline_is_an_error(self):
        for text in ["", "{}", "[1]", '{"traceEvents": []}']:
            self.path.write_text(text)
            with self.assertRaises(timeline.TraceError):
                timeline.read(self.path)
        with self.assertRaises(timeline.TraceError):
            timeline.read(self.path.with_name("nothing.json"))


class Figures(unittest.TestCase):
    def test_overlap(self):
        spans = [span("H2D", 0, 2), span("H2D", 1, 3), span("kernel", 2, 6), span("D2H", 6, 8)]
        text = "\n".join(timeline.figures(spans))
        self.assertIn("copies 5 ms, kernels 4 ms, 25 % of the shorter one hidden", text)
        self.assertIn("idle 0 % of 8 ms", text)

    def test_what_blocks_is_named(self):
        spans = [span("D2H pageable", 0, 4), span("wait", 0, 4, "host"), span("allocation", 4, 5, "host")]
        text = "\n".join(timeline.figures(spans))
        for part in ["downloads to pageable memory: 1 times, 4 ms", "waiting on the host: 1 times, 4 ms",
                     "allocating, releasing and pinning: 1 times, 1 ms"]:
            self.assertIn(part, text)

    def test_parts(self):
        spans = [span("kernel", 0, 1), span("kernel", 50, 52), span("H2D", 53, 54)]
        self.assertEqual([(one.begin, one.end) for one in timeline.last_phase(spans)], [(0, 2), (3, 4)])
        self.assertEqual([(one.begin, one.end) for one in timeline.part_of(spans, 51, 53.5)], [(0, 1), (2, 2.5)])
        with self.assertRaises(timeline.TraceError):
            timeline.part_of(spans, 10, 20)


class Drawings(unittest.TestCase):
    SPANS = [span("H2D", 0, 4), span("kernel", 4, 8), span("D2H", 8, 12), span("kernel", 6, 12, "GPU 10"), span("wait", 0, 12, "host")]

    def test_terminal(self):
        lines = list(timeline.draw(self.SPANS))
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertEqual([line[:14].strip() for line in lines[:5]], ["host", "GPU 0 H2D", "GPU 0 kernels", "GPU 0 D2H", "GPU 10 kernels"])
        self.assertEqual(lines[1][14:].rstrip(), ">" * 22)
        self.assertTrue(lines[2][14:].startswith(" " * 22 + "#"))

    def test_little_work_is_drawn_as_little(self):
        spans = [span("kernel", at, at + 0.2) for at in range(66)] + [span("D2H", 65.9, 66)]
        lines = list(timeline.draw(spans))
        self.assertEqual(lines[0][14:], ":" * 66)

    def test_picture_is_svg_with_text(self):
        root = ElementTree.fromstring(timeline.svg(self.SPANS, "a <title> & more"))
        texts = [element.text for element in root.iter() if element.tag.endswith("text")]
        for text in ["a <title> & more", "GPU 0 kernels", "GPU 10 kernels", "12 ms"]:
            self.assertIn(text, texts)
        for x, width in [(float(r.get("x", 0)), float(r.get("width"))) for r in root.iter() if r.tag.endswith("rect")]:
            self.assertLessEqual(x + width, 860.5)


@unittest.skipUnless(PROGRAM, "no program")
class Recorded(unittest.TestCase):
    def test_a_program_on_the_simulated_node(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            variables = dict(os.environ, LD_LIBRARY_PATH=LIBRARY_DIR, SIM_NODE="h200x8", SIM_TRACE=str(path))
            subprocess.run([PROGRAM], env=variables, stdout=subprocess.DEVNULL, check=True)
            spans = timeline.read(path)
            unused = list(timeline.unused(path))
        self.assertEqual(unused, ["GPU 1 to GPU 7: did nothing"])
        kinds = {one.kind for one in spans}
        for kind in ["H2D", "D2H pageable", "kernel", "wait", "allocation"]:
            self.assertIn(kind, kinds)
        # One engine does one thing at a time.
        uploads = sorted((one.begin, one.end) for one in spans if one.kind == "H2D")
        for former, later in zip(uploads, uploads[1:]):
            self.assertLessEqual(former[1], later[0] + 1e-6)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
