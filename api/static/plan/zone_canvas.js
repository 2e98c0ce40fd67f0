// The photograph with the zones of the plan, the handles of the selected one, and measured defects.

import { translate } from "../shared/language.js";
import { contourPath, PhotographCanvas, strokeWithOutline, updateZoomButtons } from "../shared/viewer/photograph_canvas.js";
import { boundsOf, drawDefects, drawZones, loadZones, zoneColors } from "../shared/plan_zones.js";
import { handlesOf } from "./zone_shapes.js";

const HANDLE_PX = 5; // half a side, CSS pixels
const HIT_PX = 14; // for fingers, too
const SELECTED = "#ffffff";
const INSPECTED = "#8cc85a";

export class ZoneCanvas {
  constructor(canvas) {
    const frame = canvas.parentElement;
    this.zones = [];
    this.inspected = null; // path of the inspected area
    this.selected = null; // name of a zone
    this.corner = null; // number of the chosen corner of a polygon
    this.defects = []; // {bbox, severity, text}
    this.preview = null; // {path, color} of a tool
    this.layer = null; // the mask that is being brushed
    this.areZonesShown = true;
    this.canvas = new PhotographCanvas(canvas, {
      availableSize: () => ({ width: frame.clientWidth, height: frame.clientHeight }),
      paint: (context, scale) => this.#paint(context, scale),
      onLayout: updateZoomButtons,
    });
    this.view = this.canvas.view;
  }

  /** The colours of the zones by their names. */
  get colors() {
    return zoneColors(this.plan);
  }

  /** Shows a photograph of `size`; without `bitmap` a grey background. `area` are contours of the inspected area, or null. */
  setPhotograph(bitmap, size, area) {
    this.inspected = area && contourPath(area);
    this.canvas.setPhotograph(bitmap, size);
    this.draw();
  }

  /** Shows the zones of a plan; throws an error if a mask cannot be shown. */
  async setPlan(plan) {
    this.plan = plan;
    const zones = plan ? await loadZones(plan) : [];
    if (this.plan !== plan) return; // another one since then
    this.zones = zones;
    this.draw();
    const missing = Object.keys(plan?.zones ?? {}).filter((name) => zones.every((zone) => zone.name !== name));
    if (missing.length) throw new Error(translate("The browser cannot show the masks of these zones: {names}", { names: missing.join(", ") }));
  }

  draw() {
    this.canvas.draw();
  }

  /** Zooms to the selected zone. */
  showMarked() {
    const bounds = this.selectedZone && boundsOf(this.selectedZone);
    if (!bounds) return;
    this.view.show(bounds);
    this.draw();
  }

  /** The size of the photographs of the plan. */
  get size() {
    return this.plan.photograph;
  }

  get selectedZone() {
    return this.selected === null ? undefined : this.plan?.zones[this.selected];
  }

  /** The handle of the selected zone near a point, or undefined. */
  handleAt({ x, y }) {
    if (!this.selectedZone) return undefined;
    const distance = HIT_PX / this.view.scale;
    const near = handlesOf(this.selectedZone, this.size).map((handle) => ({ handle, apart: Math.hypot(handle.x - x, handle.y - y) }));
    near.sort((one, other) => Boolean(one.handle.isAdded) - Boolean(other.handle.isAdded) || one.apart - other.apart);
    return near.find(({ apart }) => apart <= distance)?.handle;
  }

  /** The name of the smallest zone at a point; null without one. */
  zoneAt({ x, y }) {
    const context = this.canvas.canvas.getContext("2d");
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    const hit = this.zones.filter(({ area }) => context.isPointInPath(area, x, y, "evenodd"));
    context.restore();
    return hit.sort((one, other) => boxArea(one.zone) - boxArea(other.zone))[0]?.name ?? null;
  }

  #paint(context, scale) {
    if (this.inspected) strokeWithOutline(context, this.inspected, scale, 1.5, INSPECTED);
    if (this.areZonesShown) {
      drawZones(context, scale, this.zones, true);
      this.#drawSelected(context, scale);
    }
    if (this.layer) {
      context.globalAlpha = 0.5;
      context.drawImage(this.layer.canvas, 0, 0);
      context.globalAlpha = 1;
    }
    drawDefects(context, scale, this.defects);
    if (this.preview) strokeWithOutline(context, this.preview.path, scale, 1.5, this.preview.color);
  }

  #drawSelected(context, scale) {
    const drawn = this.zones.find(({ name }) => name === this.selected);
    if (!drawn) return;
    strokeWithOutline(context, drawn.outline, scale, 2.5, SELECTED);
    strokeWithOutline(context, drawn.outline, scale, 1, drawn.color);
    const half = (HANDLE_PX * (window.devicePixelRatio || 1)) / scale;
    for (const { x, y, corner, isAdded } of handlesOf(this.selectedZone ?? {}, this.size)) {
      const side = isAdded ? half * 0.6 : half;
      context.fillStyle = "#1d1d1f";
      context.fillRect(x - 1.3 * side, y - 1.3 * side, 2.6 * side, 2.6 * side);
      context.fillStyle = !isAdded && corner !== undefined && corner === this.corner ? drawn.color : SELECTED;
      context.fillRect(x - side, y - side, 2 * side, 2 * side);
    }
  }
}

/** The area of the box of a zone; of a mask none, so that it is chosen first. */
function boxArea(zone) {
  const { left = 0, top = 0, right = 0, bottom = 0 } = boundsOf(zone) ?? {};
  return (right - left) * (bottom - top);
}
