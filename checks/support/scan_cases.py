#!/usr/bin/env python3
"""Reads the cases of a check from its source: TEST_CASE("name", "[tags]").

As a program it prints one case a line: name, points, GPUs that it needs, and whether the starter
is expected to fail it (yes or no), separated by tabs.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

CASE = re.compile(r'^TEST_CASE\(\s*((?:"[^"\\]*"\s*)+)(?:,\s*((?:"[^"\\]*"\s*)+))?\)', re.MULTILINE)
ANY_CASE = re.compile(r"^\s*(?:TEST_CASE|SCENARIO|TEMPLATE_\w*TEST_CASE|TEST_CASE_METHOD)\b", re.MULTILINE)
TAG = re.compile(r"\[([^\]]*)\]")


class ScanError(Exception):
    pass


@dataclass
class Case:
    name: str
    points: int = 1
    gpus: int = 1
    starter_fails: bool = False


def join_literals(text):
    return "".join(re.findall(r'"([^"]*)"', text))


def read_case(path, name, tags):
    case = Case(name)
    for tag in TAG.findall(tags):
        key, _, value = tag.partition(":")
        if key == "pts" and value.isdecimal():
            case.points = int(value)
        elif key == "gpus" and value.isdecimal():
            case.gpus = int(value)
        elif tag == "starter-fails":
            case.starter_fails = True
        else:
            raise ScanError(f"{path}: case \"{name}\" has a tag that means nothing: [{tag}]")
    return case


def scan(path):
    """The cases of a check's source, in their order. Raises ScanError."""
    text = Path(path).read_text(encoding="utf-8")
    found = CASE.findall(text)
    if len(found) != len(ANY_CASE.findall(text)):
        raise ScanError(f"{path}: write every case as TEST_CASE(\"name\", \"[tags]\"), from the first column")
    cases = [read_case(path, join_literals(name), join_literals(tags)) for name, tags in found]
    names = [case.name for case in cases]
    for name in names:
        if names.count(name) > 1:
            raise ScanError(f'{path}: two cases are called "{name}"')
        if re.search(r"[\t;]|^\s|\s$|^$", name):
            raise ScanError(f'{path}: the name "{name}" holds a semicolon or tab, or a space at its end')
    return cases


def main():
    try:
        for case in scan(sys.argv[1]):
            print(case.name, case.points, case.gpus, "yes" if case.starter_fails else "no", sep="\t")
    except ScanError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
