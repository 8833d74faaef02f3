#!/usr/bin/env python3
"""Draws a timeline: in a terminal, or as a picture, with the figures that matter under it.

    python3 checks/support/timeline.py TRACE.json [--svg FILE] [--part BEGIN-END]

TRACE.json is what SIM_TRACE names: "X" events with a category. BEGIN and END are in ms from the first event.
"""

import argparse
import html
import json
import sys
from dataclasses import dataclass
from pathlib import Path

WIDTH = 80
LABEL = 14
LONG_GAP = 0.2  # of the longest gap
NO_GAP = 0.02  # of the whole time
SPARSE = ":"
# category -> (row of its GPU, character, colour class)
KINDS = {
    "H2D": ("H2D", ">", "up"), "H2D pageable": ("H2D", "}", "pageable"),
    "D2H": ("D2H", "<", "down"), "D2H pageable": ("D2H", "{", "pageable"),
    "kernel": ("kernels", "#", "kernel"), "P2P": ("P2P", "=", "peer"),
    "D2D": ("kernels", "-", "inside"), "fill": ("kernels", "-", "inside"), "host function": ("kernels", "f", "inside"),
    "wait": ("host", ".", "wait"), "allocation": ("host", "m", "allocation"),
}
MEANINGS = [(">", "H2D"), ("<", "D2H"), ("}{", "the same, pageable"), ("#", "kernel"), ("=", "to another GPU"),
            ("-", "fill, copy in the GPU"), (".", "host waits"), ("m", "host allocates or pins")]
ORDER = ["host", "H2D", "kernels", "D2H", "P2P"]


@dataclass
class Span:
    owner: str  # "host" or "GPU 3"
    kind: str
    name: str
    begin: float  # ms
    end: float


class TraceError(Exception):
    """What is wrong with a trace, in one sentence."""


def events_of(path):
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))["traceEvents"]
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise TraceError(f"{path} is no timeline: it has no list of traceEvents") from error


def owners_in(events):
    """{process: "host" or a GPU's name}"""
    return {event["pid"]: event["args"]["name"] for event in events
            if event.get("ph") == "M" and event.get("name") == "process_name"}


def read(path):
    """The spans of a trace, their times counted from the first."""
    events = events_of(path)
    owners = owners_in(events)
    spans = [Span(owners.get(event["pid"], "?"), event["cat"], event["name"], event["ts"] / 1e3,
                  (event["ts"] + event["dur"]) / 1e3)
             for event in events if event.get("ph") == "X" and event.get("cat") in KINDS]
    if not spans:
        raise TraceError(f"{path} shows no work: nothing was copied, launched or waited for")
    first = min(span.begin for span in spans)
    for span in spans:
        span.begin -= first
        span.end -= first
    return spans


def unused(path):
    """A sentence for each stretch of GPUs that were there and did nothing from begin to end."""
    events = events_of(path)
    owners = owners_in(events)
    working = {owners.get(event["pid"]) for event in events if event.get("ph") == "X"}
    numbers = sorted(int(owner.split()[1]) for owner in owners.values() if owner != "host" and owner not in working)
    stretches = []
    for number in numbers:
        if stretches and number == stretches[-1][1] + 1:
            stretches[-1][1] = number
        else:
            stretches.append([number, number])
    for first, last in stretches:
        yield f"GPU {first}" + (f" to GPU {last}" if last > first else "") + ": did nothing"


def part_of(spans, begin, end):
    """What lies between two times, cut at both."""
    cut = [Span(span.owner, span.kind, span.name, max(span.begin, begin) - begin, min(span.end, end) - begin)
           for span in spans if span.end > begin and span.begin < end]
    if not cut:
        raise TraceError(f"nothing happens from {begin:g} to {end:g} ms")
    return cut


def last_phase(spans):
    """What the GPUs do after the last of their long gaps: what a program measures comes after what it prepares. All
    of it when the GPUs do nothing."""
    work = union([span for span in spans if span.owner != "host"])
    if not work:
        return spans
    gaps = [(later[0] - former[1], later[0]) for former, later in zip(work, work[1:])]
    whole = work[-1][1] - work[0][0]
    longest = max((gap for gap, _ in gaps), default=0.0)
    if longest < NO_GAP * whole:
        return part_of(spans, work[0][0], work[-1][1])
    return part_of(spans, max(end for gap, end in gaps if gap >= LONG_GAP * longest), work[-1][1])


