"""Collects a class: folders and archives as students and learning platforms hand them in.

Every submission becomes a folder of its own with N-name/name.cu in it. What was handed in is only read.
"""

import re
import shutil
import tarfile
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from project import lessons, source_of
from source_rules import LARGEST_SOURCE

LARGEST_ARCHIVE = 64 << 20  # bytes of all .cu files in one archive
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")


class Collected:
    """What came of one entry of the class."""

    def __init__(self, name, folder):
        self.name, self.folder = name, folder
        self.remarks = []  # sentences for the report


def without_suffix(name):
    for suffix in sorted(ARCHIVES, key=len, reverse=True):
        if name.lower().endswith(suffix):
            return name[:-len(suffix)]
    return None


def safe_name(name, taken):
    """`name` in the letters that Meson's test names allow, and not one of `taken`."""
    safe = re.sub(r"[^\w.+@-]+", "-", name).strip("-.") or "submission"
    candidate, number = safe, 2
    while candidate in taken:
        candidate, number = f"{safe}-{number}", number + 1
    return candidate


def lesson_of(path):
    """The lesson that a file belongs to by its name, whatever folders it lies in; None if to none."""
    for lesson in lessons():
        if PurePosixPath(path).name == PurePosixPath(source_of(lesson)).name:
            return lesson
    return None


def is_clutter(path):
    """What desktops put into archives."""
    parts = PurePosixPath(path).parts
    return "__MACOSX" in parts or any(part.startswith(".") and part != ".." for part in parts)


def files_of_folder(folder):
    """(path in the folder, size, function that reads it) of each regular file; links are not followed."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield path.relative_to(folder).as_posix(), path.stat().st_size, path.read_bytes


def files_of_zip(path):
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if not entry.is_dir():
                yield entry.filename, entry.file_size, lambda entry=entry: archive.read(entry)


def files_of_tar(path):
    with tarfile.open(path) as archive:
        for entry in archive:
            if entry.isfile():
                yield entry.name, entry.size, lambda entry=entry: archive.extractfile(entry).read()


def files_of(path):
    if path.is_dir():
        return files_of_folder(path)
    return files_of_zip(path) if path.name.lower().endswith(".zip") else files_of_tar(path)


def chosen_files(path, remarks):
    """{lesson: content} of what is in a folder or archive. Nothing is unpacked that is no lesson's file."""
    chosen, total = {}, 0
    for name, size, read in files_of(path):
        lesson = None if is_clutter(name) else lesson_of(name)
        if lesson is None:
            continue
        if size > LARGEST_SOURCE:
            remarks.append(f"{name} has {size} bytes, more than the {LARGEST_SOURCE} that a lesson may have: left out")
        elif lesson in chosen:
            remarks.append(f"{name} is there more than once: the first one counts")
        elif total + size > LARGEST_ARCHIVE:
            remarks.append(f"{name} is left out: the submission is too large")
        else:
            chosen[lesson], total = read(), total + size
    return chosen


def write_if_changed(path, content):
    """So that what did not change is not compiled again."""
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(content)
    Path(file.name).replace(path)


def collect_one(path, folder, name):
    collected = Collected(name, folder)
    try:
        chosen = chosen_files(path, collected.remarks)
    except (OSError, zipfile.BadZipFile, tarfile.TarError, EOFError, RuntimeError) as error:
        collected.remarks.append(f"{path.name} cannot be read: {error}")
        chosen = {}
    folder.mkdir(parents=True, exist_ok=True)
    for lesson in lessons():
        target = folder / source_of(lesson)
        if lesson in chosen:
            write_if_changed(target, chosen[lesson])
        elif target.exists():
            target.unlink()
    missing = [lesson for lesson in lessons() if lesson not in chosen]
    if missing:
        collected.remarks.append("not handed in: " + ", ".join(source_of(lesson) for lesson in missing))
    return collected


def collect(class_folder, target):
    """All submissions of a class, written to `target`, in the order of their names."""
    target.mkdir(parents=True, exist_ok=True)
    collected = []
    for path in sorted(class_folder.iterdir()):
        bare = path.name if path.is_dir() else without_suffix(path.name)
        if path.name.startswith(".") or bare is None:
            continue
        name = safe_name(bare, {one.name for one in collected} | {"lessons", "solutions"})
        collected.append(collect_one(path, target / name, name))
    known = {one.name for one in collected}
    for old in target.iterdir():
        if old.name not in known:
            shutil.rmtree(old)
    return collected
