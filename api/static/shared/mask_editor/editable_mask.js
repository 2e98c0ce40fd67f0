// An editable mask: its pixels and the undo history.

import { rasterizeLine, rasterizePolygon } from "./rasterize.js";

const IGNORED = 255;
const MAX_UNDO_BYTES = 2 ** 26; // the oldest steps are dropped first

export class EditableMask {
  /**
   * Starts with a mask {width, height, pixels}: 0 = good, other values = defects. With `hasClasses` each value is the
   * number of a class, and 255 an ignored area. `isBoxes`: it has rectangles around the defects, not their outlines.
   */
  constructor({ width, height, pixels, hasClasses, isBoxes = false }) {
    Object.assign(this, { width, height, hasClasses, first: pixels, pixels: pixels.slice() });
    this.firstIsBoxes = this.isBoxes = isBoxes;
    this.wasEdited = false;
    this.undone = [];
    this.done = [];
    this.before = null; // the pixels before the current step, or null
  }

  /** Its state as plain data, for `restore`. */
  get state() {
    const { pixels, first, isBoxes, done, undone, wasEdited } = this;
    return { pixels, first, isBoxes, done, undone, wasEdited };
  }

  /** Continues with a former state of this mask. */
  restore(state) {
    Object.assign(this, state);
  }

  get all() {
    return { left: 0, top: 0, right: this.width, bottom: this.height };
  }

  /** Whether it differs from the first mask. */
  get modified() {
    return this.wasEdited && this.pixels.some((value, at) => value !== this.first[at]);
  }

  /** Whether no pixel is defective. */
  get empty() {
    return !this.pixels.some((value) => value);
  }

  /** Whether a pixel has a class, so not only ignored areas are marked. */
  get hasDefects() {
    return this.pixels.some((value) => value && !(this.hasClasses && value === IGNORED));
  }

  /** The box of the marked pixels, or null. */
  get markedBox() {
    return differences(new Uint8Array(this.pixels.length), this.pixels, this.width);
  }

  /** Whether a step is in progress. */
  get pending() {
    return this.before !== null;
  }

  // === Steps ===

  /** Begins a step; finish it with `end` or `cancel`. */
  begin() {
    this.before = this.pixels.slice();
    this.editedBox = null;
  }

  /** Paints a stroke between two points {x, y}; returns the box of changed pixels, or null. */
  line(from, to, diameter, value) {
    return this.#cover((paint) => rasterizeLine(from, to, diameter, paint), value);
  }

  polygon(points, value) {
    return this.#cover((paint) => rasterizePolygon(points, paint), value);
  }

  /** Ends a step. A mask without defects has no boxes; what is drawn then is exact. */
  end() {
    if (this.editedBox) {
      this.#remember(this.done, this.#pieceOf(this.before, this.editedBox));
      this.isBoxes &&= this.hasDefects;
      this.undone = [];
      this.wasEdited = true;
    }
    this.before = null;
  }

  /** Discards the current step. */
  cancel() {
    this.pixels = this.before;
    this.before = null;
  }

  /** Clears the undo history, which can be much larger than the mask. */
  forgetSteps() {
    this.done = [];
    this.undone = [];
  }

  clear() {
    this.replace(new Uint8Array(this.pixels.length));
  }

  /** Replaces all pixels in one step; `isBoxes`: by rectangles around the defects. */
  replace(pixels, isBoxes = this.isBoxes) {
    this.begin();
    this.pixels = pixels;
    this.editedBox = differences(this.before, pixels, this.width);
    this.end();
    this.isBoxes = isBoxes && this.hasDefects;
  }

  /** Restores the first mask; can be undone. */
  reset() {
    this.replace(this.first.slice(), this.firstIsBoxes);
  }

  undo() {
    return this.#step(this.done, this.undone);
  }

  redo() {
    return this.#step(this.undone, this.done);
  }

  /** Reverts the last step of `from` and adds its inverse to `to`; returns whether there was one. */
  #step(from, to) {
    const step = from.pop();
    if (!step) return false;
    this.#remember(to, this.#pieceOf(this.pixels, step.box));
    paste(this.pixels, this.width, step);
    this.isBoxes = step.isBoxes;
    return true;
  }

  #pieceOf(pixels, box) {
    return { box, pixels: cut(pixels, this.width, box), isBoxes: this.isBoxes };
  }

  #remember(steps, step) {
    steps.push(step);
    let bytes = steps.reduce((sum, { pixels }) => sum + pixels.length, 0);
    while (bytes > MAX_UNDO_BYTES && steps.length > 1) bytes -= steps.shift().pixels.length;
  }

  #cover(shape, value) {
    let box = null;
    shape((y, from, to) => {
      const [start, end] = [Math.max(from, 0), Math.min(to, this.width)];
      if (y < 0 || y >= this.height || start >= end) return;
      this.pixels.fill(value, y * this.width + start, y * this.width + end);
      box = join(box, { left: start, top: y, right: end, bottom: y + 1 });
    });
    if (box) this.editedBox = join(this.editedBox, box);
    return box;
  }
}

function join(one, other) {
  if (!one) return other;
  return {
    left: Math.min(one.left, other.left),
    top: Math.min(one.top, other.top),
    right: Math.max(one.right, other.right),
    bottom: Math.max(one.bottom, other.bottom),
  };
}

/** The box of the pixels that differ, or null. */
function differences(before, after, width) {
  let box = null;
  for (let at = 0; at < after.length; at++) {
    if (before[at] === after[at]) continue;
    const [x, y] = [at % width, Math.floor(at / width)];
    box = join(box, { left: x, top: y, right: x + 1, bottom: y + 1 });
  }
  return box;
}

function cut(pixels, width, { left, top, right, bottom }) {
  const across = right - left;
  const piece = new Uint8Array(across * (bottom - top));
  for (let y = top; y < bottom; y++) piece.set(pixels.subarray(y * width + left, y * width + right), (y - top) * across);
  return piece;
}

function paste(pixels, width, { box: { left, top, right, bottom }, pixels: piece }) {
  const across = right - left;
  for (let y = top; y < bottom; y++) {
    pixels.set(piece.subarray((y - top) * across, (y - top + 1) * across), y * width + left);
  }
}
