#!/usr/bin/env python3
"""Puts code and output into the decks from where they really are, so that no slide shows what is no longer so.

    python3 slides/excerpts.py

A block of a deck whose first line reads

    ```cpp from="solutions/3-pinned-memory/pinned-memory.cu" at="HostFrame make_pinned_frame"

is filled with what that file has from the first line that contains the text of `at` to the end of its statement or
block; with `to="text"` it goes as far as the first line from there that contains that text.
"""

import re
import textwrap
from pathlib import Path

SLIDES = Path(__file__).resolve().parent
REPOSITORY = SLIDES.parent
BLOCK = re.compile(r"^```(?P<info>\w+ from=.*)\n(?P<body>(?:.*\n)*?)```$", re.MULTILINE)
WISH = re.compile(r'(\w+)="([^"]*)"')


class ExcerptError(Exception):
    """What cannot be found, in one sentence."""


def decks():
    return sorted(SLIDES.glob("decks/*.md"))


def end_of_statement(lines, first):
    """The last line of the statement or block that begins in line `first`."""
    depth = 0
    for number in range(first, len(lines)):
        code = lines[number].split("//")[0]
        depth += sum(code.count(c) for c in "({[") - sum(code.count(c) for c in ")}]")
        if depth == 0 and code.rstrip().endswith((";", "}")):
            return number
    raise ExcerptError(f'what begins with "{lines[first].strip()}" has no end')


def excerpt(path, at, to=None):
    """The lines that a block asks for, without their common indentation."""
    try:
        lines = (REPOSITORY / path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ExcerptError(f"{path} cannot be read: {error.strerror}") from error
    first = next((number for number, line in enumerate(lines) if at in line), None)
    if first is None:
        raise ExcerptError(f'{path} has no "{at}"')
    if to is None:
        last = end_of_statement(lines, first)
    else:
        last = next((number for number in range(first, len(lines)) if to in lines[number]), None)
        if last is None:
            raise ExcerptError(f'{path} has no "{to}" behind "{at}"')
    return textwrap.dedent("\n".join(lines[first:last + 1])) + "\n"


def filled(text):
    """The text of a deck with all its blocks filled."""
    def fill(match):
        wishes = dict(WISH.findall(match["info"]))
        return f"```{match['info']}\n{excerpt(wishes['from'], wishes['at'], wishes.get('to'))}```"
    return BLOCK.sub(fill, text)


def main():
    for deck in decks():
        text = deck.read_text(encoding="utf-8")
        try:
            new = filled(text)
        except ExcerptError as error:
            raise SystemExit(f"{deck}: {error}") from error
        if new != text:
            deck.write_text(new, encoding="utf-8")
            print(f"{deck}: excerpts remade")


if __name__ == "__main__":
    main()
