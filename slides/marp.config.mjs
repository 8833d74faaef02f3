// How Marp builds the decks: pictures go into the files, so that a deck is one file to hand on.

import { readFileSync } from "node:fs";
import path from "node:path";

const slides = import.meta.dirname;
const decks = path.join(slides, "decks");

function inlinePictures(markdown) {
  const image = markdown.renderer.rules.image;
  markdown.renderer.rules.image = (tokens, index, options, env, self) => {
    const source = tokens[index].attrGet("src");
    if (source.endsWith(".svg")) {
      const svg = readFileSync(path.join(decks, source)).toString("base64");
      tokens[index].attrSet("src", `data:image/svg+xml;base64,${svg}`);
    }
    return image(tokens, index, options, env, self);
  };
}

export default {
  inputDir: decks,
  output: path.join(slides, "build"),
  themeSet: path.join(slides, "theme.css"),
  engine: ({ marp }) => marp.use(inlinePictures),
  html: false,
  options: { markdown: { breaks: false }, emoji: { shortcode: false, unicode: false }, math: false },
};
