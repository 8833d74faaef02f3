"""The commands of whoever gives the course: grading a class, and the students' edition."""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from builder import compile_targets, configure, meson, show
from class_folder import collect
from gradebook import Grade, write_all
from project import BUILD, REPOSITORY, SIM_LIBRARY_DIR, Complaint, choose_rig, lesson_named, lessons, source_of
from run_case import DEFAULT_NODE, run_case
from sandbox import why_not
from scan_cases import scan
from similarity import groups
from student import PRISTINE

WEIGHTS = REPOSITORY / "checks" / "weights.json"
AT_ONCE = 20  # files that are built before they are graded
LEFT_OUT = ["solutions", "slides", "tests", ".ci"]  # of the students' edition


def read_weights():
    weights = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    missing = [lesson for lesson in lessons() if lesson not in weights]
    if missing:
        raise Complaint(f"{WEIGHTS.relative_to(REPOSITORY)} has no weight for {', '.join(missing)}")
    return weights


def digest(*paths):
    mark = hashlib.sha256()
    for path in paths:
        mark.update(path.read_bytes() if path.is_file() else b"missing")
    return mark.hexdigest()


def state_of_checks(lesson):
    """Changes whenever a lesson's verdicts might."""
    sources = [REPOSITORY / "checks" / f"{lesson}.cpp", *sorted((REPOSITORY / "checks" / "support").glob("*")),
               *sorted((REPOSITORY / "common").glob("*")), *sorted((REPOSITORY / "sim" / "nodes").glob("*"))]
    return digest(*(path for path in sources if path.is_file()))


