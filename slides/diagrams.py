#!/usr/bin/env python3
"""Draws the diagrams of the decks: slides/diagrams/*.svg.

    python3 slides/diagrams.py

One file a function below, in light and dark, with text that stays text. Rates are read from the table of measured
figures in sim/README.md.
"""

import html
import re
from pathlib import Path

SLIDES = Path(__file__).resolve().parent
FIGURES = SLIDES.parent / "sim" / "README.md"
WIDTH = 1120  # what a slide has room for, so that a pixel here is a pixel there

STYLE = """
text { font: 26px system-ui, sans-serif; fill: #1c1f24 }
.small { font-size: 22px } .strong { font-weight: 600 } .code { font-family: ui-monospace, monospace; font-size: 22px }
.back { fill: #ffffff } .host { fill: #eef1f5; stroke: #5b6675 } .gpu { fill: #e6f0ea; stroke: #2f7d5b }
.up { fill: #cfe3f3; stroke: #1f5f91 } .down { fill: #cdebe4; stroke: #14705f } .kernel { fill: #fbe0bd; stroke: #9a5a05 }
.wrong { fill: #f8d5d1; stroke: #a32417 } .lane { fill: #f4f5f7; stroke: none }
rect { stroke-width: 2 } line, path { stroke: #1c1f24; stroke-width: 3; fill: none } .tip { fill: #1c1f24; stroke: none }
line.wrong, path.wrong { stroke: #a32417 } .tip.wrong { fill: #a32417; stroke: none } text.wrong { fill: #a32417; stroke: none }
line.fine, path.fine { stroke: #14705f } .tip.fine { fill: #14705f; stroke: none } text.fine { fill: #14705f; stroke: none }
.dashed { stroke-dasharray: 9 7 }
@media (prefers-color-scheme: dark) {
  text { fill: #eceef1 }
  .back { fill: #16181d } .host { fill: #2a2f38; stroke: #97a3b4 } .gpu { fill: #1d3329; stroke: #63b58e }
  .up { fill: #1b3a54; stroke: #6fb3e8 } .down { fill: #153f37; stroke: #58c8b0 } .kernel { fill: #4a320f; stroke: #f0a742 }
  .wrong { fill: #4d1f1a; stroke: #f08b7e } .lane { fill: #20242b; stroke: none }
  line, path { stroke: #eceef1 } .tip { fill: #eceef1 }
  line.wrong, path.wrong { stroke: #f08b7e } .tip.wrong { fill: #f08b7e } text.wrong { fill: #f08b7e }
  line.fine, path.fine { stroke: #58c8b0 } .tip.fine { fill: #58c8b0 } text.fine { fill: #58c8b0 }
}
""".strip()


def measured(quantity):
    """The median that real H200s gave for a quantity, as the table says it, rounded to whole units."""
    row = re.search(rf"^\| {re.escape(quantity)} \| ([\d.]+) (\S+) \|", FIGURES.read_text(encoding="utf-8"), re.MULTILINE)
    if not row:
        raise SystemExit(f'{FIGURES} has no row "{quantity}"')
    return f"{float(row[1]):.0f} {row[2]}"


