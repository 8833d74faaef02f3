"""Runs cases by `meson test`, and remembers how far the student is."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from builder import show
from project import BUILD, REPOSITORY, lessons
from scan_cases import scan
from table import points

PROGRESS = BUILD / "course-progress.json"


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
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=variables,
                                       cwd=REPOSITORY, start_new_session=True)
            try:
                show_progress(process, path)
            finally:
                stop(process)
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


def stop(process):
    """Ends it and all that it has started, if it has not ended yet: the runners end their cases."""
    if process.poll() is not None:
        return
    try:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=5)
    except ProcessLookupError:
        pass
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def in_order(records, lesson):
    """The records of a lesson in the order of its source."""
    names = [case.name for case in scan(REPOSITORY / "checks" / f"{lesson}.cpp")]
    of_lesson = [record for record in records if record["lesson"] == lesson]
    return sorted(of_lesson, key=lambda record: names.index(record["case"]))


def read_progress():
    """{lesson: {reached, points, unjudged, rig}} of what was checked last."""
    try:
        return json.loads(PROGRESS.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def remember(records):
    """Keeps how far the student's own lessons are."""
    progress = read_progress()
    for lesson in lessons():
        of_lesson = [record for record in records if record["lesson"] == lesson]
        if not of_lesson:
            continue
        reached, all_points, unjudged = points(of_lesson)
        progress[lesson] = {"reached": reached, "points": all_points, "unjudged": unjudged,
                            "rig": of_lesson[0]["rig"], "node": of_lesson[0]["node"]}
    PROGRESS.write_text(json.dumps(progress, indent=1), encoding="utf-8")
