#!/usr/bin/env python3
"""The decks: their excerpts, pictures, links, notes, times and figures are what they should be."""

import re
import sys
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SLIDES = REPOSITORY / "slides"
sys.path.insert(0, str(SLIDES))
import diagrams  # noqa: E402
import excerpts  # noqa: E402

NOTES = re.compile(r"<!--\n(\d+) min\.(.*?)-->", re.DOTALL)
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]*)\)")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)]*)\)")
FIGURE = re.compile(r"\d+(?:\.\d+)? (?:GB/s|ms|µs|%)")
# Where a figure on a slide may come from; what it is in there comes from commands of the repository.
SOURCES = [*REPOSITORY.glob("lessons/README.md"), *REPOSITORY.glob("lessons/*/*.md"), REPOSITORY / "sim/README.md"]


def slides_of(deck):
    """The slides of a deck, without its front matter."""
    return deck.read_text(encoding="utf-8").split("\n---\n")[1:]


class Decks(unittest.TestCase):
    def test_there_is_one_for_each_lesson_an_opening_and_a_closing_one(self):
        lessons = sorted(path.parent.name for path in REPOSITORY.glob("lessons/*/main.cpp"))
        self.assertEqual([deck.stem for deck in excerpts.decks()], ["0-opening", *lessons, "7-closing"])

    def test_excerpts_are_what_the_sources_have(self):
        for deck in excerpts.decks():
            with self.subTest(deck=deck.name):
                text = deck.read_text(encoding="utf-8")
                self.assertEqual(text, excerpts.filled(text), "remake them: python3 slides/excerpts.py")
                self.assertTrue(excerpts.BLOCK.search(text), "shows nothing of the course")

    def test_lesson_decks_show_code_of_the_solution_and_output_of_the_program(self):
        for deck in excerpts.decks():
            with self.subTest(deck=deck.name):
                if deck.stem in ("0-opening", "7-closing"):
                    continue
                text = deck.read_text(encoding="utf-8")
                self.assertIn(f'```cpp from="solutions/{deck.stem}/', text)
                self.assertIn(f'```text from="lessons/{deck.stem}/README.md"', text)
                self.assertIn("on the simulated node", text)

    def test_a_deck_takes_20_to_30_minutes_by_its_notes(self):
        for deck in excerpts.decks():
            with self.subTest(deck=deck.name):
                minutes = 0
                for number, slide in enumerate(slides_of(deck), start=1):
                    notes = NOTES.findall(slide)
                    self.assertEqual(len(notes), 1, f"slide {number} needs one comment that begins with its minutes")
                    minutes += int(notes[0][0])
                self.assertTrue(20 <= minutes <= 30, f"{minutes} minutes")

    def test_questions_are_answered_in_the_notes(self):
        for deck in excerpts.decks():
            with self.subTest(deck=deck.name):
                asking = [slide for slide in slides_of(deck) if re.search(r"^## Questions?$", slide, re.MULTILINE)]
                self.assertTrue(asking, "asks nothing")
                for slide in asking:
                    self.assertRegex(NOTES.search(slide)[2], "Answer")

    def test_pictures_and_linked_files_exist_and_pictures_are_described(self):
        for deck in excerpts.decks():
            with self.subTest(deck=deck.name):
                text = deck.read_text(encoding="utf-8")
                self.assertTrue(PICTURE.search(text), "has no diagram")
                for words, path in PICTURE.findall(text):
                    self.assertGreater(len(words), 30, f"{path}: say what is to be seen")
                    self.assertTrue((deck.parent / path).is_file(), path)
                for target in LINK.findall(text):
                    self.assertTrue((deck.parent / target.split("#")[0]).exists(), target)

    def test_every_figure_has_a_source(self):
        known = {figure for source in SOURCES for figure in FIGURE.findall(source.read_text(encoding="utf-8"))}
        for deck in excerpts.decks():
            with self.subTest(deck=deck.name):
                if deck.stem in ("0-opening", "7-closing"):
                    continue
                for slide in slides_of(deck):
                    if re.search(r"^## Questions?$", slide, re.MULTILINE):
                        continue  # what if
                    shown = NOTES.sub("", excerpts.BLOCK.sub("", slide))
                    unknown = set(FIGURE.findall(shown)) - known
                    self.assertEqual(unknown, set(), "not in a page of the lessons nor in sim/README.md")

    def test_the_closing_deck_has_the_whole_checklist(self):
        page = (REPOSITORY / "lessons/README.md").read_text(encoding="utf-8").split("## Checklist")[1]
        rows = len(re.findall(r"^\| (?!signal|---)", page, re.MULTILINE))
        deck = (SLIDES / "decks/7-closing.md").read_text(encoding="utf-8")
        shown = sum(len(re.findall(r"^\| (?!signal|---)", slide, re.MULTILINE))
                    for slide in deck.split("\n---\n") if "## Checklist" in slide)
        self.assertEqual(shown, rows)


class Diagrams(unittest.TestCase):
    def test_files_are_what_the_script_draws(self):
        for diagram in diagrams.DIAGRAMS:
            drawing = diagram()
            self.assertEqual(drawing.path.read_text(encoding="utf-8"), str(drawing), "remake: python3 slides/diagrams.py")

    def test_no_other_file_and_each_is_shown(self):
        drawn = {diagram().path for diagram in diagrams.DIAGRAMS}
        self.assertEqual(drawn, set((SLIDES / "diagrams").iterdir()))
        texts = "".join(deck.read_text(encoding="utf-8") for deck in excerpts.decks())
        for path in drawn:
            self.assertIn(f"diagrams/{path.name}", texts)


class Excerpts(unittest.TestCase):
    def test_a_function_ends_with_its_block(self):
        text = excerpts.excerpt("solutions/3-pinned-memory/pinned-memory.cu", "HostFrame make_pinned_frame")
        self.assertTrue(text.startswith("HostFrame make_pinned_frame("))
        self.assertTrue(text.endswith("\n}\n"))

    def test_what_is_not_there_is_named(self):
        for wish, words in ((("solutions/none.cu", "x"), "cannot be read"),
                            (("README.md", "no such text anywhere"), "has no \"no such"),
                            (("README.md", "For students", "no such text anywhere"), "behind \"For students\"")):
            with self.assertRaisesRegex(excerpts.ExcerptError, re.escape(words)):
                excerpts.excerpt(*wish)


if __name__ == "__main__":
    unittest.main()