class Drawing:
    """An SVG that grows by boxes, arrows and texts."""

    def __init__(self, name, height, title, description):
        self.path = SLIDES / "diagrams" / f"{name}.svg"
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
            'aria-labelledby="title desc">',
            f'<title id="title">{html.escape(title)}</title>',
            f'<desc id="desc">{html.escape(description)}</desc>',
            f"<style>\n{STYLE}\n</style>",
            f'<rect class="back" width="{WIDTH}" height="{height}"/>',
        ]

    def text(self, x, y, words, cls="", anchor="middle"):
        self.parts.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}" class="{cls}">{html.escape(words)}</text>')

    def box(self, x, y, width, height, words="", cls="host", text_cls=""):
        """A box with its lines of text in the middle."""
        self.parts.append(f'<rect class="{cls}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>')
        lines = words.split("\n") if words else []
        for k, line in enumerate(lines):
            self.text(x + width / 2, y + height / 2 + 9 + 30 * (k - (len(lines) - 1) / 2), line, text_cls)

    def arrow(self, x1, y1, x2, y2, cls="", both=False):
        """Straight, horizontal or vertical, with its tip at (x2, y2)."""
        dx, dy = (x2 > x1) - (x2 < x1), (y2 > y1) - (y2 < y1)
        start = (x1 + 12 * dx, y1 + 12 * dy) if both else (x1, y1)
        self.parts.append(f'<line class="{cls}" x1="{start[0]}" y1="{start[1]}" x2="{x2 - 12 * dx}" y2="{y2 - 12 * dy}"/>')
        self._tip(x2, y2, dx, dy, cls)
        if both:
            self._tip(x1, y1, -dx, -dy, cls)

    def _tip(self, x, y, dx, dy, cls):
        wing = [(x - 16 * dx - 8 * dy, y - 16 * dy - 8 * dx), (x - 16 * dx + 8 * dy, y - 16 * dy + 8 * dx)]
        points = " ".join(f"{px},{py}" for px, py in [(x, y), *wing])
        self.parts.append(f'<polygon class="tip {cls.replace("dashed", "").strip()}" points="{points}"/>')

    def line(self, x1, y1, x2, y2, cls=""):
        self.parts.append(f'<line class="{cls}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>')

    def __str__(self):
        return "\n".join([*self.parts, "</svg>"]) + "\n"


def node():
    """The memories of a node, and the ways between them."""
    host_rate, inside = measured("H2D pinned 256 MiB"), measured("kernel copies inside the GPU 256 MiB")
    d = Drawing("node", 440, "The memories of a node",
                f"Host memory above, four GPUs below, each with memory of its own. PCIe, {host_rate} each way, joins every "
                f"GPU with the host. NVLink joins the GPUs. Inside a GPU a kernel copies at {inside}.")
    d.box(60, 20, 1000, 80, "host memory: pageable, or pinned", "host", "strong")
    for k in range(4):
        x = 60 + 260 * k
        d.arrow(x + 110, 100, x + 110, 210, both=True)
        d.box(x, 210, 220, 120, f"GPU {k}\nits own memory", "gpu")
        if k < 3:
            d.arrow(x + 220, 270, x + 260, 270, "fine", both=True)
    d.text(190, 150, "PCIe", "small", "start")
    d.text(190, 178, f"{host_rate}", "small", "start")
    d.text(450, 150, "each way,", "small", "start")
    d.text(450, 178, "at once", "small", "start")
    d.text(60, 375, "NVLink between the GPUs, or none: then copies go through the host", "fine", "start")
    d.text(60, 420, f"inside a GPU: {inside} (medians of three H200 machines)", anchor="start")
    return d


def address_spaces():
    """Lesson 1: one range of addresses, several owners."""
    d = Drawing("address-spaces", 440, "One range of addresses, an owner for each part",
                "A row of addresses: a part for the host, one for GPU 0, one for GPU 1. A kernel on GPU 0 uses memory of "
                "GPU 0. A kernel on GPU 1 that uses memory of GPU 0 fails with cudaErrorIllegalAddress.")
    d.text(60, 40, "addresses", "strong", "start")
    d.box(60, 60, 320, 90, "host memory", "host")
    d.box(400, 60, 320, 90, "memory of GPU 0", "gpu")
    d.box(740, 60, 320, 90, "memory of GPU 1", "gpu")
    d.box(400, 280, 320, 80, "kernel on GPU 0", "kernel")
    d.box(740, 280, 320, 80, "kernel on GPU 1", "kernel")
    d.arrow(560, 280, 560, 150, "fine")
    d.arrow(960, 280, 960, 150, "fine")
    d.line(800, 280, 800, 215, "wrong")
    d.line(800, 215, 670, 215, "wrong")
    d.arrow(670, 215, 670, 150, "wrong")
    d.text(60, 240, "current device: chosen by", "", "start")
    d.text(60, 274, "cudaSetDevice,", "code", "start")
    d.text(60, 308, "for each thread", "", "start")
    d.text(60, 415, "GPU 1 may not use memory of GPU 0: cudaErrorIllegalAddress (700)", "wrong", "start")
    return d


