"""What the doctor found, as text and as a page."""

import html
import textwrap

from checklist import FAULT, FINE, MIND, UNKNOWN

WIDTH = 80
GPU_COLUMNS = [
    ("H2D pageable", "h2d_pageable"), ("H2D pinned", "h2d_pinned"), ("D2H pageable", "d2h_pageable"),
    ("D2H pinned", "d2h_pinned"), ("H2D and D2H at once", "both_ways"), ("zero-copy read", "zero_copy_read"),
    ("zero-copy write", "zero_copy_write"), ("copy inside the GPU", "inside_copy"), ("kernel copies inside the GPU", "inside_kernel"),
]
TIME_COLUMNS = [("cudaMalloc and cudaFree", "malloc_and_free_us"), ("pool, threshold 0", "pool_trimmed_us"),
                ("pool, threshold high", "pool_kept_us")]
MATRICES = [("copy, peer access off, GB/s", "copy_without_access"), ("copy, peer access on, GB/s", "copy_with_access"),
            ("kernel reads, GB/s", "kernel_read"), ("both directions at once, GB/s", "both_ways"), ("copy of 4 bytes, us", "latency_us")]
MARKS = {FINE: "fine", MIND: "MIND", FAULT: "FAULT", UNKNOWN: "?"}


def short(value):
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def spread(figure):
    """How far the extremes are from the median, in per cent."""
    return 100 * max(figure["highest"] - figure["median"], figure["median"] - figure["lowest"]) / figure["median"]


def cell(figure):
    return short(figure["median"])


def alike(figures):
    return max(figure["median"] for figure in figures) <= 1.02 * min(figure["median"] for figure in figures)


def columns_of(gpus):
    """Lists of GPUs that show the same figures, each with a name: eight equal GPUs are one column."""
    names = [name for _, name in GPU_COLUMNS + TIME_COLUMNS]
    groups = []
    for gpu in gpus:
        for group in groups:
            if all(alike([group[0][name], gpu[name]]) for name in names):
                group.append(gpu)
                break
        else:
            groups.append([gpu])
    return [(name_of([gpu["gpu"] for gpu in group]), group) for group in groups]


def name_of(numbers):
    if len(numbers) == 1:
        return f"GPU {numbers[0]}"
    if numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"GPU {numbers[0]}-{numbers[-1]}"
    return "GPU " + ",".join(map(str, numbers))


def gpu_table(report):
    columns = columns_of(report["gpus"])
    yield f"{'GB/s':<32}" + "".join(f"{name:>14}" for name, _ in columns)
    for title, name in GPU_COLUMNS:
        yield f"{title:<32}" + "".join(f"{cell(group[0][name]):>14}" for _, group in columns)
    yield ""
    yield f"{'us, with 64 MiB':<32}"
    for title, name in TIME_COLUMNS:
        yield f"{title:<32}" + "".join(f"{cell(group[0][name]):>14}" for _, group in columns)
    yield f"{'pool, the first time':<32}" + "".join(f"{short(group[0]['pool_cold_us']):>14}" for _, group in columns)


def matrix(report, name):
    """{(from, to): median} of the pairs that have it."""
    return {(pair["from"], pair["to"]): pair[name]["median"] for pair in report["pairs"] if name in pair}


def matrix_lines(report, title, name):
    values = matrix(report, name)
    gpus = [gpu["gpu"] for gpu in report["gpus"]]
    every = len(gpus) * (len(gpus) - 1)
    if len(values) == every and max(values.values()) <= 1.02 * min(values.values()):
        yield f"{title}: {short(min(values.values()))} from every GPU to every other"
        return
    yield f"{title}; rows from, columns to"
    yield " " * 6 + "".join(f"{to:>7}" for to in gpus)
    for source in gpus:
        yield f"{source:>6}" + "".join(f"{short(values[source, to]) if (source, to) in values else '-':>7}" for to in gpus)


def wrapped(label, text):
    return textwrap.wrap(text, WIDTH, initial_indent=f"         {label}: ", subsequent_indent="         ") if text else []


def checklist_text(lines):
    for line in lines:
        yield f"{MARKS[line.verdict]:<6} {line.name}"
        yield from wrapped("signal", line.signal)
        yield from wrapped("figure", line.figure)
        if line.verdict in (MIND, FAULT):
            yield from wrapped("cause", line.cause)
            yield from wrapped("remedy", f"{line.remedy} (lesson {line.lesson})" if line.remedy else "")


def summary(lines):
    counts = {verdict: sum(line.verdict == verdict for line in lines) for verdict in MARKS}
    words = [f"{counts[FAULT]} faults of this machine" if counts[FAULT] != 1 else "1 fault of this machine",
             f"{counts[MIND]} traps for programs", f"{counts[FINE]} fine", f"{counts[UNKNOWN]} unknown"]
    return ", ".join(words)


