// Draws the photograph with the mask on it, at the resolution of the screen.

import { Easel, enableZoom, strokeClearly } from "../shared/easel.js";
import { outline, runAt } from "../shared/regions.js";
import { moveWith } from "./gestures.js";

const FILL = "#ff5c28";
const INSPECTED = "#8cc85a";
const MOST_NUMBERS = 40;
const NEAR_PX = 6; // a thin scratch can be hit, also by a finger

export class Viewer {
  /** `onPoint(region)` is told the region below the pointer, `onPick(region)` the one that was pressed. */
  constructor(canvas, { onPoint, onPick }) {
    this.found = { regions: [], runs: [] };
    this.opacity = 0.4;
    this.highlighted = null;
    const room = () => roomOf(canvas);
    this.easel = new Easel(canvas, { room, paint: (context, scale) => this.#paint(context, scale), onPlaced: enableZoom });
    this.view = this.easel.view;
    moveWith(canvas, this.view, () => this.draw());
    canvas.addEventListener("pointermove", (event) => onPoint(this.#regionAt(event)));
    canvas.addEventListener("pointerleave", () => onPoint(null));
    canvas.addEventListener("click", (event) => onPick(this.#regionAt(event)));
  }

  /**
   * Shows a photograph of `size` {width, height}; `bitmap` null draws a grey ground. `inspected` are the
   * contours outside of which nothing was looked at; null: there are none.
   */
  show(bitmap, size, inspected = null) {
    this.inspected = inspected && pathOf(inspected);
    this.easel.take(bitmap, size);
    this.mark({ regions: [], runs: [] });
  }

  /** Puts another mask on the photograph. */
  mark(found) {
    this.found = found;
    this.border = outline(found.runs);
    this.area = areaOf(found.runs);
    this.highlight(null);
  }

  highlight(region) {
    this.highlighted = region;
    this.draw();
  }

  setOpacity(opacity) {
    this.opacity = opacity;
    this.draw();
  }

  /** Brings a region into the middle, as far as the zoom lets it. */
  centre({ box: [x, y, width, height] }) {
    this.view.centre = { x: x + width / 2, y: y + height / 2 };
    this.draw();
  }

  draw() {
    this.easel.draw();
  }

  #paint(context, scale) {
    if (this.inspected) strokeClearly(context, this.inspected, scale, 1.5, INSPECTED);
    this.#drawMask(context, scale);
    if (this.highlighted) this.#drawHighlight(context, scale, this.highlighted);
    if (this.found.regions.length <= MOST_NUMBERS) this.#drawNumbers(context, scale);
  }

  #drawMask(context, scale) {
    context.globalAlpha = this.opacity;
    context.fillStyle = FILL;
    context.fill(this.area);
    context.globalAlpha = 1;
    strokeClearly(context, this.border, scale, 1.5, FILL);
  }

  #drawHighlight(context, scale, region) {
    const runs = this.found.runs.filter((run) => run.region === region);
    const margin = (4 * (window.devicePixelRatio || 1)) / scale;
    const [x, y, width, height] = region.box;
    const box = new Path2D();
    box.rect(x - margin, y - margin, width + 2 * margin, height + 2 * margin);
    strokeClearly(context, outline(runs), scale, 2.5, "#ffffff");
    strokeClearly(context, box, scale, 2, "#ffffff");
  }

  #drawNumbers(context, scale) {
    const dense = window.devicePixelRatio || 1;
    const height = (15 * dense) / scale;
    context.font = `600 ${(11 * dense) / scale}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (const region of [...this.found.regions].reverse()) {
      const text = String(region.number);
      const width = Math.max(height, context.measureText(text).width + height * 0.6);
      const x = clamp(region.box[0] - width, 0, this.view.size.width - width);
      const y = clamp(region.box[1] - height, 0, this.view.size.height - height);
      context.fillStyle = region === this.highlighted ? "#ffffff" : "#1d1d1f";
      context.fillRect(x, y, width, height);
      context.fillStyle = region === this.highlighted ? "#1d1d1f" : "#ffffff";
      context.fillText(text, x + width / 2, y + height * 0.54);
    }
  }

  #regionAt(event) {
    if (!this.view.size) return null;
    const { x, y } = this.view.at(event.offsetX, event.offsetY);
    const slack = NEAR_PX / this.view.scale;
    return runAt(this.found.runs, Math.floor(x), Math.floor(y))?.region ?? regionNear(this.found.regions, x, y, slack);
  }
}

/** As wide as the frame, and as high as the style lets the canvas be. */
function roomOf(canvas) {
  const across = canvas.parentElement.clientWidth;
  return { across, down: parseFloat(getComputedStyle(canvas).maxHeight) || across };
}

function areaOf(runs) {
  const path = new Path2D();
  for (const { y, start, end } of runs) path.rect(start, y, end - start, 1);
  return path;
}

/** Contours run through the centres of pixels. */
function pathOf(polygons) {
  const path = new Path2D();
  for (const contour of polygons.flatMap(({ outer, holes }) => [outer, ...holes])) {
    contour.forEach(([x, y], index) => path[index ? "lineTo" : "moveTo"](x + 0.5, y + 0.5));
    path.closePath();
  }
  return path;
}

function regionNear(regions, x, y, slack) {
  const inside = ({ box: [left, top, width, height] }) =>
    x >= left - slack && x < left + width + slack && y >= top - slack && y < top + height + slack;
  return regions.findLast(inside) ?? null;
}

function clamp(value, least, most) {
  return Math.min(Math.max(value, least), Math.max(least, most));
}