def peer_paths():
    """Lesson 2: the way with peer access, and the way without."""
    d = Drawing("peer-paths", 440, "A copy between two GPUs, with and without peer access",
                "With peer access a copy goes from GPU to GPU over the link, and a kernel can read the other memory. "
                "Without it the copy goes down to the host and up again, and a kernel cannot read across.")
    d.text(280, 40, "peer access open", "strong")
    d.text(840, 40, "no peer access", "strong")
    for left in (60, 620):
        d.box(left, 70, 440, 80, "host memory", "host")
        d.box(left, 250, 160, 100, "GPU 0", "gpu")
        d.box(left + 280, 250, 160, 100, "GPU 1", "gpu")
    d.arrow(220, 285, 340, 285, "fine")
    d.arrow(340, 320, 220, 320, "fine")
    d.text(280, 395, "copies: one transfer over the link", "fine")
    d.text(280, 430, "kernels: ordinary pointers", "fine")
    d.arrow(700, 250, 700, 150, "wrong")
    d.arrow(980, 150, 980, 250, "wrong")
    d.text(840, 205, "down and up again", "wrong")
    d.text(840, 395, "copies: right, but slow", "wrong")
    d.text(840, 430, "kernels: illegal access", "wrong")
    return d


def staging():
    """Lesson 3: what the driver does with pageable memory."""
    pageable, pinned = measured("H2D pageable 64 MiB"), measured("H2D pinned 64 MiB")
    d = Drawing("staging", 440, "Pageable memory is copied twice",
                f"From pageable memory a CPU core copies into the driver's pinned buffer, and the GPU fetches it from there: "
                f"{pageable}. From pinned memory the GPU fetches it at once: {pinned}.")
    d.text(60, 40, f"pageable: {pageable}", "strong wrong", "start")
    d.box(60, 60, 260, 100, "your buffer\n(pageable)", "wrong")
    d.arrow(320, 110, 450, 110, "wrong")
    d.text(385, 90, "CPU", "small")
    d.text(385, 145, "copies", "small")
    d.box(450, 60, 270, 100, "driver's buffer\n(pinned)", "host")
    d.arrow(720, 110, 850, 110)
    d.text(785, 90, "DMA", "small")
    d.box(850, 60, 210, 100, "GPU", "gpu")
    d.text(60, 250, f"pinned: {pinned}", "strong fine", "start")
    d.box(60, 270, 260, 100, "your buffer\n(pinned)", "host")
    d.arrow(320, 320, 850, 320, "fine")
    d.text(585, 300, "DMA, while the CPU does something else", "small")
    d.box(850, 270, 210, 100, "GPU", "gpu")
    d.text(60, 420, "H2D, 64 MiB, medians of three H200 machines", "small", "start")
    return d


def warp_requests():
    """Lesson 4: how the threads of a warp ask for mapped memory."""
    d = Drawing("warp-requests", 440, "How a warp asks for mapped memory",
                "Above, each thread reads a row of its own, so one load of the warp asks for 32 places far apart. Below, "
                "the warp reads one row together, so one load asks for 128 neighbouring bytes.")
    d.text(60, 40, "a thread, a row: each load asks for 32 places far apart (8 shown)", "strong wrong", "start")
    for k in range(8):
        x = 60 + 80 * k
        d.box(x, 60, 56, 44, f"t{k}", "kernel", "small")
        d.arrow(x + 28, 104, x + 28, 150, "wrong")
        d.box(x, 150, 56, 44, "", "wrong")
    d.text(715, 134, "32 requests over the link,", anchor="start")
    d.text(715, 168, "4 bytes of each are used", anchor="start")
    d.text(60, 255, "a warp, a row: each load asks for 128 neighbouring bytes", "strong fine", "start")
    for k in range(8):
        x = 60 + 80 * k
        d.box(x, 275, 56, 44, f"t{k}", "kernel", "small")
        d.arrow(x + 28, 319, x + 28, 365, "fine")
    d.box(60, 365, 616, 44, "neighbours in host memory", "down", "small")
    d.text(725, 349, "one request,", anchor="start")
    d.text(725, 383, "all of it is used", anchor="start")
    return d


