// A canvas that shows a part of a photograph at the resolution of the screen, with what is drawn on it.

import { Viewport } from "./viewport.js";

const GROUND = "#808080";

export class PhotographCanvas {
  /**
   * `room()` says how large the canvas may be, {across, down} in CSS pixels; `paint(context, scale)` draws on the
   * photograph, in its pixels, `scale` canvas pixels for each; `onPlaced(view)` is told what is in sight.
   */
  constructor(canvas, { room, paint, onPlaced }) {
    Object.assign(this, { canvas, room, paint, onPlaced });
    this.frame = canvas.parentElement;
    this.photograph = null;
    this.view = new Viewport();
    // Not at once: drawing sizes the canvas, hence the frame, which the browser reports as an error of the page.
    new ResizeObserver(() => requestAnimationFrame(() => this.draw())).observe(this.frame);
  }

  /** Takes a photograph of `size` {width, height}; `bitmap` null is a grey ground. */
  take(bitmap, { width, height }) {
    if (this.photograph !== bitmap) this.photograph?.close();
    this.photograph = bitmap;
    this.view.fit({ width, height });
  }

  draw() {
    if (!this.view.size || this.frame.hidden) return;
    const scale = this.#place();
    const context = this.canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, -this.view.left * scale, -this.view.top * scale);
    context.imageSmoothingEnabled = scale < 2;
    this.#drawGround(context);
    this.paint(context, scale);
  }

  /** Sizes the canvas to its room; canvas pixels for each pixel of the photograph. */
  #place() {
    const { view, canvas } = this;
    const { across, down } = this.room();
    view.place(across, down);
    const pixelRatio = window.devicePixelRatio || 1;
    canvas.style.width = `${view.width}px`;
    canvas.style.height = `${view.height}px`;
    canvas.width = Math.round(view.width * pixelRatio);
    canvas.height = Math.round(view.height * pixelRatio);
    canvas.classList.toggle("zoomed", view.zoom > 1);
    this.onPlaced(view);
    return view.scale * pixelRatio;
  }

  #drawGround(context) {
    const { width, height } = this.view.size;
    context.fillStyle = GROUND;
    context.fillRect(0, 0, width, height);
    if (this.photograph) context.drawImage(this.photograph, 0, 0, width, height);
  }
}

/** Draws a line of `width` CSS pixels that shows on bright and on dark ground. */
export function strokeWithOutline(context, path, scale, width, color) {
  const pixelRatio = window.devicePixelRatio || 1;
  context.lineJoin = context.lineCap = "round";
  for (const [style, thickness] of [["rgba(0, 0, 0, 0.6)", width + 1.5], [color, width]]) {
    context.strokeStyle = style;
    context.lineWidth = (thickness * pixelRatio) / scale;
    context.stroke(path);
  }
}

/** Lets the buttons zoom-in, zoom-out and zoom-fit say what `view` can do. */
export function updateZoomButtons(view) {
  document.getElementById("zoom-in").disabled = view.zoom >= view.most;
  for (const id of ["zoom-out", "zoom-fit"]) document.getElementById(id).disabled = view.zoom <= 1;
}
