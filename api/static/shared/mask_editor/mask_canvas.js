// The picture with its mask and the preview of the active tool.

import { PhotographCanvas, updateZoomButtons, strokeWithOutline } from "../viewer/photograph_canvas.js";
import { MaskLayer } from "./mask_layer.js";

export class MaskCanvas {
  constructor(canvas) {
    this.layer = null;
    this.drawing = null;
    this.preview = null; // {path, color} of the active tool
    this.maskShown = true;
    this.opacity = 0.4;
    const frame = canvas.parentElement;
    this.canvas = new PhotographCanvas(canvas, {
      availableSize: () => ({ width: frame.clientWidth, height: frame.clientHeight }),
      paint: (context, scale) => this.#paint(context, scale),
      onLayout: updateZoomButtons,
    });
    this.view = this.canvas.view;
  }

  /** Shows the picture of a loaded task. */
  show({ bitmap, drawing }) {
    this.preview = null;
    this.drawing = drawing;
    this.layer = new MaskLayer(drawing);
    this.layer.redrawAll(drawing);
    this.canvas.setPhotograph(bitmap, bitmap);
    this.draw();
  }

  /** Zooms to the marked pixels, if there are any. */
  showMarked() {
    const box = this.drawing?.markedBox;
    if (!box || !this.view.size) return;
    this.view.show(box);
    this.draw();
  }

  /** Changes brightness and contrast of the photograph; 1 leaves them. */
  setLight(brightness, contrast) {
    this.canvas.filter = [`brightness(${brightness})`, `contrast(${contrast})`].join(" ");
    this.draw();
  }

  /** Removes the picture. */
  clear() {
    this.canvas.photograph = this.view.size = null;
  }

  draw() {
    this.canvas.draw();
  }

  /** Redraws a box of the mask, or all of it if `box` is null. */
  update(box) {
    if (box) this.layer.update(this.drawing, box);
    else this.layer.redrawAll(this.drawing);
    this.draw();
  }

  #paint(context, scale) {
    if (this.maskShown) this.#paintMask(context, scale);
    if (this.preview) strokeWithOutline(context, this.preview.path, scale, 1.5, this.preview.color);
  }

  #paintMask(context, scale) {
    context.imageSmoothingEnabled = scale < 1;
    context.globalAlpha = this.opacity;
    context.drawImage(this.layer.canvas, 0, 0);
    context.globalAlpha = 1;
    for (const { path, color } of this.layer.borders) strokeWithOutline(context, path, scale, 1.5, color);
  }
}