def pool_order():
    """Lesson 5: memory that is freed in one stream and used last in another."""
    d = Drawing("pool-order", 440, "Freed in which stream?",
                "Wrong: the solver's stream frees the copy right behind making it, so its next step gets the same memory and "
                "writes to it while the disk's stream has still to read it. Right: the disk's stream frees it behind its "
                "own last use.")
    for top, name, cls in ((55, "freed in the solver's stream", "wrong"), (265, "freed in the stream of the last use", "fine")):
        d.text(60, top - 18, name, f"strong {cls}", "start")
        for row, label in ((0, "solver"), (1, "disk")):
            d.box(180, top + 72 * row, 880, 56, "", "lane")
            d.text(60, top + 72 * row + 37, label, "", "start")
    d.box(190, 57, 150, 52, "copy to A", "kernel", "small")
    d.box(350, 57, 110, 52, "free A", "wrong", "small")
    d.box(470, 57, 330, 52, "next step gets A, writes", "wrong", "small")
    d.box(560, 129, 330, 52, "waits, then reads A", "up", "small")
    d.text(905, 163, "wrong data", "wrong small", "start")
    d.box(190, 267, 150, 52, "copy to A", "kernel", "small")
    d.box(350, 267, 330, 52, "next step gets B, writes", "kernel", "small")
    d.box(560, 339, 330, 52, "waits, then reads A", "up", "small")
    d.box(900, 339, 110, 52, "free A", "down", "small")
    d.text(180, 430, "time", "small", "start")
    d.arrow(240, 422, 1060, 422)
    return d


def double_buffer():
    """Lesson 6: the same chunks in one lane, and in three."""
    d = Drawing("double-buffer", 440, "One lane, and three",
                "In one lane upload, kernel and download of a chunk follow each other, and the chunks too. In three lanes the "
                "kernel of one chunk runs while others are copied: nine chunks in little more than the time of three.")
    unit = 90
    stages = (("up", "up"), ("kernel", "run"), ("down", "down"))
    d.text(60, 40, "one lane: the sum of the stages", "strong wrong", "start")
    d.box(60, 55, 1000, 60, "", "lane")
    for chunk in range(3):
        for k, (cls, word) in enumerate(stages):
            d.box(62 + unit * (3 * chunk + k), 59, unit - 4, 52, f"{word} {chunk}", cls, "small")
    d.text(60, 175, "a lane for each chunk in flight: the longest stage", "strong fine", "start")
    for lane in range(3):
        y = 190 + 68 * lane
        d.box(60, y, 1000, 60, "", "lane")
        for turn in range(3):
            chunk = 3 * turn + lane
            for k, (cls, word) in enumerate(stages):
                d.box(62 + unit * (chunk + k), y + 4, unit - 4, 52, f"{word} {chunk}", cls, "small")
    d.text(60, 430, "time", "small", "start")
    d.arrow(120, 422, 1060, 422)
    return d


def combined_path():
    """The closing deck: the whole path."""
    d = Drawing("combined-path", 440, "The combined data path",
                "Pinned host memory sends chunks by cudaMemcpyAsync to every GPU and gets results back the same way. The "
                "GPUs exchange boundaries by peer copy. Each GPU takes temporaries from its memory pool. Streams and events "
                "order all of it.")
    d.box(60, 15, 1000, 70, "host: pinned memory (lesson 3), mapped where used once (4)", "host")
    for k in range(3):
        x = 60 + 375 * k
        d.arrow(x + 80, 85, x + 80, 180, "fine")
        d.arrow(x + 170, 180, x + 170, 85, "fine")
        d.box(x, 180, 250, 90, f"GPU {k}: a shard\n(lesson 1)", "gpu")
        d.box(x + 25, 270, 200, 64, "pool (lesson 5)", "down")
        if k < 2:
            d.arrow(x + 250, 225, x + 375, 225, "fine", both=True)
            d.text(x + 312, 205, "peer", "small")
            d.text(x + 312, 260, "(2)", "small")
    d.text(250, 142, "chunk by chunk", "small", "start")
    d.text(625, 142, "and back (lesson 6)", "small", "start")
    d.text(60, 385, "order: streams, and events between them; the host waits only", anchor="start")
    d.text(60, 420, "for a buffer that it needs again", anchor="start")
    return d


DIAGRAMS = [node, address_spaces, peer_paths, staging, warp_requests, pool_order, double_buffer, combined_path]


def main():
    for diagram in DIAGRAMS:
        drawing = diagram()
        drawing.path.parent.mkdir(exist_ok=True)
        drawing.path.write_text(str(drawing), encoding="utf-8")
        print(f"{drawing.path}: remade")


if __name__ == "__main__":
    main()
