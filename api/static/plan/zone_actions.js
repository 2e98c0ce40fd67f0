// What people do with zones: each changes the plan, and can be undone.

import { translate } from "../shared/language.js";
import { freeName, renamed, withoutZone, withZone } from "./plan_changes.js";
import { moved, withoutCorner } from "./zone_shapes.js";

const COPY_SHIFT_PX = 20;

export class ZoneActions {
  /** `draft` is a PlanDraft, `editor` the ZoneEditor that shows it. */
  constructor(draft, editor) {
    Object.assign(this, { draft, editor });
  }

  /** Changes a zone by a function from the present one to another. Consecutive changes with the same `merge` are one step. */
  change(name, change, merge = null) {
    const { plan } = this.draft;
    if (name === null || !Object.hasOwn(plan.zones, name)) return;
    const before = plan.zones[name];
    const zone = change(before);
    if (zone !== before) this.draft.change(withZone(plan, name, zone), merge && `${merge} ${name}`);
  }

  changeSelected(change, merge) {
    this.change(this.editor.canvas.selected, change, merge);
  }

  add(shape, base = null) {
    const { plan } = this.draft;
    const number = Object.keys(plan.zones).length + 1;
    const name = freeName(plan, base ?? translate("zone {number}", { number }));
    this.editor.select(name); // first, so that a mask is painted further
    this.draft.change(withZone(plan, name, shape));
  }

  /** Adds a zone without drawing: over the whole photograph if it is the first one, else in the middle. */
  addRectangle() {
    const { photograph: { width, height }, zones } = this.draft.plan;
    const share = Object.keys(zones).length ? 0.25 : 0;
    const [left, top] = [width, height].map((side) => Math.floor(side * share));
    this.add({ rectangle: { corner: [left, top], width: width - 2 * left, height: height - 2 * top } });
  }

  /** Changes the mask of a zone, or adds one; null = nothing is painted any more. */
  paint(name, mask) {
    if (name === null) this.add({ mask });
    else if (mask === null) this.delete(name);
    else this.change(name, (zone) => ({ ...zone, mask }));
  }

  renameSelected(newName) {
    const { selected } = this.editor.canvas;
    if (selected === newName) return;
    this.editor.select(newName);
    this.draft.change(renamed(this.draft.plan, selected, newName));
  }

  copySelected() {
    const { selected, selectedZone: zone, size } = this.editor.canvas;
    if (!zone) return;
    const shifted = [COPY_SHIFT_PX, -COPY_SHIFT_PX].map((px) => moved(zone, px, px, size));
    this.add(shifted.find((copy) => JSON.stringify(copy) !== JSON.stringify(zone)) ?? zone, selected);
  }

  delete(name) {
    this.draft.change(withoutZone(this.draft.plan, name));
  }

  /** Deletes the chosen corner of a polygon, or the selected zone. */
  deleteSelected() {
    const { selected, selectedZone, corner } = this.editor.canvas;
    if (selected === null) return;
    if (corner === null || !selectedZone.polygon) return this.delete(selected);
    this.changeSelected((zone) => withoutCorner(zone, corner));
    return this.editor.select(selected, null);
  }

  moveSelected(x, y) {
    this.changeSelected((zone) => moved(zone, x, y, this.draft.plan.photograph), "move");
  }
}