def rows_of(spans):
    """{(owner, row): spans}, in the order in which they are drawn."""
    rows = {}
    for span in spans:
        rows.setdefault((span.owner, KINDS[span.kind][0]), []).append(span)
    return dict(sorted(rows.items(), key=lambda item: (item[0][0] != "host", len(item[0][0]), item[0][0], ORDER.index(item[0][1]))))


def union(spans):
    """Stretches of time in which at least one of the spans is under way."""
    stretches = []
    for begin, end in sorted((span.begin, span.end) for span in spans):
        if stretches and begin <= stretches[-1][1]:
            stretches[-1][1] = max(stretches[-1][1], end)
        else:
            stretches.append([begin, end])
    return stretches


def length(stretches):
    return sum(end - begin for begin, end in stretches)


def common(one, other):
    """Length of the time that lies in both."""
    total, i, j = 0.0, 0, 0
    while i < len(one) and j < len(other):
        total += max(0.0, min(one[i][1], other[j][1]) - max(one[i][0], other[j][0]))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return total


def label(owner, row):
    return owner if owner == "host" else f"{owner} {row}"


def cells_of(spans, cell_time, cells):
    """A character for each cell: that of what takes most of its time, or SPARSE where that is less than half of it."""
    times = [{} for _ in range(cells)]
    for span in spans:
        first = min(cells - 1, int(span.begin / cell_time))
        last = min(cells - 1, int(span.end / cell_time))
        for cell in range(first, last + 1):
            shared = min(span.end, (cell + 1) * cell_time) - max(span.begin, cell * cell_time)
            mark = KINDS[span.kind][1]
            if shared > 0:
                times[cell][mark] = times[cell].get(mark, 0.0) + shared
    return [mark_of(marks, cell_time) for marks in times]


def mark_of(times, cell_time):
    if not times:
        return " "
    most = max(times, key=times.get)
    return most if times[most] >= cell_time / 2 else SPARSE


def draw(spans, width=WIDTH):
    """Lines of text."""
    whole = max(span.end for span in spans)
    cells = width - LABEL
    for (owner, row), of_row in rows_of(spans).items():
        yield f"{label(owner, row):<{LABEL}}" + "".join(cells_of(of_row, whole / cells, cells)).rstrip()
    yield " " * LABEL + "0" + f"{whole:.3g} ms".rjust(cells - 1)
    used = {KINDS[span.kind][1] for span in spans}
    legend = [f"{marks} {text}" for marks, text in MEANINGS if used & set(marks)] + [f"{SPARSE} less than half of the time"]
    line = ""
    for word in legend:
        if len(line) + len(word) + 3 > width:
            yield line
            line = ""
        line += ("   " if line else "") + word
    yield line


def figures(spans):
    """Sentences on what overlaps, what is idle and what blocks."""
    whole = max(span.end for span in spans)
    for owner in sorted({span.owner for span in spans if span.owner != "host"}, key=lambda name: (len(name), name)):
        mine = [span for span in spans if span.owner == owner]
        copies = union([span for span in mine if span.kind[:3] in ("H2D", "D2H", "P2P")])
        kernels = union([span for span in mine if span.kind == "kernel"])
        both = common(copies, kernels)
        busy = length(copies) + length(kernels) - both
        shorter = min(length(copies), length(kernels))
        overlap = f", {100 * both / shorter:.0f} % of the shorter one hidden behind the other" if shorter else ""
        yield (f"{owner}: copies {length(copies):.3g} ms, kernels {length(kernels):.3g} ms{overlap}; "
               f"idle {100 * (1 - busy / whole):.0f} % of {whole:.3g} ms")
    for kind, text in [("H2D pageable", "uploads from pageable memory"), ("D2H pageable", "downloads to pageable memory"),
                       ("allocation", "allocating, releasing and pinning"), ("wait", "waiting on the host")]:
        found = [span for span in spans if span.kind == kind]
        if found:
            yield f"{text}: {len(found)} times, {length(union(found)):.3g} ms"


