// What draws on a mask. Points {x, y} are in pixels of the photograph.

const NEAR_PX = 14; // on the screen: a finger meets the first corner of a polygon
const FREEHAND_PX = 6; // on the screen: a pointer that moves farther than this draws a line of its own

/** Draws strokes as wide as its pen. */
export class Brush {
  /** `pen()` says with what: {diameter, value, color}; `onStep()` is told when a stroke is done. */
  constructor({ board, pen, onStep }) {
    Object.assign(this, { board, pen, onStep });
    this.last = null;
  }

  down(point) {
    this.board.drawing.begin();
    this.last = point;
    this.move([point]);
  }

  move(points) {
    const { diameter, value } = this.pen();
    for (const point of points) {
      const box = this.board.drawing.line(this.last, point, diameter, value);
      if (box) this.board.layer.update(this.board.drawing, box);
      this.last = point;
    }
    this.hover(this.last);
  }

  up() {
    this.board.drawing.end();
    this.onStep();
  }

  cancel() {
    this.board.drawing.cancel();
    this.board.update(null);
  }

  /** Shows how large the pen is. */
  hover(point) {
    this.last = point;
    const { diameter, color } = this.pen();
    const path = new Path2D();
    if (point) path.arc(point.x, point.y, diameter / 2, 0, 2 * Math.PI);
    this.board.preview = point && { path, color };
    this.board.draw();
  }

  resized() {
    if (this.last) this.hover(this.last);
  }
}

/** Fills polygons: a corner for each press, or a line drawn by hand. */
export class Outliner {
  constructor({ board, pen, onStep }) {
    Object.assign(this, { board, pen, onStep });
    this.corners = [];
  }

  down(point) {
    if (this.corners.length > 2 && this.#near(point, this.corners[0], NEAR_PX)) return this.close();
    this.corners.push(point);
    return this.hover(point);
  }

  move(points) {
    for (const point of points) {
      if (this.corners.length && !this.#near(point, this.corners.at(-1), FREEHAND_PX)) this.corners.push(point);
    }
    this.hover(points.at(-1));
  }

  up() {}

  /** Two fingers came down: the corner of the first was none. */
  cancel() {
    this.back();
  }

  /** Takes the last corner away; whether there was one. */
  back() {
    const corner = this.corners.pop();
    this.hover(null);
    return Boolean(corner);
  }

  /** Fills the polygon. */
  close() {
    const corners = this.corners;
    this.corners = [];
    this.board.preview = null;
    if (corners.length < 3) return this.board.draw();
    this.board.drawing.begin();
    this.board.drawing.polygon(corners, this.pen().value);
    this.board.drawing.end();
    return this.onStep();
  }

  /** Forgets what was begun. */
  drop() {
    this.corners = [];
    this.board.preview = null;
  }

  hover(point) {
    const path = new Path2D();
    const corners = point ? [...this.corners, point] : this.corners;
    corners.forEach(({ x, y }, at) => path[at ? "lineTo" : "moveTo"](x, y));
    const handle = 4 / this.board.view.scale;
    for (const { x, y } of this.corners) path.rect(x - handle, y - handle, 2 * handle, 2 * handle);
    this.board.preview = this.corners.length ? { path, color: this.pen().color } : null;
    this.board.draw();
  }

  #near(one, other, pixels) {
    return Math.hypot(one.x - other.x, one.y - other.y) * this.board.view.scale <= pixels;
  }
}
