#!/usr/bin/env python3
"""Runs one case of a check on one rig and says how it ended.

The verdict comes from the completion record of the check's own main (see main.cpp) and from nothing
else: neither from what the submission prints nor from an exit code of its own. Exit code: 0 pass,
1 fail, 77 skip, 99 inconclusive or error.
"""

import argparse
import fcntl
import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from build_submission import not_built  # noqa: E402
from sandbox import STARTED, NotStarted, Sandbox, wanted  # noqa: E402

EXIT_CODES = {"pass": 0, "fail": 1, "skip": 77}
TRIES = 3
DEFAULT_NODE = "h200x8"
KEPT_OUTPUT = 100_000  # bytes of what a submission printed
LARGEST_OUTPUT = 16 << 20  # bytes; a submission that prints more is stopped
EXIT_RECORD_LOST = 98  # see main.cpp
SHOWN_LINES = 12  # of what a submission printed
SHOWN_REASONS = 3
FIGURE_MARK = "figure: "  # see report_state.hpp
WIDTH = 80


def environment(library_dir, rig, node):
    variables = dict(os.environ, MALLOC_PERTURB_="0")
    library_dir = os.path.abspath(library_dir)  # the case starts in another folder
    former = variables.get("LD_LIBRARY_PATH")
    variables["LD_LIBRARY_PATH"] = f"{library_dir}:{former}" if former else str(library_dir)
    if rig == "sim":
        variables["SIM_NODE"] = node
    # Large pages: on the simulated node, page faults take half of the time.
    variables.setdefault("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
    # Else the first launch of a kernel loads it, and waits for what is in front: that hides races.
    variables["CUDA_MODULE_LOADING"] = "EAGER"
    return variables


def read_record(channel, secret):
    """The record in what the check wrote; None when there is none with the right secret."""
    channel.setblocking(False)
    data = b""
    try:
        while chunk := channel.recv(65536):
            data += chunk
    except (BlockingIOError, ConnectionError):
        pass
    for line in data.decode("utf-8", "replace").splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and record.get("secret") == secret:
            return record
    return None


class Output:
    """What a case prints: its end is kept, and how much it was."""

    def __init__(self, pipe):
        self.pipe, self.start, self.kept, self.bytes = pipe, b"", b"", 0
        os.set_blocking(pipe, False)

    def read(self):
        """Reads what is there. False at the end of the output."""
        try:
            chunk = os.read(self.pipe, 1 << 20)
        except BlockingIOError:
            return True
        self.bytes += len(chunk)
        self.start = self.start or chunk[:len(STARTED)]
        self.kept = (self.kept + chunk)[-KEPT_OUTPUT:]
        return bool(chunk)

    def read_rest(self):
        """For when the case has ended; what another process holds open is not waited for."""
        before = -1
        while before != self.bytes and self.bytes <= LARGEST_OUTPUT:
            before = self.bytes
            self.read()

    def started(self):
        return self.start == STARTED.encode()

    def text(self):
        return self.kept.decode("utf-8", "replace").removeprefix(STARTED)


def wait_for_end(process, output, seconds):
    """Reads its output until it ends. Why it was not waited for any longer; None when it ended by itself."""
    end = time.monotonic() + seconds
    poll = select.poll()
    ending = os.pidfd_open(process.pid)
    try:
        poll.register(ending, select.POLLIN)
        poll.register(output.pipe, select.POLLIN)
        while process.poll() is None:
            left = end - time.monotonic()
            if left <= 0:
                return f"did not end within {seconds:g} s: something waits for what never comes, or never ends"
            ready = [descriptor for descriptor, _ in poll.poll(left * 1000)]
            if output.pipe in ready and not output.read():
                poll.unregister(output.pipe)
            if output.bytes > LARGEST_OUTPUT:
                return f"printed more than {LARGEST_OUTPUT >> 20} MiB"
    finally:
        os.close(ending)
    return None


def end_group(process):
    """Ends the case and whatever it has started in its process group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def why_no_record(code, stopped):
    if stopped is not None:
        return stopped
    if code < 0:
        number = -code
        return f"crashed: signal {number} ({signal.strsignal(number) or 'unknown'})"
    if code == EXIT_RECORD_LOST:
        return "closed the file descriptor by which the check reports: close only what you have opened"
    return f"ended the program (exit code {code}) before the check was complete"


def run_once(sandbox, name, variables, seconds):
    """One process. Returns (record without secret, what it printed)."""
    ours, theirs = socket.socketpair()
    secret = secrets.token_hex(16)
    ours.sendall(secret.encode())
    # Shut down, so that reading the secret ends there; the other direction stays open.
    ours.shutdown(socket.SHUT_WR)
    variables = dict(variables, CHECK_RECORD_FD=str(theirs.fileno()), **sandbox.variables())
    with ours, theirs:
        process = subprocess.Popen(
            sandbox.command(["--case", name]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=variables,
            cwd=sandbox.folder(),
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        with process.stdout:
            output = Output(process.stdout.fileno())
            try:
                stopped = wait_for_end(process, output, seconds)
            finally:
                end_group(process)
            output.read_rest()
        if sandbox.closed and not output.started():
            raise NotStarted
        record = read_record(ours, secret)
    code = sandbox.exit_code(process.returncode)
    if record is not None and record["verdict"] == "pass" and (stopped is not None or code != 0):
        return {"verdict": "fail", "reason": "at its end, after the check, it " + why_no_record(code, stopped)}, output.text()
    if record is None:
        return {"verdict": "fail", "reason": why_no_record(code, stopped)}, output.text()
    del record["secret"]
    return record, output.text()


def run_contained(program, library_dir, rig, name, variables, seconds):
    """As run_once(), in namespaces of its own where the system can make some."""
    if wanted(rig):
        try:
            with Sandbox(program, library_dir, closed=True) as sandbox:
                return run_once(sandbox, name, variables, seconds)
        except NotStarted:
            pass  # before any code of the submission: whoever grades is told by sandbox.why_not()
    with Sandbox(program, library_dir, closed=False) as sandbox:
        return run_once(sandbox, name, variables, seconds)


def run_case(program, name, rig, library_dir, node=DEFAULT_NODE, seconds=60.0, more=None):
    """Runs a case, asking again while it is inconclusive. Returns the record: a dictionary."""
    record = dict(more or {}, case=name, rig=rig, node=node if rig == "sim" else None)
    started = time.monotonic()
    reason = not_built(program)
    if reason is not None:
        result, printed = {"verdict": "fail", "reason": "could not be built", "compiler": reason}, ""
    else:
        variables = environment(library_dir, rig, node)
        for _ in range(TRIES):
            result, printed = run_contained(program, library_dir, rig, name, variables, seconds)
            if result["verdict"] != "inconclusive":
                break
    record.update(result, printed=printed, seconds=round(time.monotonic() - started, 2))
    return record


def exit_code(record):
    return EXIT_CODES.get(record["verdict"], 99)


def figure_line(figure):
    """`upload 6.2 GB/s of 54.9 (11 %), needs 85 %`."""

    def short(value):
        return "?" if value is None else f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"

    value, reference = figure["value"], figure["reference"]
    share = f"{100 * value / reference:.0f} %" if value is not None and reference else "?"
    word = "needs" if figure["more_is_better"] else "at most"
    return f"{figure['name']} {short(value)} {figure['unit']} of {short(reference)} ({share}), {word} {100 * figure['limit']:.0f} %"


def reasons(record):
    """What went wrong beside the figures, a sentence each."""
    found = [record["reason"]] if record.get("reason") else []
    if record.get("compiler"):
        found.append(record["compiler"])
    found += [figure["note"] for figure in record.get("figures", []) if figure["note"]]
    for failure in record.get("failures", []):
        text = failure["text"]
        if text not in found and not text.startswith(FIGURE_MARK):
            found.append(text)
    return found


def last_lines(text, count):
    lines = text.rstrip().splitlines()
    dropped = len(lines) - count
    return ([f"... {dropped} lines before"] if dropped > 0 else []) + lines[-count:]


def wrap(text, indent):
    lines = []
    for line in text.splitlines() or [""]:
        lines += textwrap.wrap(line, WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False) or [""]
    return lines


def details(record, indent):
    """Why a case did not pass, what that means and what to do: lines of text. Empty for a pass."""
    if record["verdict"] == "pass":
        return []
    texts = reasons(record)[:SHOWN_REASONS]
    if record["verdict"] == "fail":
        if record.get("meaning"):
            texts.append("This means: " + record["meaning"])
        if record.get("where"):
            texts.append("Read: " + record["where"])
    lines = [line for text in texts for line in wrap(text, indent)]
    if record["verdict"] == "fail" and record.get("printed", "").strip():
        lines.append(indent + "It printed:")
        lines += [indent + "| " + line for line in last_lines(record["printed"], SHOWN_LINES)]
    return lines


def report(record):
    """The record as text for a person."""
    lines = [f"{record['verdict'].upper()}: {record['case']}"]
    if record.get("submission"):
        lines.append(f"  {record['submission']}, {record['lesson']}, " + rig_text(record))
    for figure in record.get("figures", []):
        lines += wrap(figure_line(figure), "  ")
    lines += details(record, "  ")
    if record["verdict"] == "fail" and record.get("seed"):
        lines.append(f"  The same data again: CHECK_SEED={record['seed']}")
    return "\n".join(lines)


def rig_text(record):
    return f"simulated node {record['node']}" if record["rig"] == "sim" else "real GPUs"


def append_record(path, record):
    """Appends a line of JSON; several runners may do so at a time."""
    with open(path, "a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps(record) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--case", required=True)
    parser.add_argument("--rig", choices=["sim", "gpu"], required=True)
    parser.add_argument("--library-dir", required=True, help="folder of the libcudart to run on")
    parser.add_argument("--node", default=DEFAULT_NODE, help="simulated node; SIM_NODE goes before it")
    parser.add_argument("--submission", default="")
    parser.add_argument("--lesson", default="")
    parser.add_argument("--points", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one try")
    parser.add_argument("--json", help="file to append the record to; CHECK_RECORDS goes before it")
    options = parser.parse_args()

    # Whoever ends this runner early ends the case as well: run_once() sees to it on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    record = run_case(
        options.program,
        options.case,
        options.rig,
        options.library_dir,
        os.environ.get("SIM_NODE") or options.node,
        options.timeout,
        {"submission": options.submission, "lesson": options.lesson, "points": options.points},
    )
    print(report(record))
    path = os.environ.get("CHECK_RECORDS") or options.json
    if path:
        append_record(path, record)
    return exit_code(record)


if __name__ == "__main__":
    sys.exit(main())
