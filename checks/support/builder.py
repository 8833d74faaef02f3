"""Configures and builds by `meson`, and shows how far it is where a person watches."""

import json
import re
import shutil
import subprocess
import sys

from project import BUILD, REPOSITORY, Complaint

BUILD_NOISE = ("INFO: ", "ninja: ")



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
