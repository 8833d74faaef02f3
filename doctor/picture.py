#!/usr/bin/env python3
"""Makes the picture of the README: the doctor's page about a simulated node, photographed by Chromium.

    python3 doctor/picture.py

It overwrites doctor/h200x8.png. Needs Chromium (Debian: apt-get install chromium).
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
NODE = "h200x8"
SIZE = "1300,1130"


def main():
    chromium = os.environ.get("CHROME_PATH") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("there is no Chromium (Debian: apt-get install chromium); CHROME_PATH may name one")
    picture = REPOSITORY / "doctor" / f"{NODE}.png"
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "doctor.html"
        subprocess.run([str(REPOSITORY / "course"), "doctor", "--rig", "sim", "--node", NODE, "--html", str(page)],
                       check=True, stdout=subprocess.DEVNULL)
        # Chromium's own sandbox refuses to work for root.
        root = ["--no-sandbox"] if os.getuid() == 0 else []
        subprocess.run([chromium, "--headless", *root, "--hide-scrollbars", f"--window-size={SIZE}",
                        f"--screenshot={picture}", page.as_uri()], check=True, stderr=subprocess.DEVNULL)
    print(f"{picture}: remade")


if __name__ == "__main__":
    main()
