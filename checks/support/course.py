#!/usr/bin/env python3
"""The commands of ./course, once everything is installed. Each is a `meson` command or two."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import instructor  # noqa: E402
import student  # noqa: E402
import timeline  # noqa: E402
from project import REPOSITORY, Complaint  # noqa: E402

DOCTOR = REPOSITORY / "doctor"


def add(commands, name, function, help_text, example):
    parser = commands.add_parser(name, help=help_text, description=help_text[0].upper() + help_text[1:] + ".",
                                 epilog=f"example: {example}")
    parser.set_defaults(function=function)
    return parser


def add_place(parser):
    parser.add_argument("--rig", choices=["gpu", "sim"], help="real GPUs or the simulated node (default: real ones if there are)")
    parser.add_argument("--node", metavar="NAME", help="simulated node, a name from sim/nodes")


def add_doctor(commands):
    sys.path.insert(0, str(DOCTOR))
    import command

    doctor = add(commands, "doctor", command.doctor, "measure every data path of this machine and judge it, or judge a program by its timeline",
                 "./course doctor --html doctor.html, or ./course doctor --program ./solver input.txt")
    doctor.add_argument("--json", metavar="FILE", help="all figures and verdicts")
    doctor.add_argument("--html", metavar="FILE", help="a page with the figures between GPUs as heat maps")
    add_place(doctor)
    doctor.add_argument("--program", metavar="COMMAND", nargs=argparse.REMAINDER,
                        help="judge what this command does instead; the last option, all that follows belongs to the command")


def command_line():
    parser = argparse.ArgumentParser(prog="./course", description="Six lessons on multi-GPU memory in CUDA C++. "
                                     "Without a command: where you are, and what comes next.")
    parser.set_defaults(function=student.status)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    add(commands, "start", student.start, "install what is missing, build, and show where you are", "./course start")

    check = add(commands, "check", student.check, "check one lesson, or all; exit code 0 when every case passed", "./course check 3")
    check.add_argument("lesson", nargs="?", metavar="N", help="lesson, by number or name")
    check.add_argument("--submission", metavar="DIR", help="folder with N-name/name.cu, or a folder of such (default: lessons/)")
    add_place(check)

    watch = add(commands, "watch", student.watch, "check a lesson again each time that its file is saved", "./course watch 3")
    watch.add_argument("lesson", metavar="N")
    add_place(watch)

    run = add(commands, "run", student.run, "run a lesson's program", "./course run 3 --node pcie2")
    run.add_argument("lesson", metavar="N")
    run.add_argument("--timeline", action="store_true", help="draw what overlapped and who waited, at the end of the run")
    run.add_argument("--part", metavar="BEGIN-END", type=timeline.stretch, help="this part of the timeline, in ms")
    run.add_argument("--svg", metavar="FILE", help="the timeline as a picture")
    add_place(run)

    hint = add(commands, "hint", student.hint, "the next hint, each time", "./course hint 3")
    hint.add_argument("lesson", metavar="N")
    hint.add_argument("--again", action="store_true", help="from the first")

    diff = add(commands, "diff", student.diff, "compare a lesson with its solution, after asking", "./course diff 3")
    diff.add_argument("lesson", metavar="N")
    diff.add_argument("--yes", action="store_true", help="don't ask")

    reset = add(commands, "reset", student.reset, "restore a lesson's starter, and keep the old file beside it", "./course reset 3")
    reset.add_argument("lesson", metavar="N")

    if DOCTOR.is_dir():
        add_doctor(commands)

    grade = add(commands, "grade", instructor.grade, "grade a class: a folder of folders, zip and tar files",
                "./course grade class/ --rig gpu")
    grade.add_argument("folder", metavar="DIR")
    grade.add_argument("lesson", nargs="?", metavar="N", help="only this lesson")
    grade.add_argument("--out", metavar="DIR", help="folder for the results (default: DIR-results)")
    add_place(grade)

    export = add(commands, "export", instructor.export, "write the students' edition, without solutions", "./course export ../course-for-students")
    export.add_argument("folder", metavar="DIR")

    add(commands, "test", student.test, "the project's own tests", "./course test")
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
