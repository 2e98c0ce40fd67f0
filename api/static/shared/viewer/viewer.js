// Draws the photograph with its mask at screen resolution.

import { contourPath, PhotographCanvas, updateZoomButtons, strokeWithOutline } from "./photograph_canvas.js";
import { areaPath, outline, runAt } from "../regions.js";
import { drawDefects, drawZones, NO_PLAN } from "../plan_zones.js";
import { enablePanZoom } from "./pan_zoom.js";

const FILL = "#ff5c28";
const INSPECTED = "#8cc85a";
const MAX_NUMBERED = 40;
const HIT_TOLERANCE_PX = 6; // makes thin scratches selectable, also by finger

export class Viewer {
  /** Calls `onHover(region)` for the region below the pointer, `onSelect(region)` for the clicked one. */
  constructor(canvas, { onHover = () => {}, onSelect = () => {} } = {}) {
    this.found = { regions: [], runs: [] };
    this.opacity = 0.4;
    this.heatMap = null;
    this.highlighted = null;
    this.plan = NO_PLAN;
    this.canvas = new PhotographCanvas(canvas, {
      availableSize: () => availableSize(canvas),
      paint: (context, scale) => this.#paint(context, scale),
      onLayout: updateZoomButtons,
    });
    this.view = this.canvas.view;
    enablePanZoom(canvas, this.view, () => this.draw());
    canvas.addEventListener("pointermove", (event) => onHover(this.#regionAt(event)));
    canvas.addEventListener("pointerleave", () => onHover(null));
    canvas.addEventListener("click", (event) => onSelect(this.#regionAt(event)));
  }

  /**
   * Shows a photograph of `size` {width, height}; without `bitmap` a grey background. `inspected` are the contours
   * of the inspected area; null = the whole photograph.
   */
  show(bitmap, size, inspected = null) {
    this.inspected = inspected && contourPath(inspected);
    this.plan = NO_PLAN;
    this.canvas.setPhotograph(bitmap, size);
    this.setMask({ regions: [], runs: [] });
  }

  /** Replaces the mask. */
  setMask(found) {
    this.found = found;
    this.border = outline(found.runs);
    this.area = areaPath(found.runs);
    this.highlight(null);
  }

  /** Draws zones and deciding defects of an inspection plan, as of `planDrawing`. */
  setPlan(plan) {
    this.plan = plan;
    this.draw();
  }

  /** Draws an image over the photograph, below the mask; null = none. */
  setHeatMap(image) {
    this.heatMap = image;
    this.draw();
  }

  highlight(region) {
    this.highlighted = region;
    this.draw();
  }

  setOpacity(opacity) {
    this.opacity = opacity;
    this.draw();
  }

  /** Centres a region as far as the zoom allows. */
  centre({ box: [x, y, width, height] }) {
    this.view.centre = { x: x + width / 2, y: y + height / 2 };
    this.draw();
  }

  draw() {
    this.canvas.draw();
  }

  #paint(context, scale) {
    if (this.heatMap) context.drawImage(this.heatMap, 0, 0, this.view.size.width, this.view.size.height);
    if (this.inspected) strokeWithOutline(context, this.inspected, scale, 1.5, INSPECTED);
    drawZones(context, scale, this.plan.zones);
    this.#drawMask(context, scale);
    drawDefects(context, scale, this.plan.defects);
    if (this.highlighted) this.#drawHighlight(context, scale, this.highlighted);
    if (this.found.regions.length <= MAX_NUMBERED) this.#drawNumbers(context, scale);
  }

  #drawMask(context, scale) {
    context.globalAlpha = this.opacity;
    context.fillStyle = FILL;
    context.fill(this.area);
    context.globalAlpha = 1;
    strokeWithOutline(context, this.border, scale, 1.5, FILL);
  }

  #drawHighlight(context, scale, region) {
    const runs = this.found.runs.filter((run) => run.region === region);
    const margin = (4 * (window.devicePixelRatio || 1)) / scale;
    const [x, y, width, height] = region.box;
    const box = new Path2D();
    box.rect(x - margin, y - margin, width + 2 * margin, height + 2 * margin);
    strokeWithOutline(context, outline(runs), scale, 2.5, "#ffffff");
    strokeWithOutline(context, box, scale, 2, "#ffffff");
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
    const slack = HIT_TOLERANCE_PX / this.view.scale;
    return runAt(this.found.runs, Math.floor(x), Math.floor(y))?.region ?? nearestRegion(this.found.regions, x, y, slack);
  }
}

/** The frame's width, and the canvas' maximum height in CSS. */
function availableSize(canvas) {
  const width = canvas.parentElement.clientWidth;
  return { width, height: parseFloat(getComputedStyle(canvas).maxHeight) || width };
}

function nearestRegion(regions, x, y, slack) {
  const inside = ({ box: [left, top, width, height] }) =>
    x >= left - slack && x < left + width + slack && y >= top - slack && y < top + height + slack;
  return regions.findLast(inside) ?? null;
}

function clamp(value, low, high) {
  return Math.min(Math.max(value, low), Math.max(low, high));
}
