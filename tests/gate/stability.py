#!/usr/bin/env python3
"""Grades solutions, starters and answers again and again, on either rig.

    meson compile -C build gate-programs
    python3 tests/gate/stability.py --build build --rig gpu --rounds 20 solutions starters

A verdict is wrong when it is not what the tags of the check or the first lines of the answer say.
Machines with fewer GPUs cannot show every mistake. What can be seen there is found out on a simulated
node with as many GPUs, and then asked of the real ones:

    python3 tests/gate/stability.py --build build --node h200x1 --save seen.json answers
    python3 tests/gate/stability.py --build build --rig gpu --expect seen.json answers

Each wrong verdict is printed at once; at the end come the figures of the solutions, their spread and
their distance from the thresholds, as a Markdown table. Exit code 1 when any verdict was wrong.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from gate import read_answer
from grading import REPOSITORY, one_line, run_case
from scan_cases import scan


KINDS = ["solutions", "starters", "answers"]  # solutions tell which cases measure time


class Graded:
    """One program and what is known of it beforehand."""

    def __init__(self, kind, lesson, program, cases, failing, others_may_fail=False, needs_failure=False):
        self.kind, self.lesson, self.program, self.cases = kind, lesson, program, cases
        self.failing, self.others_may_fail = failing, others_may_fail
        self.needs_failure = needs_failure  # one of `failing` at least, unless all are skipped

    def name(self):
        return f"{self.kind} {Path(self.program).name}"


def starters_and_solutions(build, kind, lesson, cases):
    failing = {case.name for case in cases if case.starter_fails} if kind == "starters" else set()
    folder = {"starters": "lessons", "solutions": "solutions"}[kind]
    return [Graded(kind, lesson, build / "checks" / f"{folder}.{lesson}", cases, failing)]


def answers(build, lesson, cases, meant_only):
    for path in sorted((REPOSITORY / "tests" / "answers" / lesson).glob("*.cu")):
        answer = read_answer(path)
        program = build / "tests" / "gate" / f"answer.{lesson}.{path.stem}"
        asked = [case for case in cases if case.name in answer.failing] if meant_only and not answer.right else cases
        yield Graded("answers", lesson, program, asked, answer.failing, answer.others_may_fail, not answer.right)


def wrong_verdicts(graded, records, seen):
    """One line for each record that is neither as expected nor as it was `seen`."""
    for name, record in records.items():
        verdict = record["verdict"]
        if verdict == seen.get(graded.name(), {}).get(name):
            continue
        expected = "fail" if name in graded.failing else "pass"
        if verdict in (expected, "skip") or (verdict == "fail" and graded.others_may_fail):
            continue
        yield f"{graded.name()} should {expected}, but {one_line(record)}"


def cannot_be_seen(graded, records):
    """Whether this machine skips every case that a wrong answer fails."""
    return graded.needs_failure and all(records.get(name, {}).get("verdict") == "skip" for name in graded.failing)


class Figures:
    """The figures of the solutions over all rounds."""

    def __init__(self):
        self.shares = defaultdict(list)  # (lesson, case, figure) -> share of the reference
        self.last = {}

    def add(self, lesson, records):
        for name, record in records.items():
            for figure in record.get("figures", []):
                if figure["value"] is None or not figure["reference"]:
                    continue
                # A bound that was measured in this run is no part of the name.
                key = (lesson, name, re.sub(r" \(bound [^)]*\)", "", figure["name"]))
                self.shares[key].append(figure["value"] / figure["reference"])
                self.last[key] = figure

    def table(self):
        lines = ["| lesson | figure | reference | median | lowest | highest | threshold | worst distance |",
                 "| --- | --- | --- | --- | --- | --- | --- | --- |"]
        for key, shares in self.shares.items():
            figure = self.last[key]
            worst = min(shares) if figure["more_is_better"] else max(shares)
            ratio = worst / figure["limit"]
            distance = ratio if figure["more_is_better"] else 1 / ratio if ratio else float("inf")
            word = "at least" if figure["more_is_better"] else "at most"
            lines.append(
                f"| {key[0].split('-')[0]} | {key[2]} | {figure['reference']:.3g} {figure['unit']} "
                f"| {median(shares):.1%} | {min(shares):.1%} | {max(shares):.1%} "
                f"| {word} {figure['limit']:.1%} | {distance:.2f} times |")
        return "\n".join(lines)


def machine(rig, node):
    if rig == "sim":
        return f"the simulated node {node}, on {platform.machine()}"
    answer = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True)
    names = answer.stdout.split("\n")[:-1]
    return f"{len(names)} x {names[0]}" if names else "unknown GPUs"


def grade_round(programs, options, timed, until):
    """Yields (graded, records) for each program. Cases that measure time run one after the other, after all
    others, which run several at a time. Ends early at `until`."""
    library_dir = str(options.build / "sim" / "lib" if options.rig == "sim" else options.library_dir)
    quick, slow = [], []
    for graded in programs:
        for case in graded.cases:
            alone = options.rig == "gpu" and (graded.lesson, case.name) in timed
            (slow if alone else quick).append((graded, case))

    def run(job):
        graded, case = job
        if time.monotonic() >= until:
            return graded, None
        return graded, run_case(graded.program, case.name, options.rig, library_dir, options.node, 60.0)

    records = defaultdict(dict)
    stopped = 0
    for jobs, workers in (quick, options.workers), (slow, 1):
        with ThreadPoolExecutor(workers) as pool:
            for number, (graded, record) in enumerate(pool.map(run, jobs), 1):
                if record is None:
                    stopped += 1
                    continue
                records[graded][record["case"]] = record
                if number % 200 == 0:
                    print(f"{number} of {len(jobs)} cases, {workers} at a time", file=sys.stderr, flush=True)
    if stopped:
        print(f"stopped before {stopped} of {len(quick) + len(slow)} cases")
    return records.items()


def comparable(records):
    """What must be the same each time on the simulated node."""
    return {name: (record["verdict"], [failure["place"] for failure in record.get("failures", [])])
            for name, record in records.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", choices=KINDS)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--rig", choices=["sim", "gpu"], default="sim")
    parser.add_argument("--library-dir", default="/usr/local/cuda/lib64", help="folder of the real libcudart")
    parser.add_argument("--node", default="h200x8")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="cases at a time that measure no time")
    parser.add_argument("--meant-only", action="store_true", help="ask wrong answers only the cases meant for them")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="grade nothing more after this time")
    parser.add_argument("--lessons", default="123456", help="digits")
    parser.add_argument("--save", type=Path, help="file for the verdicts of the last round")
    parser.add_argument("--expect", type=Path, help="such a file")
    parser.add_argument("--out", type=Path, help="file for the table and the counts, in Markdown")
    options = parser.parse_args()

    seen = json.loads(options.expect.read_text(encoding="utf-8")) if options.expect else {"verdicts": {}}
    programs = []
    timed = set(map(tuple, seen.get("timed", [])))
    for path in sorted((REPOSITORY / "checks").glob("[0-9]-*.cpp")):
        if path.stem[0] not in options.lessons:
            continue
        cases = scan(path)
        for kind in sorted(options.what, key=KINDS.index):
            programs += answers(options.build, path.stem, cases, options.meant_only) if kind == "answers" else \
                starters_and_solutions(options.build, kind, path.stem, cases)
        if not options.expect:  # nothing is known yet: one after the other
            timed |= {(path.stem, case.name) for case in cases}

    verdicts = {}
    started = time.monotonic()
    until = started + options.seconds
    figures, wrong, unseen, judged, rounds = Figures(), [], set(), 0, 0
    first = {}
    while rounds < options.rounds and time.monotonic() < until:
        measuring = set()
        for graded, records in grade_round(programs, options, timed, until):
            judged += sum(record["verdict"] in ("pass", "fail") for record in records.values())
            for line in wrong_verdicts(graded, records, seen["verdicts"]):
                wrong.append(line)
                print(f"round {rounds + 1}: {line}", flush=True)
            verdicts[graded.name()] = {name: record["verdict"] for name, record in records.items()}
            if cannot_be_seen(graded, records):
                unseen.add(graded.name())
            measuring |= {(graded.lesson, name) for name, record in records.items() if record.get("figures")}
            if graded.kind == "solutions":
                figures.add(graded.lesson, records)
            if options.rig == "sim" and comparable(records) != first.setdefault(graded.program, comparable(records)):
                wrong.append(f"{graded.name()} is judged differently from round to round")
                print(wrong[-1], flush=True)
        if not options.expect:
            timed = measuring
        rounds += 1
        print(f"round {rounds} of {options.rounds}: {time.monotonic() - started:.0f} s, {len(wrong)} wrong verdicts",
              flush=True)

    text = (f"{rounds} rounds of {len(programs)} programs on {machine(options.rig, options.node)}, "
            f"{time.strftime('%Y-%m-%d')}: {judged} verdicts, {len(wrong)} of them wrong.\n")
    if unseen:
        text += f"\nNot to be seen on this machine: {', '.join(sorted(unseen))}.\n"
    if figures.shares:
        text += f"\n{figures.table()}\n"
    print(text)
    if options.save:
        saved = {"timed": sorted(timed), "verdicts": verdicts}
        options.save.write_text(json.dumps(saved, indent=1), encoding="utf-8")
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
