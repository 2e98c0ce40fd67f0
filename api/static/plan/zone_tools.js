// Tools that draw and change zones. Points {x, y} are pixels of the photograph.

import { clampPoint, moved } from "./zone_shapes.js";

const PREVIEW = "#ffffff";
const MIN_DRAG_PX = 3; // CSS pixels

/** Selects zones, moves them, and drags their handles. */
export class SelectTool {
  /** Calls `onSelect(name, corner)`, `onDrag(zone)` with the changed selected zone, and `onEnd()`. */
  constructor(zoneCanvas, { onSelect, onDrag, onEnd }) {
    Object.assign(this, { zoneCanvas, onSelect, onDrag, onEnd, drag: null });
  }

  down(point) {
    const { zoneCanvas } = this;
    this.start = point;
    this.isMoving = false;
    const handle = zoneCanvas.handleAt(point);
    if (handle) {
      this.drag = handle.drag;
      return this.onSelect(zoneCanvas.selected, handle.isAdded ? null : (handle.corner ?? null));
    }
    this.onSelect(zoneCanvas.zoneAt(point), null);
    const zone = zoneCanvas.selectedZone;
    this.drag = zone && (({ x, y }) => moved(zone, x - this.start.x, y - this.start.y, zoneCanvas.size));
    return undefined;
  }

  move(points) {
    const point = points.at(-1);
    this.isMoving ||= Math.hypot(point.x - this.start.x, point.y - this.start.y) * this.zoneCanvas.view.scale >= MIN_DRAG_PX;
    if (!this.drag || !this.isMoving) return;
    // Where the pointer is decides about a handle; a zone follows the distance.
    this.onDrag(this.drag(clampPoint(point, this.zoneCanvas.size)));
  }

  up() {
    this.drag = null;
    this.onEnd();
  }

  cancel() {
    this.up();
  }

  hover() {}
}

/** Draws a zone by dragging from one point to another. */
export class DragTool {
  /** `shapeBetween(one, other, size)` returns a zone or null; `pathOf(zone)` its outline. */
  constructor(zoneCanvas, { shapeBetween, pathOf, onZone }) {
    Object.assign(this, { zoneCanvas, shapeBetween, pathOf, onZone, zone: null });
  }

  down(point) {
    this.start = clampPoint(point, this.zoneCanvas.size);
    this.zone = null;
  }

  async move(points) {
    const { zoneCanvas, start } = this;
    this.zone = this.shapeBetween(start, clampPoint(points.at(-1), zoneCanvas.size), zoneCanvas.size);
    const drawn = this.zone;
    const path = drawn ? (await this.pathOf(drawn)).outline : null;
    if (this.zone !== drawn) return;
    zoneCanvas.preview = path && { path, color: PREVIEW };
    zoneCanvas.draw();
  }

  up() {
    const { zone } = this;
    this.reset();
    if (zone) this.onZone(zone);
  }

  cancel() {
    this.reset();
    this.zoneCanvas.draw();
  }

  reset() {
    this.zone = null;
    this.zoneCanvas.preview = null;
  }

  hover() {}
}

/** Marks two points. */
export class DistanceTool {
  /** Calls `onPoints(one, other)` with points [x, y]. */
  constructor(zoneCanvas, onPoints) {
    Object.assign(this, { zoneCanvas, onPoints, start: null });
  }

  down(point) {
    this.clicked = clampPoint(point, this.zoneCanvas.size);
  }

  move() {}

  up() {
    const { start, clicked } = this;
    if (!start) {
      this.start = clicked;
      return this.hover(null);
    }
    this.reset();
    this.zoneCanvas.draw();
    return this.onPoints([start.x, start.y], [clicked.x, clicked.y]);
  }

  cancel() {
    this.reset();
  }

  /** Removes the first point; returns whether there was one. */
  removeLastPoint() {
    const had = Boolean(this.start);
    this.reset();
    this.zoneCanvas.draw();
    return had;
  }

  reset() {
    this.start = null;
    this.zoneCanvas.preview = null;
  }

  hover(point) {
    if (!this.start) return;
    const { zoneCanvas, start } = this;
    const handle = 4 / zoneCanvas.view.scale;
    const path = new Path2D();
    path.rect(start.x - handle, start.y - handle, 2 * handle, 2 * handle);
    if (point) {
      path.moveTo(start.x, start.y);
      path.lineTo(point.x, point.y);
    }
    zoneCanvas.preview = { path, color: PREVIEW };
    zoneCanvas.draw();
  }
}