STYLE = """
text { font: 15px system-ui, sans-serif; fill: #222 }
.back { fill: #fff } .lane { fill: #f0f0f0 }
.up { fill: #2a78b5 } .down { fill: #1e8c7a } .kernel { fill: #d9861a } .peer { fill: #8a5fb0 }
.inside { fill: #b9a27c } .pageable { fill: #c0392b } .wait { fill: #c9ced6 } .allocation { fill: #7b2d26 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6e6e6 } .back { fill: #16181d } .lane { fill: #23262d }
  .up { fill: #5aa9e6 } .down { fill: #4fc3ab } .kernel { fill: #f0a742 } .peer { fill: #b794d6 }
  .inside { fill: #cdb992 } .pageable { fill: #ef6a5b } .wait { fill: #4a4f59 } .allocation { fill: #d98880 }
}
"""


def svg(spans, title):
    """The same as a picture; its text stays text."""
    left, right, row_height, top = 130, 830, 26, 44
    whole = max(span.end for span in spans)
    rows = rows_of(spans)
    classes = {KINDS[span.kind][2]: span.kind for span in spans}
    height = top + row_height * len(rows) + 62
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 {height}" role="img" aria-labelledby="title desc">',
           f'<title id="title">{html.escape(title)}</title>',
           f'<desc id="desc">{html.escape(". ".join(figures(spans)))}.</desc>', f"<style>{STYLE}</style>",
           f'<rect class="back" width="860" height="{height}"/>', f'<text x="12" y="26">{html.escape(title)}</text>']
    for number, ((owner, row), of_row) in enumerate(rows.items()):
        y = top + row_height * number
        out.append(f'<text x="12" y="{y + 17}">{html.escape(label(owner, row))}</text>')
        out.append(f'<rect class="lane" x="{left}" y="{y}" width="{right - left}" height="{row_height - 4}"/>')
        for span in sorted(of_row, key=lambda span: span.kind == "wait", reverse=True):
            x = left + (right - left) * span.begin / whole
            wide = max(0.6, (right - left) * (span.end - span.begin) / whole)
            out.append(f'<rect class="{KINDS[span.kind][2]}" x="{x:.2f}" y="{y}" width="{wide:.2f}" height="{row_height - 4}"/>')
    y = top + row_height * len(rows) + 16
    out.append(f'<text x="{left}" y="{y}">0</text><text x="{right}" y="{y}" text-anchor="end">{whole:.3g} ms</text>')
    x = 12
    for name, kind in sorted(classes.items()):
        text = {"wait": "host waits", "allocation": "host allocates", "inside": "in the GPU"}.get(name, kind if name != "pageable" else "pageable")
        out.append(f'<rect class="{name}" x="{x}" y="{y + 14}" width="14" height="14"/>'
                   f'<text x="{x + 20}" y="{y + 26}">{html.escape(text)}</text>')
        x += 44 + 8 * len(text)
    return "\n".join(out + ["</svg>", ""])


def show(path, part=None, picture=None, title="timeline"):
    """Prints a part of the timeline in a file, else its last phase, and figures; writes a picture if asked for."""
    spans = read(path)
    spans = part_of(spans, *part) if part else last_phase(spans)
    for line in draw(spans):
        print(line)
    print()
    for line in [*figures(spans), *unused(path)]:
        print(line)
    if picture:
        Path(picture).write_text(svg(spans, title), encoding="utf-8")
        print(f"\n{picture}: written")


def stretch(text):
    """BEGIN-END in ms."""
    begin, _, end = text.partition("-")
    try:
        numbers = float(begin), float(end)
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" is not BEGIN-END, two times in ms') from None
    if numbers[0] >= numbers[1]:
        raise argparse.ArgumentTypeError(f'"{text}" ends before it begins')
    return numbers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("--svg", metavar="FILE")
    parser.add_argument("--title", default="timeline")
    parser.add_argument("--part", metavar="BEGIN-END", type=stretch, help="in ms")
    options = parser.parse_args()
    try:
        show(options.trace, options.part, options.svg, options.title)
    except TraceError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
