// The mask as a canvas: pixels in the colour of their class, and outlines.

import { outline } from "../regions.js";

const COLORS = ["#ff5c28", "#2fb8ff", "#e05cff", "#ffd21f", "#3ddc84", "#ff6fa8", "#9c8cff", "#00d1c1", "#c8e600"];

const IGNORED_COLOR = "#a8b0b4";

/** The colour of a mask value. 255 is the defect of masks without classes, and an ignored area in others. */
export function classColor(value, hasClasses) {
  if (value === 255) return hasClasses ? IGNORED_COLOR : COLORS[0];
  return COLORS[(value - 1) % COLORS.length];
}

export class MaskLayer {
  constructor({ width, height }) {
    this.canvas = document.createElement("canvas");
    Object.assign(this.canvas, { width, height });
    this.borders = [];
  }

  /** Repaints a `box` without outlines, while a stroke is drawn. */
  update(drawing, { left, top, right, bottom }) {
    const image = new ImageData(right - left, bottom - top);
    const colors = new Uint32Array(image.data.buffer);
    const palette = PALETTES[Number(drawing.hasClasses)];
    for (let y = top, at = 0; y < bottom; y++) {
      for (let x = left; x < right; x++, at++) colors[at] = palette[drawing.pixels[y * drawing.width + x]];
    }
    this.canvas.getContext("2d").putImageData(image, left, top);
    this.borders = [];
  }

  /** Repaints the whole mask with its outlines. */
  redrawAll(drawing) {
    this.update(drawing, drawing.all);
    this.borders = [...runsByValue(drawing)].map(([value, runs]) => ({ color: classColor(value, drawing.hasClasses), path: outline(runs) }));
  }
}

/** RGBA bytes by mask value, without and with classes; 0 is transparent. */
const PALETTES = [false, true].map((hasClasses) => Uint32Array.from({ length: 256 }, (_, value) => {
  if (!value) return 0;
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(classColor(value, hasClasses).slice(at, at + 2), 16));
  return new Uint32Array(new Uint8Array([red, green, blue, 255]).buffer)[0];
}));

function runsByValue({ pixels, width, height }) {
  const found = new Map();
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; ) {
      const value = pixels[y * width + x];
      const start = x;
      while (x < width && pixels[y * width + x] === value) x++;
      if (!value) continue;
      if (!found.has(value)) found.set(value, []);
      found.get(value).push({ y, start, end: x });
    }
  }
  return found;
}
