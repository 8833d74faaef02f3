// Builds all decks into slides/build/: HTML, and PDF where there is a Chromium.

import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import path from "node:path";
import { marpCli } from "@marp-team/marp-cli";
import { chromium } from "./chromium.mjs";

const slides = import.meta.dirname;

async function marp(...options) {
  const code = await marpCli(["--config-file", path.join(slides, "marp.config.mjs"), ...options]);
  if (code !== 0) process.exit(code);
}

// The decks show what the sources have now.
for (const script of ["diagrams.py", "excerpts.py"]) {
  execFileSync("python3", [path.join(slides, script)], { stdio: ["ignore", "ignore", "inherit"] });
}
rmSync(path.join(slides, "build"), { recursive: true, force: true });
await marp();
if (chromium) {
  // Chromium's own sandbox refuses to work for root, as in most containers.
  if (process.getuid() === 0) process.env.CHROME_NO_SANDBOX = "1";
  await marp("--pdf", "--pdf-notes", "--pdf-outlines", "--browser-path", chromium);
} else {
  console.log("No PDF: there is no Chromium. Install one (Debian: apt-get install chromium), or name it in CHROME_PATH.");
}
