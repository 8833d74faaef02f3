#!/usr/bin/env python3
"""Lists the submissions in a folder for meson.build: name and path, a line each, parted by a tab.

A folder that holds N-name/name.cu of some lesson is a submission itself; otherwise every folder in
it is one, whatever it holds, so that nobody is left out of a class by a missing file.
"""

import re
import sys
from pathlib import Path

LESSON = re.compile(r"\d+-[a-z-]+")


def is_submission(folder):
    return any(LESSON.fullmatch(entry.name) and entry.is_dir() for entry in folder.iterdir())


def folders_in(folder):
    return sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))


def main():
    folder = Path(sys.argv[1]).resolve()
    if not folder.is_dir():
        sys.exit(f"submissions: {folder} is not a folder")
    submissions = [folder] if is_submission(folder) else folders_in(folder)
    if not submissions:
        sys.exit(f"submissions: {folder} holds no submission, that is a folder with N-name/name.cu in it")
    for submission in submissions:
        if not re.fullmatch(r"[\w.+@-]+", submission.name):
            sys.exit(f"submissions: rename {submission}: letters, digits and . + @ - _ only")
        print(submission.name, submission, sep="\t")


if __name__ == "__main__":
    main()
