"""Writes the table "predicted against measured" into sim/README.md.

    meson compile -C build figures-table

or by hand

    python3 sim/figures/table.py REAL FIGURES LIBRARY_DIR NODE README.md

REAL is a folder with one file for each real machine: what the program `figures` printed there, once or
several times. The program FIGURES is run on the simulated node NODE, whose libcudart is in LIBRARY_DIR.
The table replaces what stands between the two markers in the README.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import median

BEGIN = "<!-- figures: begin -->"
END = "<!-- figures: end -->"


def runs(path):
    """The JSON objects that stand in a file one after the other."""
    text = path.read_text(encoding="utf-8").strip()
    decoder = json.JSONDecoder()
    found = []
    while text:
        run, end = decoder.raw_decode(text)
        found.append(run)
        text = text[end:].lstrip()
    return found


def machines(folder):
    """The runs on each real machine."""
    found = [runs(path) for path in sorted(Path(folder).glob("*.json"))]
    return found or sys.exit(f"{folder}: there is no .json file of a real machine")


def run_simulated(program, library_dir, node):
    environment = dict(os.environ, LD_LIBRARY_PATH=library_dir, SIM_NODE=node)
    output = subprocess.run([program], env=environment, check=True, stdout=subprocess.PIPE).stdout
    return json.loads(output)


class Measured:
    """One quantity on all real machines: the median of their medians, and the range of all medians."""

    def __init__(self, name, all_machines):
        found = [[figure for run in runs for figure in run["figures"] if figure["name"] == name]
                 for runs in all_machines]
        found = [figures for figures in found if figures]
        self.name, self.unit = name, found[0][0]["unit"]
        self.machines = [median(figure["median"] for figure in figures) for figures in found]
        self.median = median(self.machines)
        every = [figure["median"] for figures in found for figure in figures]
        self.lowest, self.highest = min(every), max(every)


def row(measured, simulated):
    """The line of the table, and how far off the simulated node is."""
    off = simulated["median"] / measured.median - 1
    each = ", ".join(f"{value:.4g}" for value in measured.machines)
    return (f"| {measured.name} | {measured.median:.4g} {measured.unit} | {each} "
            f"| {measured.lowest:.4g} – {measured.highest:.4g} "
            f"| {simulated['median']:.4g} {measured.unit} | {off:+.0%} |"), abs(off)


def table(real, simulated):
    seen = {figure["name"] for runs in real for run in runs for figure in run["figures"]}
    names = [figure["name"] for figure in simulated["figures"] if figure["name"] in seen]
    by_name = {figure["name"]: figure for figure in simulated["figures"]}
    rows, errors = zip(*(row(Measured(name, real), by_name[name]) for name in names))
    within = sum(error <= 0.20 for error in errors)
    first = real[0][0]
    lines = [
        f"Measured on {len(real)} machines with one {first['machine']} each, {sum(map(len, real))} runs of "
        f"{first['repetitions']} repetitions. A run's figure is its median, a machine's the median of its runs.",
        f"{within} of {len(errors)} figures are within 20 % of the machines' median.",
        "",
        "| quantity | measured | each machine | range of the runs | simulated | difference |",
        "| --- | --- | --- | --- | --- | --- |",
        *rows,
    ]
    return "\n".join(lines)


def main(real_path, program, library_dir, node, readme_path):
    text = table(machines(real_path), run_simulated(program, library_dir, node))
    with open(readme_path, encoding="utf-8") as file:
        readme = file.read()
    if BEGIN not in readme or END not in readme:
        sys.exit(f"{readme_path}: the markers {BEGIN} and {END} are missing")
    pattern = re.escape(BEGIN) + ".*" + re.escape(END)
    with open(readme_path, "w", encoding="utf-8") as file:
        file.write(re.sub(pattern, lambda _: f"{BEGIN}\n{text}\n{END}", readme, flags=re.DOTALL))
    print(text)


if __name__ == "__main__":
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    main(*sys.argv[1:])
