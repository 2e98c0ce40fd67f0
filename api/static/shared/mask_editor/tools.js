// Drawing tools. Points {x, y} are pixels of the photograph.

const CLOSE_DISTANCE_PX = 14; // screen pixels around the first corner that close a polygon
const FREEHAND_STEP_PX = 6; // screen pixels between corners of a freehand polygon

/** Draws strokes. */
export class BrushTool {
  /** `brushStyle()` returns {diameter, value, color}; calls `onStep()` after each stroke. */
  constructor({ maskCanvas, brushStyle, onStep }) {
    Object.assign(this, { maskCanvas, brushStyle, onStep });
    this.last = null;
  }

  down(point) {
    this.maskCanvas.drawing.begin();
    this.last = point;
    this.move([point]);
  }

  move(points) {
    const { diameter, value } = this.brushStyle();
    for (const point of points) {
      const box = this.maskCanvas.drawing.line(this.last, point, diameter, value);
      if (box) this.maskCanvas.layer.update(this.maskCanvas.drawing, box);
      this.last = point;
    }
    this.hover(this.last);
  }

  up() {
    this.maskCanvas.drawing.end();
    this.onStep();
  }

  cancel() {
    this.maskCanvas.drawing.cancel();
    this.maskCanvas.update(null);
  }

  /** Shows the outline of the brush. */
  hover(point) {
    this.last = point;
    const { diameter, color } = this.brushStyle();
    const path = new Path2D();
    if (point) path.arc(point.x, point.y, diameter / 2, 0, 2 * Math.PI);
    this.maskCanvas.preview = point && { path, color };
    this.maskCanvas.draw();
  }

  resized() {
    if (this.last) this.hover(this.last);
  }
}

/** Fills polygons: click the corners, or draw freehand. */
export class PolygonTool {
  constructor({ maskCanvas, brushStyle, onStep }) {
    Object.assign(this, { maskCanvas, brushStyle, onStep });
    this.corners = [];
  }

  down(point) {
    if (this.corners.length > 2 && this.#near(point, this.corners[0], CLOSE_DISTANCE_PX)) return this.close();
    this.corners.push(point);
    return this.hover(point);
  }

  move(points) {
    for (const point of points) {
      if (this.corners.length && !this.#near(point, this.corners.at(-1), FREEHAND_STEP_PX)) this.corners.push(point);
    }
    this.hover(points.at(-1));
  }

  up() {}

  /** Removes the corner of a touch that became a pinch. */
  cancel() {
    this.removeLastPoint();
  }

  /** Removes the last corner; returns whether there was one. */
  removeLastPoint() {
    const corner = this.corners.pop();
    this.hover(null);
    return Boolean(corner);
  }

  /** Fills the polygon. */
  close() {
    const corners = this.corners;
    this.corners = [];
    this.maskCanvas.preview = null;
    if (corners.length < 3) return this.maskCanvas.draw();
    this.maskCanvas.drawing.begin();
    this.maskCanvas.drawing.polygon(corners, this.brushStyle().value);
    this.maskCanvas.drawing.end();
    return this.onStep();
  }

  /** Discards the polygon. */
  reset() {
    this.corners = [];
    this.maskCanvas.preview = null;
  }

  hover(point) {
    const path = new Path2D();
    const corners = point ? [...this.corners, point] : this.corners;
    corners.forEach(({ x, y }, at) => path[at ? "lineTo" : "moveTo"](x, y));
    const handle = 4 / this.maskCanvas.view.scale;
    for (const { x, y } of this.corners) path.rect(x - handle, y - handle, 2 * handle, 2 * handle);
    this.maskCanvas.preview = this.corners.length ? { path, color: this.brushStyle().color } : null;
    this.maskCanvas.draw();
  }

  #near(one, other, pixels) {
    return Math.hypot(one.x - other.x, one.y - other.y) * this.maskCanvas.view.scale <= pixels;
  }
}

/** Fills boxes: drag from corner to corner. */
export class BoxTool {
  constructor({ maskCanvas, brushStyle, onStep }) {
    Object.assign(this, { maskCanvas, brushStyle, onStep });
    this.corner = null;
  }

  down(point) {
    this.corner = this.last = point;
  }

  move(points) {
    this.last = points.at(-1);
    this.#preview();
  }

  up() {
    const [corner, last] = [this.corner, this.last];
    this.reset();
    this.maskCanvas.drawing.begin();
    this.maskCanvas.drawing.polygon([corner, { x: last.x, y: corner.y }, last, { x: corner.x, y: last.y }], this.brushStyle().value);
    this.maskCanvas.drawing.end();
    this.onStep();
  }

  cancel() {
    this.reset();
    this.maskCanvas.draw();
  }

  /** Discards the box. */
  reset() {
    this.corner = null;
    this.maskCanvas.preview = null;
  }

  hover() {}

  #preview() {
    const path = new Path2D();
    path.rect(this.corner.x, this.corner.y, this.last.x - this.corner.x, this.last.y - this.corner.y);
    this.maskCanvas.preview = { path, color: this.brushStyle().color };
    this.maskCanvas.draw();
  }
}
