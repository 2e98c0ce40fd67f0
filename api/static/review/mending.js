// Mends the mask of the current task: tools, their size and class, and the steps that can be undone.

import { colorOf } from "./mask_layer.js";
import { Brush, Outliner } from "./tools.js";

const SIZES = [1, 2, 3, 4, 5, 7, 9, 12, 16, 20, 26, 34, 44, 58, 76, 100, 130, 170, 220, 300]; // px
const ERASER = "#ffffff";
const STEPS = [["step-undo", "undo"], ["step-redo", "redo"], ["clear", "clear"], ["predicted", "reset"]];

const part = (id) => document.getElementById(id);

export class Mending {
  /** `board` shows the mask; `onChange()` is told when another tool was taken, and after each step. */
  constructor(board, { onChange }) {
    Object.assign(this, { board, onChange });
    this.task = null;
    this.name = "look";
    this.size = SIZES.indexOf(12);
    this.value = 0;
    const settings = { board, pen: () => this.#pen(), onStep: () => this.#stepped() };
    this.tools = { look: null, brush: new Brush(settings), eraser: new Brush(settings), polygon: new Outliner(settings) };
    for (const name of Object.keys(this.tools)) {
      const radio = document.querySelector(`#tools input[value=${name}]`);
      radio.addEventListener("change", () => this.choose(name));
      radio.addEventListener("click", ({ detail }) => detail && radio.blur()); // else the arrow that skips would choose
    }
    part("size").max = SIZES.length - 1;
    part("size").addEventListener("input", ({ target }) => this.resize(target.valueAsNumber - this.size));
    for (const [id, act] of STEPS) part(id).addEventListener("click", () => this.step(act));
    part("close-polygon").addEventListener("click", () => this.tools.polygon.close());
  }

  /** What draws, or null. */
  get tool() {
    return this.task ? this.tools[this.name] : null;
  }

  /** Takes the current task, whose picture is loaded, or null. */
  take(task) {
    this.tool?.hover(null);
    this.tools.polygon.drop();
    this.task = task;
    this.value = task?.defects[0]?.value ?? 0;
    this.#showClasses();
    this.choose("look");
  }

  choose(name) {
    if (name !== "polygon") this.tools.polygon.drop();
    this.name = name;
    document.querySelector(`#tools input[value=${name}]`).checked = true;
    part("picture").classList.toggle("drawing", name !== "look");
    if (name === "look") this.board.preview = null;
    else this.board.maskShown = true;
    this.#present();
    this.board.draw();
    this.onChange();
  }

  /** Makes the brush larger or smaller by some steps. */
  resize(steps) {
    this.size = Math.min(Math.max(this.size + steps, 0), SIZES.length - 1);
    this.tool?.resized?.();
    this.#present();
  }

  /** Paints the next class from now on. */
  nextClass() {
    const values = this.task?.classed ? this.task.defects.map(({ value }) => value) : [];
    if (!values.length) return;
    this.value = values[(values.indexOf(this.value) + 1) % values.length];
    this.#showClasses();
  }

  /** undo, redo, clear or reset; whether there was anything to do. */
  step(act) {
    if (!this.task || this.task.drawing.underWay) return false;
    if (act === "undo" && this.tools.polygon.back()) return true;
    this.tools.polygon.drop();
    const done = this.task.drawing[act]() !== false;
    this.#stepped();
    return done;
  }

  #stepped() {
    this.board.maskShown = true;
    this.board.update(null);
    this.#present();
    this.onChange();
  }

  /** What is drawn with: {diameter, value, color}. */
  #pen() {
    const value = this.name === "eraser" ? 0 : this.value;
    return { diameter: SIZES[this.size], value, color: value ? colorOf(value) : ERASER };
  }

  #present() {
    const drawing = this.task?.drawing;
    part("size").value = this.size;
    part("size").setAttribute("aria-valuetext", `${SIZES[this.size]} pixels`);
    part("size-value").textContent = `${SIZES[this.size]} px`;
    part("size-field").classList.toggle("unused", !["brush", "eraser"].includes(this.name));
    part("close-polygon").classList.toggle("unused", this.name !== "polygon");
    part("step-undo").disabled = !drawing?.done.length;
    part("step-redo").disabled = !drawing?.undone.length;
    part("clear").disabled = !drawing;
    part("predicted").disabled = !drawing?.touchedEver;
    part("tools").disabled = !drawing;
  }

  #showClasses() {
    const classes = this.task?.classed ? this.task.defects : [];
    part("classes").hidden = classes.length < 2;
    part("classes").replaceChildren(...classes.map(({ name, value }) => {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: name });
      button.style.setProperty("--swatch", colorOf(value));
      button.setAttribute("aria-pressed", value === this.value);
      button.addEventListener("click", () => {
        this.value = value;
        this.#showClasses();
      });
      return button;
    }));
  }
}
