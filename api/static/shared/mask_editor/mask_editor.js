// The photograph with its mask, and the tools that edit it. A page has at most one.

import { byId } from "../dom.js";
import { showKeys } from "./key_list.js";
import { MaskCanvas } from "./mask_canvas.js";
import { PointerInput } from "./pointer_input.js";
import { Toolbar } from "./toolbar.js";

export class MaskEditor {
  /** The options are those of Toolbar; the page has the elements `picture`, `view-tools` and `tools`. */
  constructor({ onChange, ...options }) {
    this.onChange = onChange;
    this.canvas = new MaskCanvas(byId("picture"));
    this.toolbar = new Toolbar(this.canvas, { onChange: () => this.#present(), ...options });
    this.pointer = new PointerInput(byId("picture"), this.canvas.view, {
      tool: () => this.toolbar.tool,
      redraw: () => this.canvas.draw(),
    });
    byId("show-keys").addEventListener("click", showKeys);
    byId("mask-toggle").addEventListener("click", () => this.toggleMask());
    byId("zoom-mask").addEventListener("click", () => this.canvas.showMarked());
    byId("light").addEventListener("input", () => this.#light());
    byId("light").addEventListener("reset", () => setTimeout(() => this.#light())); // after the sliders are reset
    byId("opacity").addEventListener("input", ({ target }) => {
      this.canvas.opacity = target.valueAsNumber;
      this.canvas.draw();
    });
  }

  /** Shows a loaded task {bitmap, drawing, defects, hasClasses}. */
  show(task) {
    this.canvas.show(task);
    this.toolbar.setTask(task);
  }

  /** Removes the photograph. */
  clear() {
    this.canvas.clear(); // first: the picture may have been freed
    this.pointer.cancelAll();
    this.toolbar.setTask(null);
  }

  /** Whether a tool draws, so that the keys of undo and redo are about strokes. */
  get isDrawing() {
    return this.toolbar.name !== "view";
  }

  toggleMask() {
    this.canvas.maskShown = !this.canvas.maskShown;
    this.#present();
    this.canvas.draw();
  }

  /** Closes the polygon that is being drawn; returns whether there was one. */
  closePolygon() {
    const { polygon } = this.toolbar.tools;
    if (!polygon.corners.length) return false;
    polygon.close();
    return true;
  }

  #light() {
    const { brightness, contrast } = byId("light").elements;
    this.canvas.setLight(brightness.valueAsNumber, contrast.valueAsNumber);
  }

  #present() {
    byId("mask-toggle").setAttribute("aria-pressed", this.canvas.maskShown);
    this.onChange();
  }
}
