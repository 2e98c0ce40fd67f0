// The visible part of the photograph. Lengths are CSS pixels, positions in the photograph its pixels.

const MAX_FIT_SCALE = 16; // CSS pixels for each pixel of the photograph
const MAX_SCALE = 32;
const BOX_MARGIN = 1.5;

export class Viewport {
  constructor() {
    this.size = null;
  }

  /** Shows the whole photograph of `size` {width, height}. */
  fit(size = this.size) {
    this.size = size;
    this.zoom = 1;
    this.centre = { x: size.width / 2, y: size.height / 2 };
  }

  /** Shows a box {left, top, right, bottom} of the photograph with a margin. */
  show({ left, top, right, bottom }) {
    const zoom = Math.min(this.size.width / (right - left), this.size.height / (bottom - top)) / BOX_MARGIN;
    this.zoom = clamp(zoom, 1, this.maxZoom);
    this.centre = { x: (left + right) / 2, y: (top + bottom) / 2 };
  }

  /** Lays out in the available size: sets `scale`, `width`, `height`, and `left`, `top` in the photograph. */
  layout(availableWidth, availableHeight) {
    const { width, height } = this.size;
    const whole = Math.min(availableWidth / width, availableHeight / height, MAX_FIT_SCALE);
    this.maxZoom = Math.max(1, MAX_SCALE / whole);
    this.zoom = Math.min(this.zoom, this.maxZoom);
    this.scale = whole * this.zoom;
    this.width = Math.max(1, Math.round(Math.min(availableWidth, width * this.scale)));
    this.height = Math.max(1, Math.round(Math.min(availableHeight, height * this.scale)));
    this.left = clamp(this.centre.x - this.width / this.scale / 2, 0, width - this.width / this.scale);
    this.top = clamp(this.centre.y - this.height / this.scale / 2, 0, height - this.height / this.scale);
  }

  /** The point in the photograph at a point of the viewport. */
  at(x, y) {
    return { x: this.left + x / this.scale, y: this.top + y / this.scale };
  }

  /** Zooms so that the photograph at `point` {x, y} moves to `goal`; both default to the centre. */
  zoomBy(factor, point = { x: this.width / 2, y: this.height / 2 }, goal = point) {
    const anchor = this.at(point.x, point.y);
    const zoom = clamp(this.zoom * factor, 1, this.maxZoom);
    const scale = (this.scale / this.zoom) * zoom;
    this.centre = { x: anchor.x + (this.width / 2 - goal.x) / scale, y: anchor.y + (this.height / 2 - goal.y) / scale };
    this.zoom = zoom;
  }

  moveBy(x, y) {
    this.centre = this.at(this.width / 2 - x, this.height / 2 - y);
  }
}

function clamp(value, low, high) {
  return Math.min(Math.max(value, low), Math.max(low, high));
}
