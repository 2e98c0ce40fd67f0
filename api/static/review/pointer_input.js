// Pointers on the picture: one draws, or moves it where there is nothing to draw with; two fingers move and zoom it.

import { byId } from "../shared/dom.js";

const STEP = 1.5;
const WHEEL_PX_PER_E = 400; // pixels of the wheel that make it e times as large
const LINE_PX = 30;

export class PointerInput {
  /**
   * `tool()` is what draws, or null: {down(point), move(points), up(), cancel(), hover(point)}, in pixels of the
   * photograph; `redraw` shows another part of it.
   */
  constructor(canvas, view, { tool, redraw }) {
    Object.assign(this, { canvas, view, tool, redraw });
    this.down = new Map(); // where the pointers are that touch the picture
    this.drawn = null; // the tool that draws just now
    this.ignoring = false; // two fingers were down: what is left of them does not draw
    this.penUsed = false; // then the hand beside it does not draw
    const on = (name, action) => canvas.addEventListener(name, (event) => view.size && action.call(this, event));
    on("pointerdown", this.#press);
    on("pointermove", this.#move);
    on("pointerup", this.#lift);
    on("pointercancel", this.#lift);
    on("pointerleave", () => this.tool()?.hover(null));
    on("contextmenu", (event) => event.preventDefault());
    canvas.parentElement.addEventListener("wheel", (event) => this.#turn(event), { passive: false });
    byId("zoom-in").addEventListener("click", () => this.zoom(STEP));
    byId("zoom-out").addEventListener("click", () => this.zoom(1 / STEP));
    byId("zoom-fit").addEventListener("click", () => this.fit());
  }

  zoom(factor = STEP) {
    if (this.view.size) this.#change(() => this.view.zoomBy(factor));
  }

  fit() {
    if (this.view.size) this.#change(() => this.view.fit());
  }

  moveBy(x, y) {
    if (this.view.size) this.#change(() => this.view.moveBy(x, y));
  }

  /** Lets go of everything: there is another picture. */
  cancelAll() {
    this.drawn?.cancel();
    this.drawn = null;
    this.ignoring = this.down.size > 0;
  }

  #press(event) {
    if (event.pointerType === "pen") this.#takePen();
    else if (this.penUsed && this.drawn) return undefined; // the hand that holds the pen
    this.canvas.setPointerCapture(event.pointerId);
    this.down.set(event.pointerId, this.#screenPoint(event));
    if (this.down.size > 1) return this.cancelAll();
    if (!this.#draws(event)) return undefined;
    this.drawn = this.tool();
    return this.drawn.down(this.#at(event));
  }

  /** The pen alone counts from now on, wherever the hand lies. */
  #takePen() {
    this.penUsed = true;
    this.cancelAll();
    this.down.clear();
    this.ignoring = false;
  }

  #move(event) {
    const before = this.down.get(event.pointerId);
    if (before && !event.buttons) return this.#lift(event); // nobody has told that it was
    if (!before) return this.tool()?.hover(this.#at(event));
    const now = this.#screenPoint(event);
    if (this.drawn) this.drawn.move(coalescedPoints(event).map((each) => this.#at(each)));
    else if (this.down.size === 2) this.#pinch(event.pointerId, before, now);
    else this.#change(() => this.view.moveBy(now.x - before.x, now.y - before.y));
    return this.down.set(event.pointerId, now);
  }

  #lift(event) {
    if (!this.down.delete(event.pointerId)) return;
    if (event.type === "pointercancel") this.drawn?.cancel();
    else this.drawn?.up();
    this.drawn = null;
    if (!this.down.size) this.ignoring = false;
  }

  /** Whether a pointer that comes down draws: a pen, a finger where there is no pen, the mouse's first button. */
  #draws({ pointerType, button }) {
    if (!this.tool() || this.ignoring) return false;
    return pointerType === "touch" ? !this.penUsed : button === 0;
  }

  #pinch(id, before, now) {
    const other = [...this.down].find(([key]) => key !== id)[1];
    const apart = ({ x, y }) => Math.hypot(x - other.x, y - other.y);
    const middle = ({ x, y }) => ({ x: (x + other.x) / 2, y: (y + other.y) / 2 });
    this.#change(() => this.view.zoomBy(apart(now) / Math.max(apart(before), 1), this.#within(middle(before)), this.#within(middle(now))));
  }

  #turn(event) {
    event.preventDefault();
    if (!this.view.size) return;
    const pixels = event.deltaY * (event.deltaMode ? LINE_PX : 1);
    this.#change(() => this.view.zoomBy(Math.exp(-pixels / WHEEL_PX_PER_E), this.#within(this.#screenPoint(event))));
  }

  #change(move) {
    move();
    this.redraw();
  }

  /** On the screen: the canvas itself moves as it grows. */
  #screenPoint({ clientX, clientY }) {
    return { x: clientX, y: clientY };
  }

  #within({ x, y }) {
    const { left, top } = this.canvas.getBoundingClientRect();
    return { x: x - left, y: y - top };
  }

  #at(event) {
    const { x, y } = this.#within(this.#screenPoint(event));
    return this.view.at(x, y);
  }
}

/** All places a pointer was at since the last event: a fast stroke is as round as it was drawn. */
function coalescedPoints(event) {
  const points = event.getCoalescedEvents?.() ?? [];
  return points.length ? points : [event];
}
