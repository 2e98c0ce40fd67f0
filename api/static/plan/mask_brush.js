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
  /** Calls `onMask(name, mask)` after each stroke, with the zone that was selected, null = a new one; mask null = empty. */
  constructor(zoneCanvas, onMask) {
    Object.assign(this, { zoneCanvas, onMask, drawing: null, strokes: 0, size: SIZES.indexOf(20) });
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
    const read = mask === undefined ? null : await readMask(mask);
    const isFitting = read?.width === width && read.height === height;
    const painted = isFitting ? Uint8Array.from(read.pixels, (level) => (level ? INSIDE : 0)) : new Uint8Array(width * height);
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
    const { selected, selectedZone } = this.zoneCanvas;
    const name = selectedZone?.mask === undefined ? null : selected;
    const stroke = ++this.strokes;
    const base64 = empty ? null : await base64Of(await writeGrey(width, height, pixels));
    if (stroke !== this.strokes) return; // a later one follows
    this.base64 = base64 ?? undefined;
    if (base64 || name !== null) this.onMask(name, base64);
  }
}
