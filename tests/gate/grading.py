"""Grades one program: runs all cases of a check with it, several at a time."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "checks" / "support"))
from run_case import run_case  # noqa: E402


def grade(program, cases, library_dir, node, rig="sim", workers=None, seconds=60.0):
    """{case name: record of run_case} for a program."""
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        records = pool.map(
            lambda case: run_case(program, case.name, rig, library_dir, node, seconds), cases
        )
        return {record["case"]: record for record in records}


def one_line(record):
    """Why a case ended as it did, in one line."""
    texts = [record.get("reason", "")] + [failure["text"] for failure in record.get("failures", [])]
    if record.get("compiler"):
        texts.append(record["compiler"].splitlines()[0])
    return f"{record['verdict']}: {record['case']}: " + "; ".join(filter(None, texts))[:300]
