// Marks a region by clicks on it and beside it; the service finds its outline.

const MARK_PX = 5; // screen pixels

export class ClickTool {
  /**
   * `segment(clicks)` resolves to the region {left, top, width, height, pixels} that clicks [{x, y, is_defect}] describe,
   * `pixels` above 0 inside, or to null; calls `onProblem(error)` if it fails.
   */
  constructor({ maskCanvas, brushStyle, onStep, clicksBeside, segment, onProblem }) {
    Object.assign(this, { maskCanvas, brushStyle, onStep, clicksBeside, segment, onProblem });
    this.acceptsSecondButton = true;
    this.reset();
  }

  /** Adds a click: on the defect, or beside it with Shift, the second button or if the toolbar says so. */
  down(point, { button, shiftKey }) {
    const { width, height, pixels } = this.maskCanvas.drawing;
    const isDefect = button !== 2 && !shiftKey && !this.clicksBeside();
    if (!isDefect && !this.clicks.length) return;
    this.first ??= pixels.slice();
    const place = (value, size) => Math.min(Math.max(Math.floor(value), 0), size - 1);
    this.#change([...this.clicks, { x: place(point.x, width), y: place(point.y, height), is_defect: isDefect }]);
  }

  move() {}

  up() {}

  cancel() {
    this.removeLastPoint();
  }

  hover() {}

  /** Removes the last click; returns whether there was one. */
  removeLastPoint() {
    if (!this.clicks.length) return false;
    this.#change(this.clicks.slice(0, -1));
    return true;
  }

  /** Ends the region: further clicks are about another one. */
  reset() {
    this.clicks = [];
    this.first = null; // the mask before the first click
    this.request = (this.request ?? 0) + 1; // answers to earlier requests are ignored
    this.maskCanvas.preview = null;
  }

  async #change(clicks) {
    this.clicks = clicks;
    const request = ++this.request;
    this.#showClicks();
    try {
      const region = clicks.length ? await this.segment(clicks) : null;
      if (request === this.request) this.#apply(region);
    } catch (error) {
      if (request !== this.request) return;
      this.clicks = clicks.slice(0, -1);
      this.#showClicks();
      this.onProblem(error);
    }
  }

  #apply(region) {
    this.maskCanvas.drawing.replace(withRegion(this.first, this.maskCanvas.drawing.width, region, this.brushStyle().value));
    this.onStep();
    if (!this.clicks.length) this.first = null;
    this.#showClicks();
  }

  /** Shows clicks on the defect as circles and others as crosses. */
  #showClicks() {
    const path = new Path2D();
    const size = MARK_PX / this.maskCanvas.view.scale;
    for (const { x, y, is_defect: isDefect } of this.clicks.map((click) => ({ ...click, x: click.x + 0.5, y: click.y + 0.5 }))) {
      if (isDefect) {
        path.moveTo(x + size, y);
        path.arc(x, y, size, 0, 2 * Math.PI);
      } else {
        path.moveTo(x - size, y - size);
        path.lineTo(x + size, y + size);
        path.moveTo(x - size, y + size);
        path.lineTo(x + size, y - size);
      }
    }
    this.maskCanvas.preview = this.clicks.length ? { path, color: "#ffffff" } : null;
    this.maskCanvas.draw();
  }
}

/** A copy of a mask of `width` px with `value` inside a region; the region may be null. */
function withRegion(mask, width, region, value) {
  const pixels = mask.slice();
  if (!region) return pixels;
  for (let y = 0; y < region.height; y++) {
    for (let x = 0; x < region.width; x++) {
      if (region.pixels[y * region.width + x]) pixels[(region.top + y) * width + region.left + x] = value;
    }
  }
  return pixels;
}
