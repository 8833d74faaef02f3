"""What the course consists of, and what this machine has."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

SUPPORT = Path(__file__).resolve().parent
sys.path.insert(0, str(SUPPORT))
from run_case import DEFAULT_NODE  # noqa: E402

REPOSITORY = SUPPORT.parents[1]
BUILD = REPOSITORY / "build"
SIM_LIBRARY_DIR = BUILD / "sim" / "lib"
NODES = REPOSITORY / "sim" / "nodes"


class Complaint(Exception):
    """What is wrong with what the caller asked for, in one sentence."""



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


def choose_rig(rig, node):
    """The rig that was asked for; without a word, real GPUs if there are any."""
    check_node(node)
    if rig == "gpu" and node:
        raise Complaint("--node chooses a simulated node, so it does not go with --rig gpu")
    return rig or ("sim" if node else best_rig())


def node_of(node):
    """The simulated node that is meant."""
    return node or os.environ.get("SIM_NODE") or DEFAULT_NODE


def environment_of(rig, node):
    """The environment in which a program finds the runtime of a rig."""
    variables = dict(os.environ)
    if rig == "sim":
        former = variables.get("LD_LIBRARY_PATH")
        variables["LD_LIBRARY_PATH"] = f"{SIM_LIBRARY_DIR}:{former}" if former else str(SIM_LIBRARY_DIR)
        variables["SIM_NODE"] = node_of(node)
    return variables
