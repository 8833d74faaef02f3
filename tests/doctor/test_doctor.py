"""Tests of the doctor: what it measures on simulated nodes, what it concludes from faults, how it judges programs."""

import copy
import json
import os
import subprocess
import sys
import tempfile
import unittest
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "doctor"))
import checklist  # noqa: E402
import command  # noqa: E402
import program  # noqa: E402
import report as pages  # noqa: E402
import timeline  # noqa: E402
from timeline import Span  # noqa: E402

DOCTOR, LIBRARY_DIR, LESSONS = sys.argv.pop(1), sys.argv.pop(1), Path(sys.argv.pop(1))
FIGURES = ["h2d_pageable", "d2h_pageable", "h2d_pinned", "d2h_pinned", "both_ways", "zero_copy_read", "zero_copy_write",
           "inside_copy", "inside_kernel", "malloc_and_free_us", "pool_trimmed_us", "pool_kept_us"]


@lru_cache(maxsize=None)
def measured(node, gpus=None):
    variables = dict(os.environ, LD_LIBRARY_PATH=LIBRARY_DIR, SIM_NODE=node)
    if gpus:
        variables["SIM_GPUS"] = str(gpus)
    answer = subprocess.run([DOCTOR], env=variables, text=True, capture_output=True, check=True)
    assert answer.stderr == "", answer.stderr
    report = json.loads(answer.stdout)
    return json.dumps({**report, "place": f"simulated node {node}", "date": "today"})


def report_of(node, gpus=None):
    return json.loads(measured(node, gpus))


def changed_node(**figures):
    """A node file like h200x1 with other figures."""
    text = (REPOSITORY / "sim" / "nodes" / "h200x1.toml").read_text(encoding="utf-8")
    for name, value in figures.items():
        lines = [f"{name} = {value}" if line.split(" ")[0] == name else line for line in text.splitlines()]
        text = "\n".join(lines) + "\n"
    file = tempfile.NamedTemporaryFile("w", suffix=".toml", delete=False, encoding="utf-8")
    with file:
        file.write(text)
    return file.name


def verdicts(report):
    return {line.name: line.verdict for line in checklist.checklist(report)}


class Measuring(unittest.TestCase):
    def test_every_quantity_is_there_on_any_number_of_gpus(self):
        for node, gpus in ("h200x1", None), ("pcie2", None), ("h200x8", 4), ("h200x8", None):
            report = report_of(node, gpus)
            count = len(report["gpus"])
            self.assertEqual(count, gpus or {"h200x1": 1, "pcie2": 2, "h200x8": 8}[node])
            self.assertEqual([gpu["gpu"] for gpu in report["gpus"]], list(range(count)))
            for gpu in report["gpus"]:
                for name in FIGURES:
                    self.assertGreater(gpu[name]["median"], 0, f"{node}: {name}")
                    self.assertLessEqual(gpu[name]["lowest"], gpu[name]["median"])
                    self.assertLessEqual(gpu[name]["median"], gpu[name]["highest"])
                self.assertIs(gpu["arrived"], True)
            self.assertEqual({(pair["from"], pair["to"]) for pair in report["pairs"]},
                             {(a, b) for a in range(count) for b in range(count) if a != b})
            for pair in report["pairs"]:
                self.assertEqual(pair["fault"], "")
                self.assertEqual("copy_with_access" in pair, pair["possible"])

    def test_figures_are_those_of_the_node(self):
        gpu = report_of("h200x1")["gpus"][0]
        for name, value in ("h2d_pinned", 54.9), ("d2h_pinned", 54.9), ("zero_copy_read", 50.9), ("zero_copy_write", 52.4):
            self.assertAlmostEqual(gpu[name]["median"] / value, 1, delta=0.03, msg=name)

    def test_no_driver_and_no_node_are_one_clear_line(self):
        variables = dict(os.environ, LD_LIBRARY_PATH=LIBRARY_DIR, SIM_NODE="nowhere")
        answer = subprocess.run([DOCTOR], env=variables, text=True, capture_output=True)
        self.assertNotEqual(answer.returncode, 0)
        self.assertIn("nowhere", answer.stderr)


