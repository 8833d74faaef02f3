"""The commands of whoever takes the course."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import recording
import timeline
from builder import compile_targets, configure, meson
from checking import grade, in_order, read_progress, remember
from project import (BUILD, REPOSITORY, Complaint, best_rig, choose_rig, environment_of, lesson_named, lessons, node_of,
                     source_of)
from table import all_passed, print_lesson, print_next_step, print_total, row, title

HINTS = BUILD / "course-hints.json"
PRISTINE = REPOSITORY / ".starters"  # in editions without a history: see instructor.export()
COURSE_ITSELF = ["course", "checks", "common", "lessons/README.md"]  # what no student has a reason to change


def done(records):
    return {lesson: all_passed([record for record in records if record["lesson"] == lesson]) for lesson in lessons()}


def status(options):
    """Where one is: `./course` alone."""
    progress = read_progress()
    if not progress:
        print("Nothing has been checked yet. Start with: ./course start")
        return 0
    for lesson in lessons():
        print(row(f"  {state_of(progress.get(lesson))}  {title(lesson)}", points_of(progress.get(lesson))))
    print_next_step({lesson: state_of(progress.get(lesson)) == "done" for lesson in lessons()})
    return 0


def state_of(progress):
    if progress is None:
        return "    "
    return "done" if progress["reached"] == progress["points"] else "open"


def points_of(progress):
    if progress is None:
        return "not checked yet"
    text = f"{progress['reached']} of {progress['points']} points"
    return text + (f", {progress['unjudged']} not judged" if progress["unjudged"] else "")


def start(options):
    configure()
    print("building", flush=True)
    compile_targets(*(kind + lesson for lesson in lessons() for kind in ("run-", "cases-")))
    records = grade(lessons(), best_rig(), None)
    remember(records)
    for lesson in lessons():
        print_lesson(in_order(records, lesson), lesson, in_full=False)
        print()
    print_total(records, "lessons/")
    print_next_step(done(records))
    return 0


def submission_folder(path):
    """What Meson's option gets for a folder; the empty string for the student's own lessons."""
    if not path:
        return ""
    folder = Path(path).resolve()
    if not folder.is_dir():
        raise Complaint(f"{path} is not a folder")
    return "" if folder == REPOSITORY / "lessons" else str(folder)


def check(options):
    wanted = [lesson_named(options.lesson)] if options.lesson else lessons()
    rig = choose_rig(options.rig, options.node)
    folder = submission_folder(options.submission)
    configure(folder)
    return check_now(wanted, rig, options.node, is_own=folder == "")


def check_now(wanted, rig, node, is_own):
    compile_targets(*("cases-" + lesson for lesson in wanted))
    records = grade(wanted, rig, node)
    if is_own:
        remember(records)
    for submission in sorted({record["submission"] for record in records}):
        theirs = [record for record in records if record["submission"] == submission]
        for lesson in wanted:
            print_lesson(in_order(theirs, lesson), lesson, in_full=True)
            print()
        print_total(theirs, submission)
    return 0 if all_passed(records) else 1


def watch(options):
    """Checks a lesson again each time that its file is saved, until Ctrl-C."""
    lesson = lesson_named(options.lesson)
    rig = choose_rig(options.rig, options.node)
    configure()
    path = REPOSITORY / "lessons" / source_of(lesson)
    checked = None
    while True:
        saved = path.stat().st_mtime_ns if path.is_file() else None
        if saved == checked:
            time.sleep(0.2)
            continue
        checked = saved
        started = time.monotonic()
        check_now([lesson], rig, options.node, is_own=True)
        print(f"\n{time.strftime('%H:%M:%S')}, after {time.monotonic() - started:.0f} s. "
              f"Waiting for lessons/{source_of(lesson)} to be saved; Ctrl-C ends this.\n", flush=True)


def run(options):
    lesson = lesson_named(options.lesson)
    rig = choose_rig(options.rig, options.node)
    configure()
    compile_targets("run-" + lesson)
    place = f"the simulated node {node_of(options.node)}" if rig == "sim" else "real GPUs"
    program = [str(BUILD / "lessons" / lesson)]
    if rig == "sim":
        print(f"on {place}\n", flush=True)
    if not (options.timeline or options.svg or options.part):
        return subprocess.run(program, env=environment_of(rig, options.node)).returncode
    trace = BUILD / f"timeline-{lesson}.json"
    code = recording.run(program, rig, options.node, trace)
    show_timeline(trace, options, f"lesson {lesson.split('-')[0]}, on {place}")
    return code


def show_timeline(trace, options, name):
    print()
    try:
        timeline.show(trace, options.part, options.svg, name)
    except timeline.TraceError as error:
        raise Complaint(str(error)) from error
    print(f"\nIn full, for ui.perfetto.dev: {trace.relative_to(REPOSITORY)}")


def hints_of(lesson):
    """(title, text) of each step in hints.md."""
    text = (REPOSITORY / "lessons" / lesson / "hints.md").read_text(encoding="utf-8")
    return [(found[1], found[2].strip()) for found in
            re.finditer(r"<details>\s*<summary>(.*?)</summary>(.*?)</details>", text, re.DOTALL)]


def hint(options):
    """The next hint each time."""
    lesson = lesson_named(options.lesson)
    hints = hints_of(lesson)
    try:
        given = json.loads(HINTS.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        given = {}
    number = 0 if options.again else min(given.get(lesson, 0), len(hints) - 1)
    heading, text = hints[number]
    print(f"{title(lesson)}, hint {heading}\n\n{text}\n")
    if number + 1 < len(hints):
        print(f"Try again first; the next hint is ./course hint {options.lesson}")
    else:
        print(f"That was the last one. From the first: ./course hint {options.lesson} --again")
    given[lesson] = number + 1
    HINTS.parent.mkdir(exist_ok=True)
    HINTS.write_text(json.dumps(given, indent=1), encoding="utf-8")
    return 0


def diff(options):
    lesson = lesson_named(options.lesson)
    file = source_of(lesson)
    if not (REPOSITORY / "solutions" / file).is_file():
        raise Complaint("this edition of the course has no solutions")
    if not options.yes and sys.stdin.isatty():
        if input(f"This shows the solution of lesson {lesson.split('-')[0]}. Go on? [y/N] ").strip().lower() not in ("y", "yes"):
            return 1
    return subprocess.run(["diff", "-u", f"lessons/{file}", f"solutions/{file}"], cwd=REPOSITORY).returncode


def starter_text(file):
    """The starter as it came with the course."""
    kept = PRISTINE / file
    if kept.is_file():
        return kept.read_bytes()
    # The newest commit that changed the course itself has no student's work in it, whatever was committed since.
    log = subprocess.run(["git", "log", "-1", "--format=%H", "--", *COURSE_ITSELF], cwd=REPOSITORY, capture_output=True, text=True)
    answer = subprocess.run(["git", "show", f"{log.stdout.strip()}:lessons/{file}"], cwd=REPOSITORY, capture_output=True)
    if log.stdout.strip() and answer.returncode == 0:
        return answer.stdout
    raise Complaint(f"neither .starters/ nor git has the first lessons/{file}: take it from a fresh copy of the course")


def reset(options):
    """Restores the starter, and keeps what was there."""
    file = source_of(lesson_named(options.lesson))
    path = REPOSITORY / "lessons" / file
    text = starter_text(file)
    if path.is_file() and path.read_bytes() == text:
        print(f"lessons/{file} is the starter already")
        return 0
    if path.is_file():
        number = 1
        while (kept := path.with_suffix(f".cu.{number}")).exists():
            number += 1
        path.rename(kept)
        print(f"kept your file as {kept.relative_to(REPOSITORY)}")
    path.write_bytes(text)
    print(f"lessons/{file} is the starter again")
    return 0


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
