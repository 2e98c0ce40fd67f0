// A canvas that shows part of a photograph at screen resolution, with drawings on it.

import { byId } from "../dom.js";
import { Viewport } from "./viewport.js";

const BACKGROUND = "#808080";

export class PhotographCanvas {
  /**
   * `availableSize()` returns {width, height} in CSS pixels; `paint(context, scale)` draws on the photograph in its
   * pixels, of `scale` canvas pixels each; calls `onLayout(view)` after each layout.
   */
  constructor(canvas, { availableSize, paint, onLayout }) {
    Object.assign(this, { canvas, availableSize, paint, onLayout });
    this.frame = canvas.parentElement;
    this.photograph = null;
    this.filter = "none"; // of the photograph, as of CSS
    this.view = new Viewport();
    // Deferred: drawing resizes the frame, and resizing it inside the observer is reported as a page error.
    new ResizeObserver(() => requestAnimationFrame(() => this.draw())).observe(this.frame);
  }

  /** Shows a photograph of `size` {width, height}; without `bitmap` a grey background. */
  setPhotograph(bitmap, { width, height }) {
    if (this.photograph !== bitmap) this.photograph?.close();
    this.photograph = bitmap;
    this.view.fit({ width, height });
  }

  draw() {
    if (!this.view.size || this.frame.hidden) return;
    const scale = this.#layout();
    const context = this.canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, -this.view.left * scale, -this.view.top * scale);
    context.imageSmoothingEnabled = scale < 2;
    this.#drawBackground(context);
    this.paint(context, scale);
  }

  /** Resizes the canvas to the available size; returns canvas pixels per pixel of the photograph. */
  #layout() {
    const { view, canvas } = this;
    const { width, height } = this.availableSize();
    view.layout(width, height);
    const pixelRatio = window.devicePixelRatio || 1;
    canvas.style.width = `${view.width}px`;
    canvas.style.height = `${view.height}px`;
    canvas.width = Math.round(view.width * pixelRatio);
    canvas.height = Math.round(view.height * pixelRatio);
    canvas.classList.toggle("zoomed", view.zoom > 1);
    this.onLayout(view);
    return view.scale * pixelRatio;
  }

  #drawBackground(context) {
    const { width, height } = this.view.size;
    context.fillStyle = BACKGROUND;
    context.fillRect(0, 0, width, height);
    context.filter = this.filter;
    if (this.photograph) context.drawImage(this.photograph, 0, 0, width, height);
    context.filter = "none";
  }
}

/** Draws a line of `width` CSS pixels that is visible on bright and on dark backgrounds. */
export function strokeWithOutline(context, path, scale, width, color) {
  const pixelRatio = window.devicePixelRatio || 1;
  context.lineJoin = context.lineCap = "round";
  for (const [style, thickness] of [["rgba(0, 0, 0, 0.6)", width + 1.5], [color, width]]) {
    context.strokeStyle = style;
    context.lineWidth = (thickness * pixelRatio) / scale;
    context.stroke(path);
  }
}

/** A path of contours; they run along the edges of pixels. */
export function contourPath(polygons) {
  const path = new Path2D();
  for (const contour of polygons.flatMap(({ outer, holes }) => [outer, ...holes])) {
    contour.forEach(([x, y], index) => path[index ? "lineTo" : "moveTo"](x, y));
    path.closePath();
  }
  return path;
}

/** Enables the zoom buttons that have an effect. */
export function updateZoomButtons(view) {
  byId("zoom-in").disabled = view.zoom >= view.maxZoom;
  for (const id of ["zoom-out", "zoom-fit"]) byId(id).disabled = view.zoom <= 1;
}
