"""What a submission's source and object must keep to, so that a check judges the submission alone.

Each function returns a sentence that says what is wrong and what to do, or None.
"""

import os
import re
import stat
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
LARGEST_SOURCE = 1 << 20  # bytes; the lessons' files have less than 1 % of it

# The system's own folders. Other users' files, /tmp and /dev are not among them.
SYSTEM_FOLDERS = ["/usr", "/opt", "/lib", "/lib64", "/nix/store", "/gnu/store"]

# What makes a name, as the compiler writes it, one of the check, of Catch2 or of the standard library.
OF_THE_CHECK = re.compile(r"_Z(T[VTIS])?N[VKRO]*(5check|5Catch)")
OF_THE_LIBRARY = re.compile(r"_Z(n[wa]|d[la]|(N[VKRO]*)?St)")
UNDEFINED = "Uwv"  # as nm writes it; the small letters are for weak references
OF_CUDA = re.compile(r"(cuda|cu|__cuda)[A-Z]")


def about_file(source):
    """Whether `source` is a file that a compiler should be given at all."""
    try:
        status = os.lstat(source)
    except OSError:
        return f"{source} is missing"
    if stat.S_ISLNK(status.st_mode):
        return f"{source} is a symbolic link: put the file itself there"
    if stat.S_ISDIR(status.st_mode):
        return f"{source} is a folder: put the file of this name there"
    if not stat.S_ISREG(status.st_mode):
        return f"{source} is no regular file"
    if status.st_size == 0:
        return f"{source} is empty"
    if status.st_size > LARGEST_SOURCE:
        return (f"{source} has {status.st_size} bytes, more than the {LARGEST_SOURCE} that a lesson may have: "
                "is it the right file?")
    return None


def include_folders(command):
    """The folders that a compiler's command names by -I, but for the repository's root."""
    folders = [os.path.realpath(word[2:]) for word in command if word.startswith("-I") and len(word) > 2]
    return [folder for folder in folders if folder != str(REPOSITORY)]


def toolkit_folder(command):
    """The folder in which the compiler lies with its headers."""
    return os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(command[0])), ".."))


def lies_in(path, folders):
    return any(path.startswith(folder.rstrip("/") + "/") for folder in folders)


def about_inputs(source, inputs, command):
    """Whether all that the compiler read is the submission's own, the lesson's or the system's."""
    own = os.path.dirname(os.path.realpath(source))
    allowed = [own, str(REPOSITORY / "common"), *include_folders(command)]
    system = [*SYSTEM_FOLDERS, toolkit_folder(command)]
    for name in inputs:
        path = os.path.realpath(name)
        if lies_in(path, allowed) or (lies_in(path, system) and not lies_in(path, [str(REPOSITORY)])):
            continue
        return (f"{source} includes {name}, which is not part of the lesson: include the lesson's header, "
                "what is in common/ and the system's own headers only")
    return None


def symbols(*words):
    """(kind, name) of each symbol that nm lists: kinds as nm writes them."""
    listed = subprocess.run(["nm", "--format=posix", *words], capture_output=True, text=True, errors="replace")
    rows = [line.split() for line in listed.stdout.splitlines()]
    return [(row[1], row[0]) for row in rows if len(row) >= 2 and len(row[1]) == 1]


def about_object(source, object_file, libraries):
    """Whether an object leaves alone what belongs to the check, to CUDA, and what the check calls."""
    of_libraries = symbols("--extern-only", *libraries) if libraries else []
    known = {name for _, name in of_libraries}
    called = {name for kind, name in of_libraries if kind in UNDEFINED}
    for kind, name in symbols("--extern-only", object_file):
        if kind in UNDEFINED and OF_THE_CHECK.match(name):
            return f"{source} uses {name}, which belongs to the check"
        if kind in UNDEFINED:
            continue
        if kind in "TWi" and OF_CUDA.match(name):
            return f"{source} defines {name} itself: call the function of CUDA, do not replace it"
        if (OF_THE_CHECK.match(name) and name in known) or (name in called and replaces(kind, name)):
            return f"{source} defines {name}, which the check calls: give it another name"
    return None


def replaces(kind, name):
    """Whether a symbol would be taken for the library's: templates' weak instances are the same anyway."""
    if not name.startswith("_Z"):
        return True
    return bool(OF_THE_LIBRARY.match(name)) and kind not in "WVu"