def text(report, lines):
    """Lines for a terminal."""
    yield f"{len(report['gpus'])} x {report['gpus'][0]['name']}, {report['place']}, {report['date']}"
    yield (f"Each copy {report['bytes'] >> 20} MiB, behind a start gate, median of {report['repetitions']}; GB = 1e9 bytes"
           if report["repetitions"] > 1 else f"Each copy {report['bytes'] >> 20} MiB; time is exact there; GB = 1e9 bytes")
    yield ""
    yield from gpu_table(report)
    if report["repetitions"] > 1:
        worst = max((spread(gpu[name]), title) for gpu in report["gpus"] for title, name in GPU_COLUMNS)
        yield f"largest spread: {worst[0]:.0f} % ({worst[1]})"
    if report["pairs"]:
        yield ""
    for title, name in MATRICES:
        if matrix(report, name):
            drawn = list(matrix_lines(report, title, name))
            yield from drawn if len(drawn) == 1 else ["", *drawn]
    yield ""
    yield from checklist_text(lines)
    yield ""
    yield summary(lines)


STYLE = """
:root { color-scheme: light dark; --text: #1d2127; --back: #fff; --line: #d5d9df; --soft: #f3f4f6; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e8eb; --back: #16181d; --line: #3a3f47; --soft: #22252c; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 80rem; margin: 2rem auto; padding: 0 1rem; }
.tables { display: flex; flex-wrap: wrap; gap: 0 2rem; align-items: flex-start; }
table { border-collapse: collapse; margin: 0 0 2rem; } caption { text-align: left; font-weight: 600; padding: .4rem 0; }
th, td { border: 1px solid var(--line); padding: .3rem .6rem; text-align: right; vertical-align: top; }
th { background: var(--soft); } .words td, .words th { text-align: left; }
.heat { font-size: .76rem; } .heat th, .heat td { padding: .15rem .35rem; }
.heat td { min-width: 1.8rem; color: #111; } .heat td.none { color: var(--text); }
.verdict { font-weight: 700; } .fault { color: #b3261e; } .mind { color: #8a5a00; } .fine { color: #1b6e3c; }
@media (prefers-color-scheme: dark) { .fault { color: #ff8a80; } .mind { color: #f2c14e; } .fine { color: #7fd6a0; } }
"""


def colour(share):
    """From a pale yellow for 0, the worst, to a green for 1; dark text is readable on each."""
    worst, best = (253, 224, 160), (112, 196, 150)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in zip(worst, best))


def goodness(report, name, value):
    """From 0 to 1. Rates are held against the best copy between any two GPUs, so that maps can be compared."""
    if name == "latency_us":
        return min(matrix(report, name).values()) / value
    best = max(value for rates in ("copy_without_access", "copy_with_access", "kernel_read") for value in matrix(report, rates).values())
    return min(1.0, value / (2 * best if name == "both_ways" else best))


def heat_map(report, title, name):
    values = matrix(report, name)
    gpus = [gpu["gpu"] for gpu in report["gpus"]]
    rows = ["<tr><th scope='col'>from \\ to</th>" + "".join(f"<th scope='col'>{to}</th>" for to in gpus) + "</tr>"]
    for source in gpus:
        cells = ""
        for to in gpus:
            value = values.get((source, to))
            cells += ("<td class='none'>–</td>" if value is None else
                      f"<td style='background:{colour(goodness(report, name, value))}'>{short(value)}</td>")
        rows.append(f"<tr><th scope='row'>{source}</th>{cells}</tr>")
    return f"<table class='heat'><caption>{html.escape(title)}</caption>{''.join(rows)}</table>"


def page(report, lines):
    """The same as one HTML file without anything to load."""
    gpus = report["gpus"]
    title = f"{len(gpus)} x {gpus[0]['name']}, {report['place']}, {report['date']}"
    columns = columns_of(gpus)
    head = "<tr><th scope='col'></th>" + "".join(f"<th scope='col'>{html.escape(name)}</th>" for name, _ in columns) + "</tr>"

    def rows(wanted):
        return "".join(f"<tr><th scope='row'>{html.escape(what)}</th>" +
                       "".join(f"<td>{cell(group[0][name])}</td>" for _, group in columns) + "</tr>" for what, name in wanted)

    checks = "".join(
        f"<tr><td class='verdict {line.verdict}'>{line.verdict}</td><th scope='row'>{html.escape(line.name)}</th><td>{html.escape(line.signal)}</td>"
        f"<td>{html.escape(line.figure)}</td><td>{html.escape(line.cause)}</td><td>{html.escape(line.remedy)}</td></tr>" for line in lines)
    maps = "".join(heat_map(report, what, name) for what, name in MATRICES if matrix(report, name))
    return (f"<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
            f"<title>{html.escape(title)}</title><style>{STYLE}</style><h1>Data paths</h1><p>{html.escape(title)}</p>"
            f"<p>{html.escape(summary(lines))}.</p>"
            f"<div class='tables'><table><caption>Host and GPU, GB/s (1e9 bytes)</caption>{head}{rows(GPU_COLUMNS)}</table>"
            f"<table><caption>Allocating 64 MiB, us</caption>{head}{rows(TIME_COLUMNS)}</table></div><div class='tables'>{maps}</div>"
            f"<table class='words'><caption>Checklist</caption><tr><th>verdict</th><th></th><th>signal</th><th>figure</th><th>cause</th><th>remedy</th></tr>"
            f"{checks}</table></html>\n")
