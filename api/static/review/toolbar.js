// The toolbar that edits the mask: tool, brush size, class, undo and redo.

import { byId } from "../shared/dom.js";
import { translate } from "../shared/language.js";
import { classColor } from "./mask_layer.js";
import { BrushTool, PolygonTool } from "./tools.js";

const SIZES = [1, 2, 3, 4, 5, 7, 9, 12, 16, 20, 26, 34, 44, 58, 76, 100, 130, 170, 220, 300]; // px
const ERASER = "#ffffff";
const STEPS = [["step-undo", "undo"], ["step-redo", "redo"], ["clear", "clear"], ["predicted", "reset"]];

export class Toolbar {
  /** Calls `onChange()` when the tool changes and after each step. */
  constructor(maskCanvas, { onChange }) {
    Object.assign(this, { maskCanvas, onChange });
    this.task = null;
    this.name = "view";
    this.size = SIZES.indexOf(12);
    this.value = 0;
    const settings = { maskCanvas, brushStyle: () => this.#brushStyle(), onStep: () => this.#stepped() };
    this.tools = { view: null, brush: new BrushTool(settings), eraser: new BrushTool(settings), polygon: new PolygonTool(settings) };
    for (const name of Object.keys(this.tools)) {
      const radio = document.querySelector(`#tools input[value=${name}]`);
      radio.addEventListener("change", () => this.choose(name));
      radio.addEventListener("click", ({ detail }) => detail && radio.blur()); // else the arrow keys would change the tool
    }
    byId("size").max = SIZES.length - 1;
    byId("size").addEventListener("input", ({ target }) => this.resize(target.valueAsNumber - this.size));
    for (const [id, action] of STEPS) byId(id).addEventListener("click", () => this.step(action));
    byId("close-polygon").addEventListener("click", () => this.tools.polygon.close());
  }

  /** The active drawing tool, or null. */
  get tool() {
    return this.task ? this.tools[this.name] : null;
  }

  /** Sets the task whose mask is edited, or null. */
  setTask(task) {
    this.tool?.hover(null);
    this.tools.polygon.reset();
    this.task = task;
    this.value = task?.defects[0]?.value ?? 0;
    this.#showClasses();
    this.choose("view");
  }

  choose(name) {
    if (name !== "polygon") this.tools.polygon.reset();
    this.name = name;
    document.querySelector(`#tools input[value=${name}]`).checked = true;
    byId("picture").classList.toggle("drawing", name !== "view");
    if (name === "view") this.maskCanvas.preview = null;
    else this.maskCanvas.maskShown = true;
    this.#present();
    this.maskCanvas.draw();
    this.onChange();
  }

  /** Changes the brush size by some steps. */
  resize(steps) {
    this.size = Math.min(Math.max(this.size + steps, 0), SIZES.length - 1);
    this.tool?.resized?.();
    this.#present();
  }

  /** Selects the next class. */
  nextClass() {
    const values = this.task?.hasClasses ? this.task.defects.map(({ value }) => value) : [];
    if (!values.length) return;
    this.value = values[(values.indexOf(this.value) + 1) % values.length];
    this.#showClasses();
  }

  /** Runs undo, redo, clear or reset; returns whether something changed. */
  step(action) {
    if (!this.task || this.task.drawing.pending) return false;
    if (action === "undo" && this.tools.polygon.removeLastPoint()) return true;
    this.tools.polygon.reset();
    const done = this.task.drawing[action]() !== false;
    this.#stepped();
    return done;
  }

  #stepped() {
    this.maskCanvas.maskShown = true;
    this.maskCanvas.update(null);
    this.#present();
    this.onChange();
  }

  /** The brush {diameter, value, color}. */
  #brushStyle() {
    const value = this.name === "eraser" ? 0 : this.value;
    return { diameter: SIZES[this.size], value, color: value ? classColor(value) : ERASER };
  }

  #present() {
    const drawing = this.task?.drawing;
    byId("size").value = this.size;
    byId("size").setAttribute("aria-valuetext", translate("{size} pixels", { size: SIZES[this.size] }));
    byId("size-value").textContent = `${SIZES[this.size]} px`;
    byId("size-field").classList.toggle("unused", !["brush", "eraser"].includes(this.name));
    byId("close-polygon").classList.toggle("unused", this.name !== "polygon");
    byId("step-undo").disabled = !drawing?.done.length;
    byId("step-redo").disabled = !drawing?.undone.length;
    byId("clear").disabled = !drawing;
    byId("predicted").disabled = !drawing?.wasEdited;
    byId("tools").disabled = !drawing;
  }

  #showClasses() {
    const classes = this.task?.hasClasses ? this.task.defects : [];
    byId("classes").hidden = classes.length < 2;
    byId("classes").replaceChildren(...classes.map(({ name, value }) => {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: name });
      button.style.setProperty("--swatch", classColor(value));
      button.setAttribute("aria-pressed", value === this.value);
      button.addEventListener("click", () => {
        this.value = value;
        this.#showClasses();
      });
      return button;
    }));
  }
}
