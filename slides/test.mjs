// Looks at the built decks and at the diagrams in a browser: nothing overflows, contrast is enough, every slide has
// its notes. npm run build first. SCREENSHOTS=folder keeps a picture of each slide.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";
import { chromium } from "./chromium.mjs";

const slides = import.meta.dirname;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf-8");
const schemes = ["light", "dark"];
const decks = readdirSync(path.join(slides, "decks")).map((name) => path.parse(name).name);
const drawings = [
  ...readdirSync(path.join(slides, "diagrams")).map((name) => path.join(slides, "diagrams", name)),
  ...["starter", "solution"].map((name) => path.join(slides, "../lessons/6-async-transfer", `${name}-timeline.svg`)),
];

let browser;
before(async () => {
  assert.ok(chromium, "there is no Chromium. Install one (Debian: apt-get install chromium), or name it in CHROME_PATH");
  browser = await puppeteer.launch({ executablePath: chromium, args: process.getuid() === 0 ? ["--no-sandbox"] : [] });
});
after(() => browser?.close());

async function openPage(scheme) {
  const page = await browser.newPage();
  await page.setViewport({ width: 1280, height: 720 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  return page;
}

// What sticks out of the slide that is shown, or out of a box in it, in words.
function overflowing() {
  const room = 4; // pixels, for rounding
  const slide = document.querySelector(".bespoke-marp-active section");
  const frame = slide.getBoundingClientRect();
  const found = [];
  for (const element of slide.querySelectorAll("*")) {
    const name = `<${element.localName}> "${(element.textContent || element.alt || "").trim().slice(0, 40)}"`;
    const box = element.getBoundingClientRect();
    const bottom = element.localName === "footer" ? frame.bottom : frame.bottom - 48;
    if (box.right > frame.right - 60 + room || box.left < frame.left + 60 || box.bottom > bottom + room)
      found.push(`${name} sticks out of the slide`);
    const cut = element.scrollWidth > element.clientWidth + room || element.scrollHeight > element.clientHeight + room;
    if (["pre", "td", "th"].includes(element.localName) && cut) found.push(`${name} is cut off`);
    if (parseFloat(getComputedStyle(element).fontSize) < 18) found.push(`${name} is too small for the last row`);
  }
  return found;
}

for (const deck of decks) {
  describe(deck, () => {
    for (const scheme of schemes) {
      test(`fits and is legible, ${scheme}`, async () => {
        const page = await openPage(scheme);
        await page.goto(pathToFileURL(path.join(slides, "build", `${deck}.html`)).href);
        await page.evaluate(axe);
        const count = await page.evaluate(() => document.querySelectorAll("svg[data-marpit-svg]").length);
        assert.ok(count >= 8, `only ${count} slides`);
        const problems = [];
        for (let number = 1; number <= count; ++number) {
          await page.evaluate((hash) => { location.hash = hash; }, `#${number}`);
          await page.waitForFunction((n) => document.querySelectorAll("svg[data-marpit-svg]")[n - 1]
            .classList.contains("bespoke-marp-active"), {}, number);
          problems.push(...(await page.evaluate(overflowing)).map((words) => `slide ${number}: ${words}`));
          const judged = await page.evaluate(() => globalThis.axe.run(".bespoke-marp-active section",
            { runOnly: ["color-contrast", "image-alt", "link-name", "empty-heading"], resultTypes: ["violations"] }));
          for (const { id, nodes } of judged.violations)
            problems.push(`slide ${number}: ${id}: ${nodes.map((node) => node.html.slice(0, 80)).join("; ")}`);
          if (judged.incomplete.some(({ id }) => id === "color-contrast"))
            problems.push(`slide ${number}: contrast not decided`);
          if (process.env.SCREENSHOTS) {
            const folder = path.join(process.env.SCREENSHOTS, scheme);
            mkdirSync(folder, { recursive: true });
            await page.screenshot({ path: path.join(folder, `${deck}-${String(number).padStart(2, "0")}.png`) });
          }
        }
        await page.close();
        assert.deepEqual(problems, []);
      });
    }

    test("every slide has its notes", () => {
      const html = readFileSync(path.join(slides, "build", `${deck}.html`), "utf-8");
      const count = html.match(/<svg data-marpit-svg/g).length;
      const notes = html.match(/<div class="bespoke-marp-note"[^>]*><p>\d+ min\./g) ?? [];
      assert.equal(notes.length, count);
    });
  });
}

// Texts of a drawing that stick out of it or of their box, or that stand too faintly on what is behind them.
function badTexts() {
  const svg = document.querySelector("svg");
  const frame = svg.getBoundingClientRect();
  const boxes = [...svg.querySelectorAll("rect")];
  const channels = (colour) => colour.match(/[\d.]+/g).slice(0, 3).map((value) => value / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  const luminance = (colour) => channels(colour).reduce((sum, value, k) => sum + value * [0.2126, 0.7152, 0.0722][k], 0);
  const fill = (element) => getComputedStyle(element).fill;
  const found = [];
  for (const text of svg.querySelectorAll("text")) {
    const box = text.getBoundingClientRect();
    const x = box.left + box.width / 2;
    const y = box.top + box.height / 2;
    if (box.left < frame.left || box.right > frame.right || box.bottom > frame.bottom)
      found.push(`"${text.textContent}" sticks out`);
    const behind = boxes.filter((rect) => {
      const area = rect.getBoundingClientRect();
      return area.left <= x && x <= area.right && area.top <= y && y <= area.bottom;
    }).at(-1);
    const area = behind.getBoundingClientRect();
    if (box.left < area.left || box.right > area.right) found.push(`"${text.textContent}" sticks out of its box`);
    const [dark, light] = [luminance(fill(text)), luminance(fill(behind))].sort((a, b) => a - b);
    const contrast = (light + 0.05) / (dark + 0.05);
    if (contrast < 4.5) found.push(`"${text.textContent}" has a contrast of ${contrast.toFixed(1)}`);
  }
  return found;
}

for (const drawing of drawings) {
  for (const scheme of schemes) {
    test(`${path.basename(drawing)} is legible, ${scheme}`, async () => {
      const page = await openPage(scheme);
      await page.setContent(`<body style="margin:0">${readFileSync(drawing, "utf-8")}</body>`);
      assert.deepEqual(await page.evaluate(badTexts), []);
      await page.close();
    });
  }
}
