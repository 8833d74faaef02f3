"""Writes the table "predicted against measured" into sim/README.md.

    meson compile -C build figures-table

or by hand

    python3 sim/figures/table.py REAL.json FIGURES LIBRARY_DIR NODE README.md

REAL.json is what the program `figures` printed on the real machine. The program FIGURES is run on
the simulated node NODE, whose libcudart is in LIBRARY_DIR. The table replaces what stands between the
two markers in the README.
"""

import json
import os
import re
import subprocess
import sys

BEGIN = "<!-- figures: begin -->"
END = "<!-- figures: end -->"


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def run_simulated(program, library_dir, node):
    environment = dict(os.environ, LD_LIBRARY_PATH=library_dir, SIM_NODE=node)
    output = subprocess.run([program], env=environment, check=True, stdout=subprocess.PIPE).stdout
    return json.loads(output)


def row(real, simulated):
    error = simulated["median"] / real["median"] - 1
    return (f"| {real['name']} | {real['median']:.4g} {real['unit']} "
            f"| {real['lowest']:.4g} – {real['highest']:.4g} "
            f"| {simulated['median']:.4g} {real['unit']} | {error:+.0%} |"), abs(error)


def table(real, simulated):
    by_name = {figure["name"]: figure for figure in simulated["figures"]}
    rows, errors = zip(*(row(figure, by_name[figure["name"]]) for figure in real["figures"]))
    within = sum(error <= 0.20 for error in errors)
    lines = [
        f"Measured on one {real['machine']}: median and range of {real['repetitions']} repetitions. "
        f"{within} of {len(errors)} figures are within 20 %.",
        "",
        "| quantity | measured | range | simulated | difference |",
        "| --- | --- | --- | --- | --- |",
        *rows,
    ]
    return "\n".join(lines)


def main(real_path, program, library_dir, node, readme_path):
    text = table(read(real_path), run_simulated(program, library_dir, node))
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
