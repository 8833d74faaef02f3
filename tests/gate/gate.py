#!/usr/bin/env python3
"""What every lesson must keep to, checked on the simulated node. See the functions for the rules."""

import argparse
import difflib
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from grading import REPOSITORY, grade, one_line
from run_case import not_built
from scan_cases import scan

LARGEST_DIFFERENCE = 0.45  # changed lines, as a share of the longer file
SHORTEST_GIVEAWAY = 12  # characters; shorter lines such as `}` give nothing away
SOURCES = ["common", "lessons", "solutions", "checks", "sim", "doctor", "tests"]
SHOWN_OUTPUT = re.compile(r"On\sthe\ssimulated\snode\s`[\w-]+`:\n\n```\n(?!@).+\n")
SUFFIXES = {".cpp", ".hpp", ".cu"}


class Findings:
    """Collects what is wrong, so that one run names everything."""

    def __init__(self):
        self.texts = []

    def add(self, text):
        self.texts.append(text)

    def require(self, fine, text):
        if not fine:
            self.add(text)


def source_of(folder, lesson):
    return REPOSITORY / folder / lesson / (lesson.split("-", 1)[1] + ".cu")


def compare_verdicts(findings, records, failing, whose):
    """The cases `failing` fail, by an assertion of the check; all others pass."""
    for name, record in records.items():
        expected = "fail" if name in failing else "pass"
        findings.require(record["verdict"] == expected, f"{whose} should {expected}, but {one_line(record)}")
        if record["verdict"] == "pass":
            findings.require(record["assertions"] > 0, f'"{name}" passed without an assertion')


def check_starter(findings, options, cases):
    """The starter fails the cases tagged [starter-fails], each with an explanation, and no other."""
    failing = {case.name for case in cases if case.starter_fails}
    findings.require(failing, "no case is tagged [starter-fails]: what is there to learn?")
    records = grade(options.program, cases, options.library_dir, options.node)
    compare_verdicts(findings, records, failing, "the starter")
    for record in records.values():
        if record["verdict"] != "fail":
            continue
        findings.require(record.get("failures"), f"no assertion says why: {one_line(record)}")
        findings.require(record.get("meaning"), f"no explanation: {one_line(record)}")
        page = record.get("where", "").split(",")[0]
        findings.require(page and (REPOSITORY / page).is_file(), f'no page to read ("{page}"): {one_line(record)}')


def check_solution(findings, options, cases):
    """The solution passes all cases."""
    compare_verdicts(findings, grade(options.program, cases, options.library_dir, options.node), set(), "the solution")


def check_cases(findings, options, cases):
    """The cases that were read from the source are those that are in the program."""
    findings.require(not not_built(options.program), f"{options.program} could not be built")
    listed = subprocess.run([options.program, "--cases"], capture_output=True, text=True, check=True).stdout
    inside = {line.strip() for line in listed.splitlines() if line.strip()}
    scanned = {case.name for case in cases}
    findings.require(inside == scanned, f"cases differ between source and program: {sorted(inside ^ scanned)}")


def changed_lines(one, other):
    """(lines only in one, lines only in the other)"""
    difference = list(difflib.ndiff(one, other))
    return ([line[2:] for line in difference if line.startswith("- ")],
            [line[2:] for line in difference if line.startswith("+ ")])


def public_definitions(text):
    """The heads of the functions that the lesson's header asks for."""
    heads = re.findall(r"^[^\s/#}][^;{}]*\blesson::\w+\([^{};]*\)[^{};]*\{", text, re.MULTILINE)
    return {" ".join(head.split()) for head in heads}


