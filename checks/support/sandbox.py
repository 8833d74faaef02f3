"""Keeps a case to itself: no network, no file that stays, no process that outlives it, no flood.

Bubblewrap gives namespaces of the case's own; where the system has none, what is left are limits, a
scratch folder that goes away, and a search for processes that the case has left behind.
COURSE_SANDBOX: `off`; `on`, on real GPUs too; else namespaces on the simulated node only, because
drivers differ in what they need.
"""

import glob
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SCRATCH_BYTES = 64 << 20  # files that a case may write; no lesson writes any
MARK = "COURSE_CASE"  # variable by which processes of a case are known
SHARE_OF_MEMORY = 0.75  # of the machine's, for one case
PROCESSES = 16384  # of one user; threads count. Root is not limited by it.

# Limits hold from the first instruction on. RLIMIT_DATA and not RLIMIT_AS: CUDA reserves addresses by the
# terabyte. A case goes first when memory runs out all the same.
STARTED = "the case starts\n"  # the first output, printed before the submission can print
LIMITED = ('{{ ulimit -c 0; ulimit -d {data}; ulimit -u {processes} || ulimit -p {processes}; '
           'echo 1000 >/proc/self/oom_score_adj; }} 2>/dev/null; echo "$0"; exec "$@"')


def memory_kib():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 1024


def limited(command):
    script = LIMITED.format(data=int(memory_kib() * SHARE_OF_MEMORY), processes=PROCESSES)
    return ["sh", "-c", script, STARTED.strip(), *command]


class NotStarted(Exception):
    """The namespaces could not be made."""


def wanted(rig):
    if shutil.which("bwrap") is None:
        return False
    choice = os.environ.get("COURSE_SANDBOX", "")
    return choice != "off" and (rig == "sim" or choice == "on")


def why_not():
    """Why there are no namespaces here; None when there are. For telling people, once."""
    if shutil.which("bwrap") is None:
        return "bwrap is missing: apt install bubblewrap"
    answer = subprocess.run([*namespaces(), "true"], capture_output=True, text=True, errors="replace")
    if answer.returncode == 0:
        return None
    return "bwrap cannot make namespaces here: " + (answer.stderr.strip() or f"it ended with code {answer.returncode}")


def namespaces():
    """bwrap and its options: all is read-only, but for folders that go away with the case."""
    devices = [word for path in sorted(glob.glob("/dev/nvidia*")) for word in ("--dev-bind", path, path)]
    return ["bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent", "--cap-drop", "ALL",
            "--ro-bind", "/", "/", "--dev", "/dev", *devices, "--proc", "/proc",
            "--size", str(SCRATCH_BYTES), "--tmpfs", "/tmp", "--size", str(SCRATCH_BYTES), "--tmpfs", "/var/tmp", "--tmpfs", "/run"]


def kept(folders):
    """Options that show folders again which a private /tmp would hide."""
    return [word for folder in folders for word in ("--ro-bind", str(folder), str(folder))]


class Sandbox:
    """Where one case runs. Use as a context; `command()` and `variables()` are what to start it with."""

    def __init__(self, program, library_dir, closed):
        self.program, self.library_dir, self.closed = os.path.abspath(program), os.path.abspath(library_dir), closed
        self.mark = secrets.token_hex(8)

    def __enter__(self):
        self.scratch = None if self.closed else tempfile.TemporaryDirectory(prefix="course-case-", ignore_cleanup_errors=True)
        return self

    def __exit__(self, *_):
        if self.scratch is not None:
            end_marked(self.mark)
            self.scratch.cleanup()

    def folder(self):
        """Where the case starts; bwrap changes to /tmp itself."""
        return self.scratch.name if self.scratch else "/"

    def command(self, words):
        if not self.closed:
            return limited([self.program, *words])
        shown = [REPOSITORY, os.path.dirname(self.program), self.library_dir]
        return [*namespaces(), *kept(shown), "--chdir", "/tmp", *limited([self.program, *words])]

    def variables(self):
        return {MARK: self.mark, "TMPDIR": self.scratch.name if self.scratch else "/tmp"}

    def exit_code(self, code):
        """As subprocess gives it: bwrap ends with 128 + n where the case ended by signal n."""
        return 128 - code if self.closed and code > 128 else code


def marked(mark):
    """Processes that have inherited the mark, wherever they have got to."""
    wanted_entry = f"{MARK}={mark}".encode()
    for path in glob.iglob("/proc/[0-9]*/environ"):
        try:
            if wanted_entry in Path(path).read_bytes().split(b"\0"):
                yield int(path.split("/")[2])
        except (OSError, ValueError):
            continue


def end_marked(mark, rounds=20):
    """Ends what a case has left behind in other sessions; it may start more meanwhile."""
    for _ in range(rounds):
        found = list(marked(mark))
        if not found:
            return
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