class Results:
    """What was graded before, kept on disk after each submission's lesson."""

    def __init__(self, folder, rig, node):
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.conditions = f"{rig} {node}"
        self.checks = {lesson: state_of_checks(lesson) for lesson in lessons()}

    def key(self, submission, lesson):
        return f"{self.conditions} {self.checks[lesson]} {digest(submission.folder / source_of(lesson))}"

    def path(self, submission, lesson):
        return self.folder / f"{submission.name}.{lesson}.json"

    def find(self, submission, lesson):
        """The records of an unchanged submission; None when it has to be graded."""
        try:
            kept = json.loads(self.path(submission, lesson).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return kept["records"] if kept["key"] == self.key(submission, lesson) else None

    def keep(self, submission, lesson, records):
        path = self.path(submission, lesson)
        unfinished = path.with_suffix(".part")
        unfinished.write_text(json.dumps({"key": self.key(submission, lesson), "records": records}), encoding="utf-8")
        unfinished.replace(path)


def grade_lesson(submission, lesson, rig, node, library_dir, pool):
    program = BUILD / "checks" / f"{submission.name}.{lesson}"
    about = {"submission": submission.name, "lesson": lesson}
    cases = scan(REPOSITORY / "checks" / f"{lesson}.cpp")
    return list(pool.map(lambda case: run_case(str(program), case.name, rig, str(library_dir), node, 60.0,
                                               dict(about, points=case.points)), cases))


def real_library_dir():
    finder = REPOSITORY / "checks" / "support" / "find_cuda.py"
    answer = subprocess.run([sys.executable, str(finder)], capture_output=True, text=True)
    if answer.returncode != 0:
        raise Complaint(answer.stderr.strip())
    return answer.stdout.split("\n")[2]


def where_text(rig, node):
    place = f"the simulated node {node or DEFAULT_NODE}" if rig == "sim" else "real GPUs"
    return f"{place}, on {platform.node()}, {time.strftime('%Y-%m-%d %H:%M')}"


def tell_of_sandbox(rig):
    """Says once when submissions are not shut off from the machine."""
    if os.environ.get("COURSE_SANDBOX") == "off":
        reason = "COURSE_SANDBOX=off"
    elif rig == "gpu" and os.environ.get("COURSE_SANDBOX") != "on":
        reason = "on real GPUs only with COURSE_SANDBOX=on"
    else:
        reason = why_not()
    if reason is not None:
        print(f"submissions run with your rights, and may use files and network: {reason}", flush=True)


def equal_files(work, results):
    """Lists of (submission, lesson) whose files are the same, byte for byte: untouched starters above all."""
    groups_of_equals = {}
    for one, lesson in work:
        groups_of_equals.setdefault((lesson, results.key(one, lesson)), []).append((one, lesson))
    return list(groups_of_equals.values())


def renamed(records, submission):
    return [dict(record, submission=submission.name) for record in records]


def grade_class(submissions, wanted, results, rig, node):
    """Builds and grades what has not been graded, a handful at a time, and equal files once."""
    work = [(one, lesson) for one in submissions for lesson in wanted if results.find(one, lesson) is None]
    open_work = equal_files(work, results)
    different = f", {len(open_work)} of them different" if len(open_work) < len(work) else ""
    print(f"{len(submissions)} submissions, {len(work)} lessons to grade{different}", flush=True)
    tell_of_sandbox(rig)
    library_dir = SIM_LIBRARY_DIR if rig == "sim" else real_library_dir()
    needed = ["cudart"] if rig == "sim" else []
    done = 0
    with ThreadPoolExecutor(1 if rig == "gpu" else os.cpu_count()) as pool:
        for first in range(0, len(open_work), AT_ONCE):
            part = open_work[first:first + AT_ONCE]
            compile_targets(*(f"{one.name}.{lesson}" for (one, lesson), *_ in part), *needed)
            for equals in part:
                one, lesson = equals[0]
                show(f"graded {done} of {len(work)}: {one.name}, lesson {lesson.split('-')[0]}")
                records = grade_lesson(one, lesson, rig, node or DEFAULT_NODE, library_dir, pool)
                for other, _ in equals:
                    results.keep(other, lesson, renamed(records, other))
                done += len(equals)
            show("")
            print(f"graded {done} of {len(work)}", flush=True)


def alike(submissions, wanted):
    """Sentences about submissions that are the same but for names and layout."""
    for lesson in wanted:
        texts = {one.name: (one.folder / source_of(lesson)).read_text(encoding="utf-8", errors="replace")
                 for one in submissions if (one.folder / source_of(lesson)).is_file()}
        given = [REPOSITORY / folder / source_of(lesson) for folder in ("lessons", "solutions")]
        given.append(PRISTINE / source_of(lesson))
        common = [path.read_text(encoding="utf-8") for path in given if path.is_file()]
        for names in groups(texts, common):
            yield f"lesson {lesson.split('-')[0]}: {', '.join(names)} are the same but for names and layout"


def grade(options):
    folder = Path(options.folder).resolve()
    if not folder.is_dir():
        raise Complaint(f"{options.folder} is not a folder")
    rig = choose_rig(options.rig, options.node)
    wanted = [lesson_named(options.lesson)] if options.lesson else lessons()
    weights = read_weights()
    out = Path(options.out).resolve() if options.out else folder.with_name(folder.name + "-results")
    submissions = collect(folder, out / "work" / "class")
    if not submissions:
        raise Complaint(f"{options.folder} holds no submission: no folder, zip or tar file")
    configure(str(out / "work" / "class"))
    meson("setup", "--reconfigure", str(BUILD))  # so that late additions have targets
    results = Results(out / "work" / "graded", rig, options.node or DEFAULT_NODE)
    grade_class(submissions, wanted, results, rig, options.node)

    where = where_text(rig, options.node)
    grades = [Grade(one.name, {lesson: results.find(one, lesson) for lesson in wanted}, one.remarks) for one in submissions]
    write_all(out, grades, weights, where)
    remarks = list(alike(submissions, wanted))
    (out / "alike.txt").write_text("".join(f"{remark}\n" for remark in remarks), encoding="utf-8")
    print_grades(grades, weights, remarks, out, where)
    return 0


def print_grades(grades, weights, remarks, out, where):
    print(f"\nof 100  {'  '.join(lesson.split('-')[0] for lesson in grades[0].records):>20}  submission")
    for one in grades:
        shares = "".join(f"{one.points(lesson)[0]:>3}" for lesson in one.records)
        print(f"{one.total(weights):6.1f}  {shares:>20}  {one.name}" + (f" ({len(one.remarks)} remarks)" if one.remarks else ""))
    for remark in remarks:
        print(remark)
    print(f"\nGraded on {where}.\nIn {out}: gradebook.csv, reports/, junit.xml, gradescope/, prairielearn/, github-classroom/")


def export(options):
    """The students' edition: the course without solutions, answers and the tests that need them."""
    target = Path(options.folder).resolve()
    if target.exists() and any(target.iterdir()):
        raise Complaint(f"{options.folder} is not empty")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True)
    if listed.returncode != 0:
        raise Complaint("only a copy of the course that git knows can be exported")
    for name in filter(None, listed.stdout.split("\0")):
        if any(name == left or name.startswith(left + "/") for left in LEFT_OUT) or not (REPOSITORY / name).is_file():
            continue
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, path)
    for lesson in lessons():
        kept = target / PRISTINE.name / source_of(lesson)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / "lessons" / source_of(lesson), kept)
    print(f"the students' edition is in {target}: without solutions/, slides/ and tests/")
    return 0
