#!/usr/bin/env python3
"""Writes into the pages of the lessons what their programs print, as they come: with the mistakes.

    meson compile -C build lesson-pages

or by hand

    python3 lessons/program_output.py LIBRARY_DIR NODE PROGRAM...

Each PROGRAM is build/lessons/N-name; it is run on the simulated node NODE, whose libcudart is in
LIBRARY_DIR. Its output replaces the first block of lessons/N-name/README.md behind a sentence that
names the node.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

LESSONS = Path(__file__).resolve().parent


def output_of(program, library_dir, node):
    environment = dict(os.environ, LD_LIBRARY_PATH=library_dir, SIM_NODE=node)
    answer = subprocess.run([program], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if not answer.stdout.strip():
        sys.exit(f"{program} printed nothing and ended with code {answer.returncode}")
    return answer.stdout.rstrip()


def with_block(text, node, output):
    """The page with `output` in its block; None when there is no such block."""
    block = re.compile(rf"([Oo]n\sthe\ssimulated\snode\s`{re.escape(node)}`:\n\n```\n).*?(\n```\n)", re.DOTALL)
    return block.sub(lambda match: match[1] + output + match[2], text, count=1) if block.search(text) else None


def main(library_dir, node, *programs):
    for program in programs:
        page = LESSONS / Path(program).name / "README.md"
        text = with_block(page.read_text(encoding="utf-8"), node, output_of(program, library_dir, node))
        if text is None:
            sys.exit(f"{page} has no block behind \"On the simulated node `{node}`:\"")
        page.write_text(text, encoding="utf-8")
        print(f"{page}: remade")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
