#!/usr/bin/env python3
"""Finds the CUDA Toolkit for meson.build, or says in one paragraph what is missing.

Prints four lines: the nvcc command (words separated by tabs), the include folder, the folder of
libcudart.so, the major version. Looks on PATH, in $CUDA_HOME/bin and $CUDA_PATH/bin, and where
the toolkit's own installers put it.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

OLDEST = 12
INSTALL = (
    "Install the CUDA Toolkit, version 12 or newer (https://developer.nvidia.com/cuda-downloads; "
    "the packages cuda-nvcc and cuda-cudart-dev are enough, no driver and no GPU is needed), and "
    "put nvcc on PATH or set CUDA_HOME."
)


def fail(message):
    sys.exit(message)


def find_nvcc():
    on_path = shutil.which("nvcc")
    if on_path:
        return on_path
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda", "/opt/cuda"]
    for root in filter(None, roots):
        nvcc = Path(root) / "bin" / "nvcc"
        if os.access(nvcc, os.X_OK):
            return str(nvcc)
    fail("nvcc, the CUDA compiler, was not found. " + INSTALL)


def run(command, **more):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)


def major_version(nvcc):
    answer = run([nvcc, "--version"])
    found = re.search(r"release (\d+)\.(\d+)", answer.stdout)
    if not found:
        fail(f"{nvcc} --version does not name a release:\n{answer.stdout}")
    if int(found[1]) < OLDEST:
        fail(f"{nvcc} is of CUDA {found[1]}.{found[2]}, which is too old. " + INSTALL)
    return int(found[1])


def search_folders(command):
    """The include and library folders that nvcc itself uses: (includes, libraries)."""
    plan = run(command + ["--dryrun", "-x", "cu", "/dev/null", "-o", "/dev/null"]).stdout
    values = dict(re.findall(r"^#\$ (\w+)=(.*)$", plan, re.MULTILINE))
    includes = re.findall(r'-I\s*"?([^"\s]+)"?', values.get("INCLUDES", ""))
    libraries = re.findall(r'-L\s*"?([^"\s]+)"?', values.get("LIBRARIES", ""))
    return includes, libraries


def first_with(name, folders):
    for folder in folders:
        if (Path(folder) / name).exists():
            return os.path.realpath(folder)
    return None


def try_compile(command):
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "try.cu"
        source.write_text("#include <memory>\n#include <string>\n__global__ void kernel() {}\n")
        answer = run(command + ["-std=c++17", "-c", str(source), "-o", str(source.with_suffix(".o"))])
    if answer.returncode == 0:
        return
    fail(
        f"{command[0]} cannot compile an empty kernel. Most often the C++ compiler of this system is "
        "newer than this CUDA Toolkit knows: install an older g++ beside it and name it in NVCC_CCBIN "
        f"(for example NVCC_CCBIN=g++-12 meson setup build). nvcc said:\n{answer.stdout.strip()}"
    )


def main():
    nvcc = find_nvcc()
    major = major_version(nvcc)
    host_compiler = os.environ.get("NVCC_CCBIN")
    command = [nvcc] + (["-ccbin", host_compiler] if host_compiler else [])
    includes, libraries = search_folders(command)
    include = first_with("cuda_runtime_api.h", includes + ["/usr/include"])
    library = first_with("libcudart.so", libraries + ["/usr/lib/x86_64-linux-gnu", "/usr/lib"])
    if not include or not library:
        fail(f"{nvcc} is here, but the CUDA runtime's headers or libcudart.so are not. " + INSTALL)
    try_compile(command)
    print("\t".join(command), include, library, major, sep="\n")


if __name__ == "__main__":
    main()
