"""Runs a program and records its timeline, on either rig."""

import subprocess

from builder import compile_targets
from project import BUILD, Complaint, environment_of

INJECTED = BUILD / "doctor" / "libcourse-timeline.so"


def variables_for(rig, trace):
    """What makes a program write its timeline to the file `trace`."""
    if rig == "sim":
        return {"SIM_TRACE": str(trace)}
    compile_targets("doctor-programs")
    if not INJECTED.is_file():
        raise Complaint("timelines of real GPUs need CUPTI, which this CUDA Toolkit lacks: install its package cuda-cupti-dev-*, "
                        "then call `meson setup --reconfigure build`; or add --rig sim")
    return {"CUDA_INJECTION64_PATH": str(INJECTED), "COURSE_TRACE": str(trace)}


def run(command, rig, node, trace):
    """Runs a command and returns its exit code. Raises Complaint when it cannot be started or left no timeline."""
    trace.unlink(missing_ok=True)
    variables = {**environment_of(rig, node), **variables_for(rig, trace)}
    try:
        code = subprocess.run(command, env=variables).returncode
    except OSError as error:
        raise Complaint(f"{command[0]} cannot be started: {error.strerror}") from error
    if not trace.is_file():
        raise Complaint(f"{command[0]} left no timeline: it used no GPU"
                        + (", or not the runtime of the simulated node: link it with -cudart shared" if rig == "sim" else ""))
    return code
