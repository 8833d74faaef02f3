"""Writes what the stand-in needs to export every name that the real runtime library exports.

usage: exports.py NM LIBRARY MAJOR SOURCE VERSION_SCRIPT

SOURCE gets a weak definition of each function: one that is implemented elsewhere wins when the
library is linked, any other says that it is not simulated.
"""

import subprocess
import sys


def exported(nm, library):
    listing = subprocess.run(
        [nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True
    ).stdout
    names = set()
    for line in listing.splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[1] in "TW":
            names.add(fields[2].split("@")[0])
    return sorted(name for name in names if name.lstrip("_").startswith("cuda"))


def main():
    nm, library, major, source, script = sys.argv[1:]
    names = exported(nm, library)
    if not names:
        sys.exit(f"{library} exports no runtime function")
    with open(source, "w", encoding="utf-8") as out:
        out.write('#include "api/not_simulated.hpp"\n\nextern "C" {\n')
        for name in names:
            out.write(
                f'__attribute__((weak, visibility("default"))) int {name}() '
                f'{{ return sim::api::not_simulated("{name}"); }}\n'
            )
        out.write("}\n")
    with open(script, "w", encoding="utf-8") as out:
        out.write(f"libcudart.so.{major} {{ global: cuda*; __cuda*; local: _Z*; }};\n")


main()
