// The picture with its mask on it, and what a tool is about to draw.

import { Easel, enableZoom, strokeClearly } from "../shared/easel.js";
import { MaskLayer } from "./mask_layer.js";

export class Board {
  constructor(canvas) {
    this.layer = null;
    this.drawing = null;
    this.preview = null; // {path, color} of a tool
    this.maskShown = true;
    this.opacity = 0.4;
    const frame = canvas.parentElement;
    this.easel = new Easel(canvas, {
      room: () => ({ across: frame.clientWidth, down: frame.clientHeight }),
      paint: (context, scale) => this.#paint(context, scale),
      onPlaced: enableZoom,
    });
    this.view = this.easel.view;
  }

  /** Shows the picture of a task that is loaded. */
  show({ bitmap, drawing }) {
    this.preview = null;
    this.drawing = drawing;
    this.layer = new MaskLayer(drawing);
    this.layer.settle(drawing);
    this.easel.take(bitmap, bitmap);
    this.draw();
  }

  /** Shows nothing, while there is no picture. */
  clear() {
    this.easel.photograph = this.view.size = null;
  }

  draw() {
    this.easel.draw();
  }

  /** Draws a box of the mask anew; without one all of it, when a step is done. */
  update(box) {
    if (box) this.layer.update(this.drawing, box);
    else this.layer.settle(this.drawing);
    this.draw();
  }

  #paint(context, scale) {
    if (this.maskShown) this.#paintMask(context, scale);
    if (this.preview) strokeClearly(context, this.preview.path, scale, 1.5, this.preview.color);
  }

  #paintMask(context, scale) {
    context.imageSmoothingEnabled = scale < 1;
    context.globalAlpha = this.opacity;
    context.drawImage(this.layer.canvas, 0, 0);
    context.globalAlpha = 1;
    for (const { path, color } of this.layer.borders) strokeClearly(context, path, scale, 1.5, color);
  }
}
