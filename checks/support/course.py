#!/usr/bin/env python3
"""The commands of ./course, once everything is installed. Each is a `meson` command or two."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SUPPORT = Path(__file__).resolve().parent
sys.path.insert(0, str(SUPPORT))
from run_case import DEFAULT_NODE, WIDTH, details, figure_line, reasons, rig_text, wrap  # noqa: E402
from scan_cases import scan  # noqa: E402

REPOSITORY = SUPPORT.parents[1]
BUILD = REPOSITORY / "build"
SIM_LIBRARY_DIR = BUILD / "sim" / "lib"
NODES = REPOSITORY / "sim" / "nodes"
BUILD_NOISE = ("INFO: ", "ninja: ")


class Complaint(Exception):
    """What is wrong with what the caller asked for, in one sentence."""


# What there is


def lessons():
    """Names of the lessons that can be checked, in their order."""
    return sorted(path.stem for path in (REPOSITORY / "checks").glob("[0-9]-*.cpp")
                  if (REPOSITORY / "lessons" / path.stem / "main.cpp").is_file())


def lesson_named(word):
    for lesson in lessons():
        if word in (lesson, lesson.split("-")[0]):
            return lesson
    raise Complaint(f'there is no lesson "{word}"; there are: ' + ", ".join(lessons()))


def source_of(lesson):
    return f"{lesson}/{lesson.split('-', 1)[1]}.cu"


def check_node(name):
    nodes = sorted(path.stem for path in NODES.glob("*.toml"))
    if name is not None and name not in nodes:
        raise Complaint(f'there is no simulated node "{name}"; there are: ' + ", ".join(nodes))


def real_gpus():
    """How many GPUs the driver of this machine shows; 0 without a driver."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return 0
    answer = subprocess.run([tool, "-L"], capture_output=True, text=True)
    return len(re.findall(r"^GPU \d+:", answer.stdout, re.MULTILINE)) if answer.returncode == 0 else 0


def best_rig():
    return "gpu" if real_gpus() > 0 else "sim"


# The build


