// The photograph and the tools that draw zones on it.

import { byId } from "../shared/dom.js";
import { showKeys } from "../shared/mask_editor/key_list.js";
import { PointerInput } from "../shared/mask_editor/pointer_input.js";
import { PolygonTool } from "../shared/mask_editor/tools.js";
import { pathsOf } from "../shared/plan_zones.js";
import { translate } from "../shared/language.js";
import { MaskBrush } from "./mask_brush.js";
import { ZoneCanvas } from "./zone_canvas.js";
import { circleThrough, polygonOf, rectangleBetween, ringThrough } from "./zone_shapes.js";
import { DistanceTool, DragTool, SelectTool } from "./zone_tools.js";

const PREVIEW = "#ffffff";

export class ZoneEditor {
  /**
   * Calls `onSelect(name)`, `onNew(zone)`, `onDrag(zone)` and `onDragEnd()` for the selected zone, `onMask(name, mask)` after a
   * stroke, and `onDistance(one, other)` for two clicked points [x, y].
   */
  constructor({ onSelect, onNew, onDrag, onDragEnd, onMask, onDistance }) {
    this.canvas = new ZoneCanvas(byId("picture"));
    this.onSelect = onSelect;
    const { canvas } = this;
    const zoneDrawn = (zone) => {
      this.choose("select");
      onNew(zone);
    };
    const drag = (shapeBetween) => new DragTool(canvas, { shapeBetween, pathOf: pathsOf, onZone: zoneDrawn });
    this.brush = new MaskBrush(canvas, onMask);
    this.tools = {
      select: new SelectTool(canvas, { onSelect: (...chosen) => this.select(...chosen), onDrag, onEnd: onDragEnd }),
      rectangle: drag(rectangleBetween),
      circle: drag(circleThrough),
      ring: drag(ringThrough),
      polygon: new PolygonTool({ maskCanvas: this.#polygonCanvas(zoneDrawn), brushStyle: () => ({ color: PREVIEW }), onStep: () => {} }),
      brush: this.brush.brush,
      eraser: this.brush.eraser,
      distance: new DistanceTool(canvas, (...points) => {
        this.choose("select");
        onDistance(...points);
      }),
    };
    this.name = "select";
    this.toolbar = this; // what the key bindings need
    // Before another zone is selected, a field that is edited changes the present one.
    byId("picture").addEventListener("pointerdown", () => document.activeElement?.blur(), true);
    this.pointer = new PointerInput(byId("picture"), canvas.view, { tool: () => this.tool, redraw: () => canvas.draw() });
    for (const name of Object.keys(this.tools)) this.#bind(name);
    byId("size").addEventListener("input", ({ target }) => this.resize(target.valueAsNumber - this.brush.size));
    byId("close-polygon").addEventListener("click", () => this.closePolygon());
    byId("show-keys").addEventListener("click", showKeys);
    byId("zones-toggle").addEventListener("click", () => this.toggleMask());
    this.#present();
  }

  /** The active tool, or null without a plan, or while a mask is not read yet. */
  get tool() {
    if (!this.canvas.plan || !byId("tools").checkVisibility()) return null;
    return this.#isReady ? this.tools[this.name] : null;
  }

  async choose(name) {
    const known = { view: "select", box: "rectangle" }[name] ?? name; // keys of the mask editor
    if (!this.tools[known]) return;
    this.pointer.cancelAll();
    this.tools[this.name].reset?.();
    this.name = known;
    this.canvas.areZonesShown = true;
    radioOf(known).checked = true;
    if (!this.#paints) this.brush.end();
    this.#present();
    if (this.#paints && this.canvas.plan) {
      await this.brush.begin();
      this.#present();
    }
    this.canvas.draw();
  }

  /** Selects a zone by its name, and a corner of it; null = none. */
  select(name, corner = null) {
    const isOther = name !== this.canvas.selected;
    Object.assign(this.canvas, { selected: name, corner });
    const isPainted = this.canvas.selectedZone ? this.canvas.selectedZone.mask === this.brush.base64 : name !== null;
    if (isOther && this.#paints && !isPainted) this.choose("select");
    this.canvas.draw();
    if (isOther) this.onSelect(name);
  }

  /** Shows a plan; throws an error if the mask of a zone cannot be shown. */
  async setPlan(plan) {
    const shown = this.canvas.setPlan(plan);
    if (!plan || !Object.hasOwn(plan.zones, this.canvas.selected ?? "")) this.select(null);
    if (plan && this.#paints) this.brush.begin();
    await shown;
  }

  resize(steps) {
    this.brush.resize(steps);
    this.#present();
  }

  /** Closes the polygon that is being drawn; returns whether there was one. */
  closePolygon() {
    const { polygon } = this.tools;
    if (!polygon.corners.length) return false;
    polygon.close();
    return true;
  }

  /** Removes the last point of a shape that is being drawn; returns whether there was one. */
  removeLastPoint() {
    return Boolean(this.tools[this.name].removeLastPoint?.());
  }

  /** Shows or hides the zones. */
  toggleMask() {
    this.canvas.areZonesShown = !this.canvas.areZonesShown;
    this.#present();
    this.canvas.draw();
  }

  /** Whether the tool can draw: a mask has to be read before it is painted. */
  get #isReady() {
    return !this.#paints || Boolean(this.brush.drawing);
  }

  get #paints() {
    return this.name === "brush" || this.name === "eraser";
  }

  /** What PolygonTool needs of a mask editor. */
  #polygonCanvas(onZone) {
    const { canvas } = this;
    const polygon = (corners) => {
      const zone = polygonOf(corners, canvas.size);
      if (zone) onZone(zone);
    };
    return {
      view: canvas.view,
      draw: () => canvas.draw(),
      set preview(preview) {
        canvas.preview = preview;
      },
      drawing: { begin() {}, polygon, end() {} },
    };
  }

  #bind(name) {
    const radio = radioOf(name);
    radio.addEventListener("change", () => this.choose(name));
    radio.addEventListener("click", ({ detail }) => detail && radio.blur()); // else the arrow keys would change the tool
  }

  #present() {
    byId("zones-toggle").setAttribute("aria-pressed", this.canvas.areZonesShown);
    byId("picture").classList.toggle("drawing", this.name !== "select" && this.#isReady);
    byId("size").value = this.brush.size;
    byId("size").setAttribute("aria-valuetext", translate("{size} pixels", { size: this.brush.diameter }));
    byId("size-value").textContent = `${this.brush.diameter} px`;
    byId("size-field").classList.toggle("unused", !this.#paints);
    byId("close-polygon").classList.toggle("unused", this.name !== "polygon");
    byId("distance-hint").hidden = this.name !== "distance";
  }
}

function radioOf(name) {
  return document.querySelector(`#tools input[value=${name}]`);
}
