#!/usr/bin/env python3
"""Compiles one .cu file of a submission, or links what came of that into a program.

A file that is missing, does not compile or does not link is that submission's matter and nobody
else's: this still succeeds, and instead of the object or program it writes a shell script that says
what the compiler said. `not_built()` recognises it.
"""

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from source_rules import about_file, about_inputs, about_object  # noqa: E402

MARK = "# course: this program could not be built"
LIMIT = 20000  # characters of a compiler's message that are kept
SECONDS = 300  # for a compiler; nvcc needs a few for a lesson, and more on a busy machine
# KiB of memory, blocks of 512 bytes of a file: what a lesson needs many times over.
LIMITS = "ulimit -c 0; ulimit -d 8388608; ulimit -f 524288"


def not_built(program):
    """The reason why `program` or object could not be built; None when it is a real one."""
    try:
        with open(program, "rb") as file:
            start = file.read(4096 + 4 * LIMIT)
    except OSError as error:
        return str(error)
    lines = start.decode("utf-8", "replace").split("\n")
    if len(lines) < 2 or lines[1] != MARK:
        return None
    return "\n".join(line[2:] for line in lines[2:] if line.startswith("# "))


def write_failure(program, reason):
    reason = reason.strip()[:LIMIT]
    text = ["#!/bin/sh", MARK]
    text += ["# " + line for line in reason.splitlines()]
    text += [f"printf '%s\\n' {shlex.quote(reason)} >&2", "exit 1", ""]
    Path(program).unlink(missing_ok=True)
    Path(program).write_text("\n".join(text), encoding="utf-8")
    os.chmod(program, 0o755)


def write_depfile(path, target, inputs):
    escaped = [name.replace("\\", "\\\\").replace(" ", "\\ ").replace("#", "\\#") for name in inputs]
    Path(path).write_text(f"{target}: " + " \\\n ".join(escaped) + "\n", encoding="utf-8")


def read_depfile(path):
    """The inputs that a compiler wrote to `path`; none when it did not get that far."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    _, _, inputs = text.replace("\\\n", " ").partition(": ")
    return [re.sub(r"\\(.)", r"\1", word) for word in re.findall(r"(?:\\.|[^\s\\])+", inputs)]


def run(command):
    """What a command printed, or None when it succeeded."""
    limited = ["sh", "-c", f'{LIMITS}; exec "$@"', "sh", *command]
    process = subprocess.Popen(limited, text=True, errors="replace", stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        printed, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return f"{command[0]} did not end within {SECONDS} s"
    if process.returncode == 0:
        return None
    return printed.strip() or f"{command[0]} ended with code {process.returncode}"


def compile_source(source, object_file, depfile, command):
    """Runs `command` for the source, and writes the object and what it was made of."""
    Path(object_file).unlink(missing_ok=True)
    Path(depfile).unlink(missing_ok=True)
    error = about_file(source)
    if error is None:
        error = run(command + ["-MD", "-MF", depfile, "-c", source, "-o", object_file])
    inputs = [name for name in read_depfile(depfile) if name != source]
    write_depfile(depfile, object_file, [source] + [name for name in inputs if os.path.isfile(name)])
    # Goes before what the compiler says, which may quote that file.
    error = about_inputs(source, inputs, command) or error
    if error is not None:
        write_failure(object_file, error)


def link(source, object_file, program, command):
    """Links what compile_source() made of the source, in the place of @OBJECT@."""
    Path(program).unlink(missing_ok=True)
    error = not_built(object_file)
    if error is None:
        error = about_object(source, object_file, [word for word in command if word.endswith(".a")])
    if error is None:
        error = run([object_file if word == "@OBJECT@" else word for word in command] + ["-o", program])
        if error is not None:
            error = f"{source} compiles, but does not link: is everything there that the header asks for?\n{error}"
    if error is not None:
        write_failure(program, error)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", required=True, choices=["compile", "link"])
    parser.add_argument("--source", required=True)
    parser.add_argument("--object", required=True)
    parser.add_argument("--depfile", help="to be written by compile")
    parser.add_argument("--program", help="to be written by link")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- compiler ... or -- linker ... @OBJECT@ ...")
    options = parser.parse_args()
    command = options.command[1:]
    if options.step == "compile":
        compile_source(options.source, options.object, options.depfile, command)
    else:
        link(options.source, options.object, options.program, command)
    return 0


if __name__ == "__main__":
    sys.exit(main())