def meson(*words):
    """Runs meson. When it fails, shows what it said and ends this program."""
    answer = subprocess.run(["meson", *words], cwd=REPOSITORY, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if answer.returncode != 0:
        sys.exit(answer.stdout.rstrip())


def configure(submissions=""):
    """Makes build/ ready to grade `submissions`, the empty string being lessons/."""
    if shutil.which("meson") is None:
        raise Complaint("meson is missing: ./course start installs what is missing")
    option = f"-Dsubmissions={submissions}"
    if not (BUILD / "build.ninja").is_file():
        print("configuring build/", flush=True)
        meson("setup", str(BUILD), option)
        return
    if option_value("submissions") != submissions:
        meson("configure", str(BUILD), option)


def option_value(name):
    answer = subprocess.run(["meson", "introspect", str(BUILD), "--buildoptions"], capture_output=True, text=True)
    if answer.returncode != 0:
        sys.exit(answer.stdout + answer.stderr)
    return next(option["value"] for option in json.loads(answer.stdout) if option["name"] == name)


def compile_targets(*targets):
    """Builds these targets, and shows how far it is where a person watches."""
    process = subprocess.Popen(["meson", "compile", "-C", str(BUILD), *targets], cwd=REPOSITORY, text=True,
                               errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    remarks = []
    configuring = False
    for line in process.stdout:
        step = re.match(r"\[(\d+)/(\d+)\]", line)
        if step:
            show(f"building: {step[1]} of {step[2]}")
            configuring = "Regenerating build files" in line
        elif not line.startswith(BUILD_NOISE):
            remarks.append((configuring, line))
    show("")
    failed = process.wait() != 0
    # What Meson says while it configures anew is of interest only when that fails.
    print("".join(line for configuring, line in remarks if failed or not configuring), end="", flush=True)
    if failed:
        raise SystemExit(1)


def show(text):
    """Replaces the line that tells how far it is; shows nothing where nobody watches."""
    if sys.stdout.isatty():
        print(f"\r{text:<40}\r{text}", end="", flush=True)


# Grading


def grade(suites, rig, node):
    """Runs the tests of these suites on one rig by `meson test`. Returns their records."""
    other = "sim" if rig == "gpu" else "gpu"
    command = ["meson", "test", "-C", str(BUILD), "--no-suite", other, "--no-suite", "project"]
    for suite in suites:
        command += ["--suite", suite]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records"
        path.touch()
        variables = dict(os.environ, CHECK_RECORDS=str(path))
        if node is not None:
            variables["SIM_NODE"] = node
        log = Path(folder) / "log"
        with open(log, "w", encoding="utf-8") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=variables, cwd=REPOSITORY)
            show_progress(process, path)
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        if not records:
            sys.exit("no case was run; meson said:\n" + log.read_text(encoding="utf-8").strip())
    return records


def show_progress(process, path):
    """Waits for `meson test`, counting the records that come in."""
    while process.poll() is None:
        time.sleep(0.2)
        show(f"checking: {len(path.read_bytes().splitlines())} cases")
    show("")


def in_order(records, lesson):
    """The records of a lesson in the order of its source."""
    names = [case.name for case in scan(REPOSITORY / "checks" / f"{lesson}.cpp")]
    of_lesson = [record for record in records if record["lesson"] == lesson]
    return sorted(of_lesson, key=lambda record: names.index(record["case"]))


def points(records):
    """(points reached, points to be had, points of cases that could not be judged)"""
    reached = sum(record["points"] for record in records if record["verdict"] == "pass")
    unjudged = sum(record["points"] for record in records if record["verdict"] not in ("pass", "fail"))
    return reached, sum(record["points"] for record in records), unjudged


# Reports


def title(lesson):
    number, name = lesson.split("-", 1)
    return f"Lesson {number}: {name.replace('-', ' ')}"


def points_text(records):
    reached, all_points, unjudged = points(records)
    text = f"{reached} of {all_points} points"
    return text + (f", {unjudged} not judged" if unjudged else "")


def row(left, right):
    space = WIDTH - len(right) - 1
    return f"{left[:space]:<{space}} {right}"


def print_lesson(records, lesson, in_full):
    """One line a case, and under each that did not pass its figure or reason; everything `in_full`."""
    print(row(title(lesson), points_text(records)))
    for record in records:
        word = {"pass": "pass", "fail": "FAIL", "skip": "skip"}.get(record["verdict"], "????")
        print(row(f"  {word}  {record['case']}", f"{record['points']} p"))
        for figure in record.get("figures", []):
            print("\n".join(wrap(figure_line(figure), "        ")))
        if in_full:
            print("".join(line + "\n" for line in details(record, "        ")), end="")
        elif record["verdict"] != "pass" and not record.get("figures"):
            print("\n".join(wrap((reasons(record) or ["?"])[0], "        ")[:2]))


def all_passed(records):
    return all(record["verdict"] == "pass" for record in records)


def print_total(records, submission):
    reached, all_points, unjudged = points(records)
    print(row(f"{submission}, on {rig_text(records[0])}", points_text(records)))
    if records[0]["rig"] == "sim":
        print("The simulated node teaches and tests; the final grade is made on real GPUs.")
    if records[0]["rig"] == "gpu" and unjudged:
        print("Cases that this machine cannot show can be tried with --rig sim.")


def print_next_step(records):
    for lesson in lessons():
        if all_passed([record for record in records if record["lesson"] == lesson]):
            continue
        number = lesson.split("-")[0]
        print(f"\nNext: read   lessons/{lesson}/README.md\n"
              f"      see    ./course run {number}\n"
              f"      edit   lessons/{source_of(lesson)}\n"
              f"      check  ./course check {number}")
        return
    print("\nEvery case passes. Compare: ./course diff 1 shows one way to write lesson 1.")


# Commands


def start(options):
    configure()
    print("building", flush=True)
    compile_targets(*(kind + lesson for lesson in lessons() for kind in ("run-", "cases-")))
    records = grade(lessons(), best_rig(), None)
    for lesson in lessons():
        print_lesson(in_order(records, lesson), lesson, in_full=False)
        print()
    print_total(records, "lessons/")
    print_next_step(records)
    return 0


def check(options):
    wanted = [lesson_named(options.lesson)] if options.lesson else lessons()
    check_node(options.node)
    rig = options.rig or ("sim" if options.node else best_rig())
    if rig == "gpu" and options.node:
        raise Complaint("--node chooses a simulated node, so it does not go with --rig gpu")
    folder = ""
    if options.submission:
        path = Path(options.submission).resolve()
        if not path.is_dir():
            raise Complaint(f"{options.submission} is not a folder")
        if path != REPOSITORY / "lessons":
            folder = str(path)
    configure(folder)
    compile_targets(*("cases-" + lesson for lesson in wanted))
    records = grade(wanted, rig, options.node)
    for submission in sorted({record["submission"] for record in records}):
        theirs = [record for record in records if record["submission"] == submission]
        for lesson in wanted:
            print_lesson(in_order(theirs, lesson), lesson, in_full=True)
            print()
        print_total(theirs, submission)
    return 0 if all_passed(records) else 1


def run(options):
    lesson = lesson_named(options.lesson)
    check_node(options.node)
    configure()
    compile_targets("run-" + lesson)
    variables = dict(os.environ)
    rig = options.rig or ("sim" if options.node else best_rig())
    if rig == "sim":
        node = options.node or os.environ.get("SIM_NODE") or DEFAULT_NODE
        former = os.environ.get("LD_LIBRARY_PATH")
        variables["LD_LIBRARY_PATH"] = f"{SIM_LIBRARY_DIR}:{former}" if former else str(SIM_LIBRARY_DIR)
        variables["SIM_NODE"] = node
        print(f"on the simulated node {node}\n", flush=True)
    return subprocess.run([str(BUILD / "lessons" / lesson)], env=variables).returncode


def diff(options):
    file = source_of(lesson_named(options.lesson))
    return subprocess.run(["diff", "-u", f"lessons/{file}", f"solutions/{file}"], cwd=REPOSITORY).returncode


def test(options):
    configure()
    meson("setup", "--reconfigure", str(BUILD))
    process = subprocess.Popen(
        ["meson", "test", "-C", str(BUILD), "--suite", "project", "--print-errorlogs"],
        cwd=REPOSITORY, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )
    counts = {}
    for line in process.stdout:
        print(line, end="", flush=True)
        if found := re.match(r"(Ok|Fail|Timeout|Unexpected Pass|Skipped): *(\d+)", line):
            counts[found[1]] = int(found[2])
    failed = sum(counts.get(key, 0) for key in ("Fail", "Timeout", "Unexpected Pass"))
    code = process.wait()
    print(f"\n{counts.get('Ok', 0)} passed, {failed} failed, {counts.get('Skipped', 0)} skipped")
    return 1 if code != 0 or failed or not counts.get("Ok") else 0


def command_line():
    parser = argparse.ArgumentParser(prog="./course", description="Six lessons on multi-GPU memory in CUDA C++.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    commands.add_parser("start", help="install what is missing, build, and show where you are").set_defaults(function=start)

    checking = commands.add_parser("check", help="check one lesson, or all; exit code 0 when every case passed")
    checking.add_argument("lesson", nargs="?", metavar="N", help="lesson, by number or name")
    checking.add_argument("--submission", metavar="DIR", help="folder with N-name/name.cu, or a folder of such (default: lessons/)")
    checking.set_defaults(function=check)

    running = commands.add_parser("run", help="run a lesson's program")
    running.add_argument("lesson", metavar="N")
    running.set_defaults(function=run)

    for command in (checking, running):
        command.add_argument("--rig", choices=["gpu", "sim"], help="real GPUs or the simulated node (default: real ones if there are)")
        command.add_argument("--node", metavar="NAME", help="simulated node, a name from sim/nodes")

    comparing = commands.add_parser("diff", help="compare a lesson with its solution")
    comparing.add_argument("lesson", metavar="N")
    comparing.set_defaults(function=diff)

    commands.add_parser("test", help="the project's own tests").set_defaults(function=test)
    return parser


def main():
    options = command_line().parse_args()
    try:
        return options.function(options)
    except Complaint as complaint:
        print(f"./course: {complaint}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
