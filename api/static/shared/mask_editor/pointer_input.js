// Pointer input: one pointer draws, or pans if no drawing tool is active; two fingers pan and zoom.

import { byId } from "../dom.js";

const STEP = 1.5;
const WHEEL_PX_PER_E = 400; // wheel pixels for a zoom factor of e
const LINE_PX = 30;

export class PointerInput {
  /**
   * `tool()` returns the active drawing tool {down(point, event), move(points), up(), cancel(), hover(point)} or null;
   * its points are pixels of the photograph. Calls `redraw()` after pan and zoom.
   */
  constructor(canvas, view, { tool, redraw }) {
    Object.assign(this, { canvas, view, tool, redraw });
    this.down = new Map(); // screen points of active pointers, by id
    this.drawn = null; // the tool that is drawing
    this.ignoring = false; // after a pinch, the remaining finger does not draw
    this.penUsed = false; // then touches do not draw: the palm rests on the screen
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

  /** Cancels the current stroke and ignores active pointers. */
  cancelAll() {
    this.drawn?.cancel();
    this.drawn = null;
    this.ignoring = this.down.size > 0;
  }

  #press(event) {
    if (event.pointerType === "pen") this.#takePen();
    else if (this.penUsed && this.drawn) return undefined; // the palm
    this.canvas.setPointerCapture(event.pointerId);
    this.down.set(event.pointerId, this.#screenPoint(event));
    if (this.down.size > 1) return this.cancelAll();
    if (!this.#draws(event)) return undefined;
    this.drawn = this.tool();
    return this.drawn.down(this.#at(event), event);
  }

  /** From now on only the pen draws. */
  #takePen() {
    this.penUsed = true;
    this.cancelAll();
    this.down.clear();
    this.ignoring = false;
  }

  #move(event) {
    const before = this.down.get(event.pointerId);
    if (before && !event.buttons) return this.#lift(event); // the pointerup event was lost
    if (!before) return this.tool()?.hover(this.#at(event));
    const now = this.#screenPoint(event);
    if (this.drawn) this.drawn.move(coalescedPoints(event).map((each) => this.#at(each)));
    else if (this.down.size === 2) this.#pinch(event.pointerId, before, now);
    else this.#change(() => this.view.moveBy(now.x - before.x, now.y - before.y));
    return this.down.set(event.pointerId, now);
  }

  #lift(event) {
    if (!this.down.delete(event.pointerId)) return;
    const { drawn } = this;
    this.drawn = null; // first: the end of a stroke may choose another tool
    if (event.type === "pointercancel") drawn?.cancel();
    else drawn?.up();
    if (!this.down.size) this.ignoring = false;
  }

  /** Whether a pointer draws: a pen, a finger if no pen was used, or a button of the mouse. */
  #draws({ pointerType, button }) {
    const tool = this.tool();
    if (!tool || this.ignoring) return false;
    return pointerType === "touch" ? !this.penUsed : button === 0 || (button === 2 && Boolean(tool.acceptsSecondButton));
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

  /** In screen coordinates, because the canvas moves as it grows. */
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

/** All pointer positions since the last event, for smooth fast strokes. */
function coalescedPoints(event) {
  const points = event.getCoalescedEvents?.() ?? [];
  return points.length ? points : [event];
}
