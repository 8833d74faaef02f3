"""Judges a program by its timeline: what cost it how much time, and what to do about it."""

import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "checks" / "support"))
from timeline import common, length, union  # noqa: E402

WORTH_A_LINE = 0.02  # of the whole time
LEAST_HIDDEN = 0.25  # of the shorter of copies and kernels; a double buffer hides 0.3 to 1
WIDTH = 80


@dataclass
class Finding:
    name: str     # the same for the same mistake, for machines
    cost: float   # ms
    text: str
    remedy: str
    lesson: str


def ms(value):
    return f"{max(0.0, round(value, 4)):.3g} ms"


def of_kind(spans, *kinds):
    return [span for span in spans if span.kind in kinds]


def pageable(spans):
    for kind, way in ("H2D pageable", "uploads from"), ("D2H pageable", "downloads to"):
        found = of_kind(spans, kind)
        if found:
            yield Finding("pageable", length(union(found)), f"{len(found)} {way} pageable memory",
                          "pin it, once: cudaMallocHost or cudaHostRegister", "3")


def in_the_loop(spans):
    """Allocations while the GPUs have begun to work and have not ended."""
    kernels = of_kind(spans, "kernel")
    if not kernels:
        return
    begin, end = min(span.begin for span in kernels), max(span.end for span in kernels)
    found = [span for span in of_kind(spans, "allocation") if span.begin > begin and span.end < end]
    if found:
        yield Finding("allocations", length(union(found)), f"{len(found)} allocations and releases between the first kernel and the last",
                      "allocate before the loop, or from a pool in the stream: cudaMallocAsync", "5")


def blocking(spans):
    """While the host waits, nobody gives the GPUs more to do."""
    waits = of_kind(spans, "wait")
    work = union([span for span in spans if span.owner != "host"])
    if not waits:
        return
    waiting = union(waits)
    idle = length(waiting) - common(waiting, work)
    yield Finding("blocking", idle, f"{len(waits)} calls in which the host waited, and for part of it no GPU had anything to do",
                  "wait for what is needed next, and only before it is needed; queue the next work first", "6")


def gpus_of(spans):
    return sorted({span.owner for span in spans if span.owner != "host"}, key=lambda name: (len(name), name))


def serial(spans):
    for gpu in gpus_of(spans):
        mine = [span for span in spans if span.owner == gpu]
        copies = union(of_kind(mine, "H2D", "D2H", "H2D pageable", "D2H pageable", "P2P"))
        kernels = union(of_kind(mine, "kernel"))
        hidden, shorter = common(copies, kernels), min(length(copies), length(kernels))
        if hidden >= LEAST_HIDDEN * shorter:
            continue
        yield Finding("serial", shorter - hidden,
                      f"copies and kernels of {gpu} one after the other: {ms(length(copies))} and {ms(length(kernels))}, {ms(hidden)} of it at the same time",
                      "streams, and two buffers: chunk k computes while chunk k+1 is copied", "6")


def turns(spans):
    """GPUs that work one after the other."""
    gpus = gpus_of(spans)
    if len(gpus) < 2:
        return
    busy = [union([span for span in spans if span.owner == gpu]) for gpu in gpus]
    together = length(union([span for span in spans if span.owner != "host"]))
    longest = max(map(length, busy))
    yield Finding("turns", together - longest, f"{len(gpus)} GPUs work in turn: {ms(together)} together, {ms(longest)} the one with most to do",
                  "give all GPUs their work, then wait for the first", "1")


def idle(spans):
    whole = max(span.end for span in spans)
    for gpu in gpus_of(spans):
        busy = length(union([span for span in spans if span.owner == gpu]))
        yield Finding("idle", whole - busy, f"{gpu} had nothing to do", "see who waits for whom in the timeline above", "6")


def judge(spans):
    """What cost at least WORTH_A_LINE of the time, the dearest first."""
    whole = max(span.end for span in spans)
    found = [finding for rule in (pageable, in_the_loop, blocking, serial, turns, idle) for finding in rule(spans)]
    return sorted((finding for finding in found if finding.cost >= WORTH_A_LINE * whole), key=lambda finding: -finding.cost)


def text(spans):
    whole = max(span.end for span in spans)
    findings = judge(spans)
    if not findings:
        yield "nothing stands out: no pageable copies, no allocation in the loop, copies and kernels overlap"
        return
    yield f"what cost time, of {ms(whole)} (one and the same time can stand in several lines):"
    for finding in findings:
        start = f"{finding.cost:>9.3g} ms {100 * finding.cost / whole:>3.0f} %  "
        yield from textwrap.wrap(finding.text, WIDTH, initial_indent=start, subsequent_indent=" " * len(start))
        yield from textwrap.wrap(f"{finding.remedy} (lesson {finding.lesson})", WIDTH,
                                 initial_indent=" " * len(start) + "-> ", subsequent_indent=" " * len(start) + "   ")


