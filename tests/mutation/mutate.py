#!/usr/bin/env python3
"""Finds assertions of a lesson's check that no wrong answer needs.

    meson compile -C build gate-programs
    python3 tests/mutation/mutate.py --build build 3-pinned-memory

The check is built once more, with a switch in front of each assertion. Then each assertion is turned
off in turn: if no wrong answer and no starter gets through a case that it failed before, the
assertion is idle. Either it can go, or tests/answers lacks an answer that needs it. Exit code 1 when
there is an idle one. check::untouched() judges in support/ and is not switched.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tests" / "gate"), str(REPOSITORY / "checks" / "support")]
from gate import read_answer  # noqa: E402
from run_case import run_case  # noqa: E402
from scan_cases import scan  # noqa: E402

ASSERTION = re.compile(r"\b(?:check::(?:same|expect|figure|figure_at_most|compare_rates|compare_times|nothing_left|"
                       r"nothing_failed)|(?:CHECK|REQUIRE)(?:_\w+)?)\s*\(")
SWITCH = "COURSE_ASSERTION_OFF"
REACHED = "reached assertion "

# An assertion in its place keeps a case from ending as one in which nothing was asserted.
PRELUDE = f"""
#include <cstdio>
#include <cstdlib>
#include <string>
namespace {{
bool turned_off(int number) {{
    static bool told[1000];
    if (!told[number]) std::printf("{REACHED}%d\\n", number);
    std::fflush(stdout);
    told[number] = true;
    const char* off = std::getenv("{SWITCH}");
    return off != nullptr && std::atoi(off) == number;
}}
bool expect_unless(bool off, bool ok, const std::string& message) {{
    return check::expect(off || ok, message);
}}
}} // namespace
"""


class Assertion:
    def __init__(self, number, line, text):
        self.number, self.line, self.text = number, line, text


def begins_statement(before):
    """Whether a statement begins behind this text."""
    code = re.sub(r"//[^\n]*", "", before[-2000:]).rstrip()
    return code.endswith((";", "{", "}", ")", "else")) and not code.endswith("(void)")


def with_switches(text):
    """(the source with a switch in front of each assertion, the assertions)"""
    assertions, parts, done = [], [], 0
    for found in ASSERTION.finditer(text):
        line_start = text.rfind("\n", 0, found.start()) + 1
        if "//" in text[line_start:found.start()]:
            continue
        number = len(assertions) + 1
        line = text.count("\n", 0, found.start()) + 1
        assertions.append(Assertion(number, line, text[found.start():].split("\n")[0]))
        parts.append(text[done:found.start()])
        done = found.start()
        if begins_statement(text[:done]):
            parts.append(f'if (turned_off({number})) check::expect(true, "off"); else ')
        else:  # its answer is used: only expect() has one
            parts.append(f"expect_unless(turned_off({number}), ")
            done = found.end()
    switched = "".join([*parts, text[done:]])
    last_include = switched.rindex("#include")
    end = switched.index("\n", last_include) + 1
    return switched[:end] + PRELUDE + switched[end:], assertions


def compile_check(build, lesson, folder):
    """Returns (object of the switched check, its assertions)."""
    source = REPOSITORY / "checks" / f"{lesson}.cpp"
    text, assertions = with_switches(source.read_text(encoding="utf-8"))
    switched = folder / source.name
    switched.write_text(text, encoding="utf-8")
    entries = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    entry = next(entry for entry in entries if entry["file"].endswith(f"checks/{lesson}.cpp"))
    words = shlex.split(entry["command"])
    object_file = folder / f"{lesson}.o"
    words[words.index("-o") + 1] = str(object_file)
    words[words.index(entry["file"])] = str(switched)
    subprocess.run([word for word in words if word != "-Werror"] + ["-w"], cwd=entry["directory"], check=True)
    return object_file, assertions


def link(build, target, lesson, check_object, folder):
    """Links what the build links for `target`, with the switched check. Returns the program."""
    listed = subprocess.run(["ninja", "-C", str(build), "-t", "commands", "-s", target], capture_output=True, text=True, check=True)
    words = shlex.split(listed.stdout.splitlines()[-1])
    words = words[words.index("--object"):]
    program = folder / Path(target).name
    command = words[words.index("--") + 1:]
    command = [words[1] if word == "@OBJECT@" else str(check_object) if word.endswith(f"libcheck-{lesson}.a") else word
               for word in command]
    subprocess.run([*command, "-o", str(program)], cwd=build, check=True)
    return program


def wrong_programs(lesson, cases):
    """(target, names of the cases that it fails) of the starter and of each wrong answer."""
    yield f"checks/lessons.{lesson}", {case.name for case in cases if case.starter_fails}
    for path in sorted((REPOSITORY / "tests" / "answers" / lesson).glob("*.cu")):
        answer = read_answer(path)
        if not answer.right:
            yield f"tests/gate/answer.{lesson}.{path.stem}", answer.failing


class Run:
    """A case that a program fails, and the assertions on its way."""

    def __init__(self, program, case, record):
        self.program, self.case = program, case
        self.reached = {int(number) for number in re.findall(REACHED + r"(\d+)", record["printed"])}


class Grader:
    def __init__(self, library_dir, node, workers):
        self.library_dir, self.node = str(library_dir), node
        self.pool = ThreadPoolExecutor(workers)

    def grade(self, pairs, off):
        """Records of (program, case) with one assertion turned off; 0 is none."""
        os.environ[SWITCH] = str(off)
        return list(self.pool.map(lambda pair: run_case(str(pair[0]), pair[1], "sim", self.library_dir, self.node), pairs))


def first_through(grader, runs, assertion):
    """The first run that passes without the assertion; None when there is none."""
    candidates = sorted((run for run in runs if assertion.number in run.reached), key=lambda run: len(run.reached))
    step = 4
    for first in range(0, len(candidates), step):
        part = candidates[first:first + step]
        records = grader.grade([(run.program, run.case) for run in part], assertion.number)
        for run, record in zip(part, records):
            if record["verdict"] == "pass":
                return run
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lesson", help="N-name")
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--library-dir", type=Path, help="folder of the simulated libcudart, if not that of the build")
    parser.add_argument("--node", default="h200x8")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    options = parser.parse_args()

    build = options.build.resolve()
    cases = scan(REPOSITORY / "checks" / f"{options.lesson}.cpp")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        check_object, assertions = compile_check(build, options.lesson, folder)
        pairs = [(link(build, target, options.lesson, check_object, folder), case)
                 for target, failing in wrong_programs(options.lesson, cases) for case in sorted(failing)]
        grader = Grader(options.library_dir or build / "sim" / "lib", options.node, options.workers)
        runs = [Run(*pair, record) for pair, record in zip(pairs, grader.grade(pairs, 0)) if record["verdict"] == "fail"]
        if not any(run.reached for run in runs):
            sys.exit(f"no wrong answer reached an assertion: is {options.build} complete, and the simulated libcudart there?")
        print(f"{len(assertions)} assertions, {len(runs)} failures of wrong answers", flush=True)
        idle = 0
        for assertion in assertions:
            through = first_through(grader, runs, assertion)
            idle += through is None
            why = f"lets {through.program.name} through: {through.case}" if through else "IDLE"
            print(f"checks/{options.lesson}.cpp:{assertion.line}: {assertion.text}\n    {why}", flush=True)
    print(f"{idle} of {len(assertions)} assertions are idle")
    return 1 if idle else 0


if __name__ == "__main__":
    sys.exit(main())
