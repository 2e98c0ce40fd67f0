// What draws on a mask. Points {x, y} are in pixels of the photograph.

const CLOSE_DISTANCE_PX = 14; // on the screen: a finger meets the first corner of a polygon
const FREEHAND_STEP_PX = 6; // on the screen: a pointer that moves farther than this draws a line of its own

/** Draws strokes as wide as its pen. */
export class BrushTool {
  /** `brushStyle()` says with what: {diameter, value, color}; `onStep()` is told when a stroke is done. */
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

  /** Shows how large the pen is. */
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

/** Fills polygons: a corner for each press, or a line drawn by hand. */
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

  /** Two fingers came down: the corner of the first was none. */
  cancel() {
    this.removeLastPoint();
  }

  /** Takes the last corner away; whether there was one. */
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

  /** Forgets what was begun. */
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
