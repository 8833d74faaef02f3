// Where Chromium is; undefined when there is none.

import { accessSync, constants } from "node:fs";
import path from "node:path";

const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

function isProgram(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export const chromium = [
  process.env.CHROME_PATH,
  ...names.flatMap((name) => process.env.PATH.split(path.delimiter).map((folder) => path.join(folder, name))),
].find((file) => file && isProgram(file));