class Verdicts(unittest.TestCase):
    def test_healthy_nodes(self):
        self.assertNotIn(checklist.FAULT, verdicts(report_of("h200x8")).values())
        self.assertEqual(verdicts(report_of("h200x1"))["peer access"], checklist.UNKNOWN)

    def test_no_peer_access(self):
        lines = {line.name: line for line in checklist.checklist(report_of("pcie2"))}
        self.assertEqual(lines["peer access"].verdict, checklist.MIND)
        self.assertIn("0->1", lines["peer access"].figure)

    def test_one_copy_engine(self):
        self.assertEqual(verdicts(report_of(changed_node(both_ways_gb_per_s=56)))["overlap"], checklist.MIND)
        self.assertEqual(verdicts(report_of("h200x1"))["overlap"], checklist.FINE)

    def test_pageable_as_fast_as_pinned(self):
        fast = report_of(changed_node(pageable_h2d_gb_per_s=54, pageable_d2h_gb_per_s=54))
        self.assertEqual(verdicts(fast)["pinned memory"], checklist.FINE)
        self.assertEqual(verdicts(report_of("h200x1"))["pinned memory"], checklist.MIND)

    def fault(self, name, change, node="pcie2-p2p"):
        report = copy.deepcopy(report_of(node))
        change(report)
        self.assertEqual([line for line, verdict in verdicts(report).items() if verdict == checklist.FAULT], [name])

    def test_bytes_that_do_not_arrive(self):
        self.fault("bytes arrive", lambda report: report["gpus"][1].update(arrived=False))
        self.fault("peer access", lambda report: report["pairs"][1].update(fault="a kernel's reads brought wrong bytes"))

    def test_peer_access_that_changes_nothing(self):
        self.fault("peer access", lambda report: report["pairs"][0].update(copy_with_access=report["pairs"][0]["copy_without_access"]))

    def test_links(self):
        full = {"generation": 4, "max_generation": 4, "width": 16, "max_width": 16}
        self.fault("PCIe link", lambda report: report["gpus"][0].update(link={**full, "width": 8}))
        self.fault("PCIe link", lambda report: report["gpus"][0].update(link={**full, "generation": 3}))
        self.fault("PCIe link", lambda report: report["gpus"][0].update(link={**full, "generation": 6, "max_generation": 6}))
        self.fault("PCIe link", lambda report: report["gpus"][0]["h2d_pinned"].update(median=12))
        report = report_of("pcie2-p2p")
        for gpu in report["gpus"]:
            gpu["link"] = full
        self.assertEqual(verdicts(report)["PCIe link"], checklist.FINE)

    def test_numa(self):
        def far(report):
            report["numa_nodes_of_process"] = [0]
            report["gpus"][0]["numa_node"], report["gpus"][1]["numa_node"] = 0, 1
        self.fault("NUMA node", far)

    def test_no_overlap(self):
        self.fault("overlap", lambda report: report["gpus"][0].update(
            copy_and_kernel_ms=report["gpus"][0]["copy_ms"] + report["gpus"][0]["kernel_ms"]))


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.tables = [], 0

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta",):
            self.open.append(tag)
        self.tables += tag == "table"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


class Pages(unittest.TestCase):
    def test_text_fits_eighty_columns_and_names_every_check(self):
        for node in "h200x1", "pcie2", "h200x8":
            report = report_of(node)
            lines = checklist.checklist(report)
            text = list(pages.text(report, lines))
            self.assertLessEqual(max(map(len, text)), 80, max(text, key=len))
            for line in lines:
                self.assertTrue(any(line.name in row for row in text))

    def test_html_is_whole(self):
        report = report_of("h200x8")
        tags = Tags()
        tags.feed(pages.page(report, checklist.checklist(report)))
        self.assertEqual(tags.open, [])
        self.assertEqual(tags.tables, 3 + 5)

    def test_unequal_gpus_are_unequal_columns(self):
        report = report_of("h200x8")
        report["gpus"][3]["h2d_pinned"]["median"] = 20
        self.assertEqual([name for name, _ in pages.columns_of(report["gpus"])], ["GPU 0,1,2,4,5,6,7", "GPU 3"])


def names(spans):
    return {finding.name for finding in program.judge(spans)}


class Programs(unittest.TestCase):
    def test_each_mistake_alone(self):
        good = [Span("GPU 0", "H2D", "", 0, 10), Span("GPU 0", "kernel", "", 0.1, 10), Span("host", "wait", "", 9, 10)]
        self.assertEqual(names(good), set())
        self.assertEqual(names([Span("GPU 0", "H2D pageable", "", 0, 10), *good[1:]]), {"pageable"})
        self.assertEqual(names(good + [Span("host", "allocation", "", 4, 5)]), {"allocations"})
        self.assertEqual(names([Span("GPU 0", "H2D", "", 0, 5), Span("GPU 0", "kernel", "", 5, 10)]), {"serial"})
        self.assertEqual(names(good + [Span("host", "wait", "", 10, 12)]), {"blocking", "idle"})
        self.assertEqual(names([Span("GPU 0", "kernel", "", 0, 5), Span("GPU 1", "kernel", "", 5, 10)]), {"turns", "idle"})

    def test_lessons_are_told_from_their_solutions(self):
        self.assertIn("allocations", self.of("lessons/5-memory-pool"))
        self.assertNotIn("allocations", self.of("solutions/5-memory-pool"))

    def of(self, name):
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "trace.json"
            variables = dict(os.environ, LD_LIBRARY_PATH=LIBRARY_DIR, SIM_NODE="h200x1", SIM_TRACE=str(trace))
            subprocess.run([str(LESSONS / name)], env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            return names(timeline.last_phase(timeline.read(trace)))


class System(unittest.TestCase):
    def test_links_as_sysfs_writes_them(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text, value in [("current_link_speed", "32.0 GT/s PCIe\n", 5), ("max_link_width", "16\n", 16),
                                      ("current_link_speed", "Unknown\n", 0), ("max_link_width", "", 0)]:
                path = Path(folder) / name
                path.write_text(text, encoding="ascii")
                self.assertEqual(command.number_in(path), value)
            self.assertEqual(command.number_in(Path(folder) / "missing"), 0)


if __name__ == "__main__":
    unittest.main()
