#!/usr/bin/env python3
"""Grades a class made of tests/answers, and tells how long that takes.

    python3 tests/benchmark/class.py 100

Each of so many submissions has a file for every lesson: an answer, the solution or the starter, in turn, so that
neighbours differ. The class and its results go to a folder that is deleted at the end; build/ is used as `./course
grade` does.
"""

import argparse
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "checks" / "support"))
from project import lessons, source_of  # noqa: E402


def choices(lesson):
    """All files that a student might hand in for a lesson."""
    return [*sorted((REPOSITORY / "tests" / "answers" / lesson).glob("*.cu")),
            *(REPOSITORY / folder / source_of(lesson) for folder in ("solutions", "lessons"))]


def make_class(folder, size):
    """Writes the submissions; returns how many different files they have."""
    used = set()
    for number in range(size):
        for lesson in lessons():
            files = choices(lesson)
            file = files[number % len(files)]
            used.add(file)
            path = folder / f"student-{number:03}" / source_of(lesson)
            path.parent.mkdir(parents=True)
            shutil.copyfile(file, path)
    return len(used)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", type=int, help="number of submissions")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        different = make_class(Path(scratch) / "class", options.size)
        begin = time.monotonic()
        subprocess.run([str(REPOSITORY / "course"), "grade", str(Path(scratch) / "class"), "--rig", "sim"], check=True)
        seconds = time.monotonic() - begin
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"\n{options.size} submissions, {options.size * len(lessons())} files, {different} of them different: "
          f"{seconds / 60:.1f} minutes on {os.cpu_count()} cores of {platform.node()}; "
          f"the largest process took {peak:.0f} MiB")


if __name__ == "__main__":
    main()
