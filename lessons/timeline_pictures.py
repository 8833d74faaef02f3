#!/usr/bin/env python3
"""Draws what lesson 6 is about: its starter and its solution, over time.

    meson compile -C build timelines

or by hand

    python3 lessons/timeline_pictures.py LIBRARY_DIR NODE STARTER SOLUTION

Both programs are run on the simulated node NODE; the last phase of each becomes a picture beside the page.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

LESSON = Path(__file__).resolve().parent / "6-async-transfer"
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "checks" / "support"))
import timeline  # noqa: E402


def picture(program, library_dir, node, name):
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        variables = dict(os.environ, LD_LIBRARY_PATH=library_dir, SIM_NODE=node, SIM_TRACE=str(trace))
        subprocess.run([program], env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        spans = timeline.last_phase(timeline.read(trace))
    path = LESSON / f"{name}-timeline.svg"
    path.write_text(timeline.svg(spans, f"Lesson 6, {name}, on the simulated node {node}"), encoding="utf-8")
    print(f"{path}: remade")


def main(library_dir, node, starter, solution):
    picture(starter, library_dir, node, "starter")
    picture(solution, library_dir, node, "solution")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
