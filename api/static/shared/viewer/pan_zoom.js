// Pan and zoom: buttons, Ctrl and wheel (a touchpad's pinch), dragging, arrow keys.

import { byId } from "../dom.js";

const STEP = 1.5;
const CLICK_PX = 5; // shorter drags are clicks
const KEYS = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };

/** Connects `canvas` to `view`, a Viewport; calls `redraw` after each change. */
export function enablePanZoom(canvas, view, redraw) {
  const change = (move) => (event) => {
    if (!view.size) return;
    move(event);
    redraw();
  };
  byId("zoom-in").addEventListener("click", change(() => view.zoomBy(STEP)));
  byId("zoom-out").addEventListener("click", change(() => view.zoomBy(1 / STEP)));
  byId("zoom-fit").addEventListener("click", change(() => view.fit()));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return; // without Ctrl the wheel scrolls the page
    event.preventDefault();
    change(() => view.zoomBy(Math.exp(-event.deltaY / 200), { x: event.offsetX, y: event.offsetY }))(event);
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    if (!KEYS[event.key] || view.zoom <= 1) return;
    event.preventDefault();
    change(() => view.moveBy(...KEYS[event.key]))(event);
  });
  drag(canvas, (x, y) => change(() => view.moveBy(x, y))());
}

function drag(canvas, onMove) {
  let last = null;
  let moved = 0;
  canvas.addEventListener("pointerdown", (event) => {
    last = event;
    moved = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!last || !event.buttons) return;
    const [x, y] = [event.clientX - last.clientX, event.clientY - last.clientY];
    moved += Math.hypot(x, y);
    last = event;
    if (moved >= CLICK_PX) onMove(x, y);
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => (last = null));
  canvas.addEventListener("click", (event) => moved >= CLICK_PX && event.stopImmediatePropagation(), true);
}
