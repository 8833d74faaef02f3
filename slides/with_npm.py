#!/usr/bin/env python3
"""Builds or tests the decks with npm, which first gets what slides/package-lock.json names.

    python3 slides/with_npm.py build|test

What is missing is named: building then ends with 0, as there is nothing wrong, and testing with 77, Meson's "skipped".
"""

import shutil
import subprocess
import sys
from pathlib import Path

SLIDES = Path(__file__).resolve().parent
SKIPPED = 77


def npm(*arguments):
    subprocess.run(["npm", *arguments], cwd=SLIDES, check=True)


def have_chromium():
    found = subprocess.run(["node", "--input-type=module", "-e",
                            'import { chromium } from "./chromium.mjs"; process.exit(chromium ? 0 : 1);'], cwd=SLIDES)
    return found.returncode == 0


def what_is_missing(job):
    if not shutil.which("npm"):
        return "npm is missing: install Node.js 20 with npm (Debian: apt-get install npm)"
    if job == "test" and not have_chromium():
        return "there is no Chromium to look at the slides with (Debian: apt-get install chromium)"
    return None


def get_packages():
    wanted, there = SLIDES / "package-lock.json", SLIDES / "node_modules" / ".package-lock.json"
    if not there.exists() or there.stat().st_mtime < wanted.stat().st_mtime:
        npm("ci", "--no-audit", "--no-fund")


def main(job):
    missing = what_is_missing(job)
    if missing:
        print(f"slides: skipped, {missing}")
        return SKIPPED if job == "test" else 0
    try:
        get_packages()
        npm("run", "build")
        if job == "test":
            npm("test")
    except subprocess.CalledProcessError as error:
        print(f"slides: {' '.join(error.cmd)} failed, see above", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ("build", "test"):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
