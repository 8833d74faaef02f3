#!/usr/bin/env python3
"""Draws what lesson 6 is about: its starter and its solution, over time.

    meson compile -C build timelines

or by hand

    python3 lessons/timeline_pictures.py LIBRARY_DIR NODE STARTER SOLUTION

Both programs are run on the simulated node NODE; the last phase of each becomes a picture beside the page, and
the rows of their GPU a block in the README of the course, behind a sentence that names the node.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

LESSON = Path(__file__).resolve().parent / "6-async-transfer"
README = Path(__file__).resolve().parents[1] / "README.md"
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "checks" / "support"))
import timeline  # noqa: E402
from program_output import with_block  # noqa: E402


def picture(program, library_dir, node, name):
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        variables = dict(os.environ, LD_LIBRARY_PATH=library_dir, SIM_NODE=node, SIM_TRACE=str(trace))
        subprocess.run([program], env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        spans = timeline.last_phase(timeline.read(trace))
    path = LESSON / f"{name}-timeline.svg"
    path.write_text(timeline.svg(spans, f"Lesson 6, {name}, on the simulated node {node}"), encoding="utf-8")
    print(f"{path}: remade")
    return [line for line in timeline.draw(spans) if line.startswith(("GPU 0", " " * timeline.LABEL + "0"))]


def main(library_dir, node, starter, solution):
    drawn = [*picture(starter, library_dir, node, "starter"), "", *picture(solution, library_dir, node, "solution")]
    text = with_block(README.read_text(encoding="utf-8"), node, "\n".join(drawn))
    if text is None:
        sys.exit(f"{README} has no block behind \"on the simulated node `{node}`:\"")
    README.write_text(text, encoding="utf-8")
    print(f"{README}: remade")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
