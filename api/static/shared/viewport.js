// Which part of the photograph is in sight. Lengths are CSS pixels unless they are the photograph's.

const MAX_FIT_SCALE = 16; // CSS pixels for each pixel of the photograph
const MAX_SCALE = 32;

export class Viewport {
  constructor() {
    this.size = null;
  }

  /** Shows all of a photograph of `size` {width, height}. */
  fit(size = this.size) {
    this.size = size;
    this.zoom = 1;
    this.centre = { x: size.width / 2, y: size.height / 2 };
  }

  /** Takes the room that there is: sets `scale`, `width`, `height`, and `left`, `top` in the photograph. */
  place(across, down) {
    const { width, height } = this.size;
    const whole = Math.min(across / width, down / height, MAX_FIT_SCALE);
    this.most = Math.max(1, MAX_SCALE / whole);
    this.zoom = Math.min(this.zoom, this.most);
    this.scale = whole * this.zoom;
    this.width = Math.max(1, Math.round(Math.min(across, width * this.scale)));
    this.height = Math.max(1, Math.round(Math.min(down, height * this.scale)));
    this.left = between(this.centre.x - this.width / this.scale / 2, 0, width - this.width / this.scale);
    this.top = between(this.centre.y - this.height / this.scale / 2, 0, height - this.height / this.scale);
  }

  /** The place in the photograph below a point of the window. */
  at(x, y) {
    return { x: this.left + x / this.scale, y: this.top + y / this.scale };
  }

  /** Zooms so that what lies below `point` {x, y} of the window comes to `goal`; both are its middle without them. */
  zoomBy(factor, point = { x: this.width / 2, y: this.height / 2 }, goal = point) {
    const kept = this.at(point.x, point.y);
    const zoom = between(this.zoom * factor, 1, this.most);
    const scale = (this.scale / this.zoom) * zoom;
    this.centre = { x: kept.x + (this.width / 2 - goal.x) / scale, y: kept.y + (this.height / 2 - goal.y) / scale };
    this.zoom = zoom;
  }

  moveBy(x, y) {
    this.centre = this.at(this.width / 2 - x, this.height / 2 - y);
  }
}

function between(value, least, most) {
  return Math.min(Math.max(value, least), Math.max(least, most));
}