def check_texts(findings, options, cases):
    """Starter and solution differ only where the lesson is, and the hints do not tell the solution."""
    starter = source_of("lessons", options.lesson).read_text(encoding="utf-8")
    solution = source_of("solutions", options.lesson).read_text(encoding="utf-8")
    findings.require(public_definitions(starter), "the starter defines no function of the lesson")
    findings.require(public_definitions(starter) == public_definitions(solution),
                     "starter and solution do not define the same functions: "
                     f"{public_definitions(starter) ^ public_definitions(solution)}")
    removed, added = changed_lines(starter.splitlines(), solution.splitlines())
    share = max(len(removed), len(added)) / max(len(starter.splitlines()), len(solution.splitlines()))
    findings.require(0 < share <= LARGEST_DIFFERENCE,
                     f"starter and solution differ in {100 * share:.0f} % of their lines")

    folder = REPOSITORY / "lessons" / options.lesson
    for page in ["README.md", "hints.md", "why.md"]:
        findings.require((folder / page).is_file(), f"{page} is missing")
    findings.require(SHOWN_OUTPUT.search((folder / "README.md").read_text(encoding="utf-8")),
                     "README.md does not show what the program prints: meson compile -C build lesson-pages")
    hints = (folder / "hints.md").read_text(encoding="utf-8")
    steps = re.findall(r"<summary>(\d)\.", hints)
    findings.require(steps == ["1", "2", "3"], f"hints.md has the steps {steps}, not 1, 2, 3")
    for line in added:
        giveaway = line.strip()
        findings.require(len(giveaway) < SHORTEST_GIVEAWAY or giveaway not in hints,
                         f"hints.md has a line of the solution: {giveaway}")


class Answer(NamedTuple):
    """What the first lines of an answer say of it."""

    right: bool
    what: str
    failing: set  # names of the cases that it fails
    others_may_fail: bool  # it is wrong in so many places that only the cases meant for it are named, and asked


def read_answer(path):
    """None when the file does not begin as an answer should."""
    comment = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("//"):
            break
        comment.append(line[2:].strip())
    head = re.fullmatch(r"(right|wrong): (.+?)(?: fails( at least)?: (.+))?", " ".join(comment))
    if not head or (head[1] == "wrong") != bool(head[4]):
        return None
    failing = {name.strip() for name in (head[4] or "").split(";") if name.strip()}
    return Answer(head[1] == "right", head[2], failing, bool(head[3]))


def check_answer(findings, options, cases, path, program):
    answer = read_answer(path)
    if answer is None:
        findings.add(f"{path.name}: begins neither with `// right: what it is` nor with "
                     "`// wrong: what it is` and `// fails: case; case` or "
                     "`// fails at least: case; case`")
        return
    unknown = answer.failing - {case.name for case in cases}
    findings.require(not unknown, f"{path.name}: there is no case {sorted(unknown)}")
    broken = not_built(program)
    if broken:
        findings.add(f"{path.name}: {broken}")
        return
    asked = [case for case in cases if case.name in answer.failing] if answer.others_may_fail else cases
    records = grade(program, asked, options.library_dir, options.node)
    compare_verdicts(findings, records, answer.failing,
                     f"{path.name} ({'right' if answer.right else 'wrong'}: {answer.what})")


def check_answers(findings, options, cases):
    """Right answers pass everything, however unlike the solution; wrong ones fail what they say."""
    programs = {Path(program).name.split(".", 2)[2]: program for program in options.answers}
    files = sorted((REPOSITORY / "tests" / "answers" / options.lesson).glob("*.cu"))
    findings.require({path.stem for path in files} == set(programs),
                     "the answers changed since the build was configured: meson setup --reconfigure")
    for path in files:
        if path.stem in programs:
            check_answer(findings, options, cases, path, programs[path.stem])
    print(f"{len(files)} answers")


def check_format(findings, options, cases):
    """All sources are as clang-format writes them."""
    files = sorted(str(path) for folder in SOURCES for path in (REPOSITORY / folder).rglob("*")
                   if path.suffix in SUFFIXES)
    answer = subprocess.run([options.program, "--dry-run", "--Werror", *files], capture_output=True, text=True)
    if answer.returncode != 0:
        findings.add("\n".join(sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", answer.stderr, re.MULTILINE)))) or answer.stderr)
    print(f"{len(files)} files")


CHECKS = {
    "starter": check_starter,
    "solution": check_solution,
    "cases": check_cases,
    "texts": check_texts,
    "answers": check_answers,
    "format": check_format,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=CHECKS)
    parser.add_argument("--lesson", help="N-name")
    parser.add_argument("--program", help="program of the cases, or clang-format")
    parser.add_argument("--library-dir", help="folder of the simulated libcudart")
    parser.add_argument("--node")
    parser.add_argument("answers", nargs="*", help="programs of the answers: answer.N-name.stem")
    options = parser.parse_intermixed_args()  # the answers come last, behind options

    cases = scan(REPOSITORY / "checks" / (options.lesson + ".cpp")) if options.lesson else []
    findings = Findings()
    CHECKS[options.what](findings, options, cases)
    for text in findings.texts:
        print(text)
    return 1 if findings.texts else 0


if __name__ == "__main__":
    sys.exit(main())
