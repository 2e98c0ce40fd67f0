// Zones that are painted: brush and eraser change the mask of the selected zone, or begin one.

import { EditableMask } from "../shared/mask_editor/editable_mask.js";
import { MaskLayer } from "../shared/mask_editor/mask_layer.js";
import { BrushTool } from "../shared/mask_editor/tools.js";
import { readMask } from "../shared/plan_zones.js";
import { writeGrey } from "../shared/png.js";
import { base64Of } from "../shared/record_requests.js";

const SIZES = [1, 2, 3, 5, 7, 9, 12, 16, 20, 26, 34, 44, 58, 76, 100, 130, 170, 220, 300]; // px
const INSIDE = 255;
const COLORS = { [INSIDE]: "#ff5c28", 0: "#ffffff" };

/** What the tools need of a mask editor: the mask that is painted. */
export class MaskBrush {
  /** Calls `onZone(zone)` with {mask} after each stroke. */
  constructor(zoneCanvas, onZone) {
    Object.assign(this, { zoneCanvas, onZone, drawing: null, strokes: 0, size: SIZES.indexOf(20) });
    const settings = { maskCanvas: this, onStep: () => this.#store() };
    this.brush = new BrushTool({ ...settings, brushStyle: () => this.#style(INSIDE) });
    this.eraser = new BrushTool({ ...settings, brushStyle: () => this.#style(0) });
  }

  /** Begins to paint the mask of the selected zone; an empty one if that has another shape, or none is selected. */
  async begin() {
    const { size, selectedZone } = this.zoneCanvas;
    const { width, height } = size;
    const mask = selectedZone?.mask;
    if (this.drawing && this.base64 === mask) return;
    this.base64 = mask;
    const { pixels } = mask === undefined ? { pixels: new Uint8Array(width * height) } : await readMask(mask);
    const painted = Uint8Array.from(pixels, (level) => (level ? INSIDE : 0));
    this.drawing = new EditableMask({ width, height, pixels: painted, hasClasses: false });
    this.layer = new MaskLayer(this.drawing);
    this.update(null);
  }

  /** Ends painting. */
  end() {
    this.drawing = this.zoneCanvas.layer = this.zoneCanvas.preview = null;
  }

  resize(steps) {
    this.size = Math.min(Math.max(this.size + steps, 0), SIZES.length - 1);
    this.brush.resized();
  }

  get diameter() {
    return SIZES[this.size];
  }

  // === What BrushTool needs ===

  set preview(preview) {
    this.zoneCanvas.preview = preview;
  }

  update(box) {
    if (box) this.layer.update(this.drawing, box);
    else this.layer.redrawAll(this.drawing);
    this.zoneCanvas.layer = this.layer;
    this.draw();
  }

  draw() {
    this.zoneCanvas.draw();
  }

  #style(value) {
    return { diameter: this.diameter, value, color: COLORS[value] };
  }

  async #store() {
    const { width, height, pixels, empty } = this.drawing;
    if (empty) return;
    const stroke = ++this.strokes;
    const base64 = await base64Of(await writeGrey(width, height, pixels));
    if (stroke !== this.strokes || !this.drawing) return; // a later one follows
    this.base64 = base64;
    this.onZone({ mask: base64 });
  }
}
