// The toolbar that edits the mask: tool, brush size, class, undo and redo.

import { byId, createElement } from "../dom.js";
import { translate, translateTree } from "../language.js";
import { classColor } from "./mask_layer.js";
import { BoxTool, BrushTool, PolygonTool } from "./tools.js";

const SIZES = [1, 2, 3, 4, 5, 7, 9, 12, 16, 20, 26, 34, 44, 58, 76, 100, 130, 170, 220, 300]; // px
const ERASER = "#ffffff";
const IGNORED = 255;
const STEPS = [["step-undo", "undo"], ["step-redo", "redo"], ["clear", "clear"], ["reset", "reset"]];

const VIEW_TOOLS = `
  <button id="mask-toggle" type="button" aria-pressed="true" aria-keyshortcuts="M"><kbd aria-hidden="true">M</kbd>Mask</button>
  <input id="opacity" type="range" min="0" max="1" step="0.05" value="0.4" aria-label="Mask opacity">
  <div class="joined" role="group" aria-label="Zoom">
    <button id="zoom-out" type="button" aria-label="Zoom out" aria-keyshortcuts="-">−</button>
    <button id="zoom-in" type="button" aria-label="Zoom in" aria-keyshortcuts="+">+</button>
    <button id="zoom-fit" type="button" aria-keyshortcuts="0"><kbd aria-hidden="true">0</kbd>Fit</button>
    <button id="zoom-mask" type="button" aria-label="Zoom to the mask" aria-keyshortcuts="F"><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5M9 12h6M12 9v6"/></svg></button>
  </div>
  <button type="button" popovertarget="light" aria-label="Brightness and contrast">◐</button>
  <form id="light" popover>
    <label>Brightness<input name="brightness" type="range" min="0.2" max="4" step="0.1" value="1"></label>
    <label>Contrast<input name="contrast" type="range" min="0.2" max="4" step="0.1" value="1"></label>
    <button type="reset">Reset</button>
  </form>
  <button id="show-keys" type="button" aria-label="Help and keys" aria-keyshortcuts="?">?</button>`;

const TOOLS = `
  <legend class="unseen">Edit the mask</legend>
  <div class="joined" role="radiogroup" aria-label="Tool">
    <label aria-keyshortcuts="V"><input type="radio" name="tool" value="view" checked><kbd aria-hidden="true">V</kbd>View</label>
    <label aria-keyshortcuts="S"><input type="radio" name="tool" value="click"><kbd aria-hidden="true">S</kbd>Click</label>
    <label aria-keyshortcuts="B"><input type="radio" name="tool" value="brush"><kbd aria-hidden="true">B</kbd>Brush</label>
    <label aria-keyshortcuts="E"><input type="radio" name="tool" value="eraser"><kbd aria-hidden="true">E</kbd>Eraser</label>
    <label aria-keyshortcuts="P"><input type="radio" name="tool" value="polygon"><kbd aria-hidden="true">P</kbd>Polygon</label>
    <label aria-keyshortcuts="X"><input type="radio" name="tool" value="box"><kbd aria-hidden="true">X</kbd>Box</label>
  </div>
  <div id="classes" class="joined" role="group" aria-label="Class" aria-keyshortcuts="C" hidden></div>
  <div id="settings">
    <label id="size-field" aria-keyshortcuts="[ ]"><kbd aria-hidden="true">[ ]</kbd><span class="unseen">Size</span><input id="size" type="range" min="0" step="1"><output id="size-value" for="size"></output></label>
    <button id="close-polygon" type="button" aria-keyshortcuts="Enter" aria-label="Close polygon"><kbd aria-hidden="true">↵</kbd>Close</button>
    <div id="click-field">
      <button id="click-beside" type="button" aria-pressed="false">Not a defect</button>
      <button id="next-region" type="button" aria-keyshortcuts="S"><kbd aria-hidden="true">S</kbd>Next region</button>
    </div>
  </div>
  <div id="steps">
    <div class="joined">
      <button id="step-undo" type="button" aria-keyshortcuts="Control+Z" disabled><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M9 5 4 10l5 5M4 10h10a6 6 0 0 1 0 12h-3"/></svg><span class="unseen">Undo stroke</span></button>
      <button id="step-redo" type="button" aria-keyshortcuts="Control+Y" disabled><svg viewBox="0 0 24 24" aria-hidden="true"><path d="m15 5 5 5-5 5M20 10H10a6 6 0 0 0 0 12h3"/></svg><span class="unseen">Redo stroke</span></button>
    </div>
    <button id="clear" type="button" aria-label="Clear the mask">Clear</button>
    <button id="reset" type="button" aria-label="Restore the first mask">Reset</button>
  </div>`;

/** Fills the elements `view-tools` and `tools` of the page. */
function makeElements() {
  for (const [id, html] of [["view-tools", VIEW_TOOLS], ["tools", TOOLS]]) {
    byId(id).innerHTML = html;
    translateTree(byId(id));
  }
}

export class Toolbar {
  /**
   * Calls `onChange()` when the tool changes and after each step. `makeClickTool(settings)` makes the tool that finds
   * defects by clicks; without it the page has none. With `offersIgnored`, areas can be ignored; with `keepsTool`, the
   * tool stays for the next task.
   */
  constructor(maskCanvas, { onChange, makeClickTool = null, offersIgnored = false, keepsTool = false }) {
    Object.assign(this, { maskCanvas, onChange, offersIgnored, keepsTool });
    makeElements();
    this.task = null;
    this.name = "view";
    this.size = SIZES.indexOf(12);
    this.value = 0;
    this.clicksBeside = false; // whether the next clicks of the click tool are beside the defect
    const settings = {
      maskCanvas,
      brushStyle: () => this.#brushStyle(),
      onStep: () => this.#stepped(),
      clicksBeside: () => this.clicksBeside,
    };
    this.tools = {
      view: null,
      click: makeClickTool?.(settings),
      brush: new BrushTool(settings),
      eraser: new BrushTool(settings),
      polygon: new PolygonTool(settings),
      box: new BoxTool(settings),
    };
    for (const name of Object.keys(this.tools)) this.#bindTool(name);
    byId("size").max = SIZES.length - 1;
    byId("size").addEventListener("input", ({ target }) => this.resize(target.valueAsNumber - this.size));
    for (const [id, action] of STEPS) byId(id).addEventListener("click", () => this.step(action));
    byId("close-polygon").addEventListener("click", () => this.tools.polygon.close());
    byId("next-region").addEventListener("click", () => this.choose("click"));
    byId("click-beside").addEventListener("click", () => {
      this.clicksBeside = !this.clicksBeside;
      this.#present();
    });
  }

  /** The active drawing tool, or null. */
  get tool() {
    return this.task ? this.tools[this.name] : null;
  }

  /** Sets the task whose mask is edited, {drawing, defects: [{name, value}], hasClasses}, or null. */
  setTask(task) {
    this.tool?.hover(null);
    for (const tool of Object.values(this.tools)) tool?.reset?.(); // corners and clicks belong to one photograph
    this.task = task;
    this.value = task?.defects[0]?.value ?? 0;
    this.#showClasses();
    this.choose(this.keepsTool ? this.name : "view");
  }

  choose(name) {
    if (this.tools[name] === undefined) return;
    this.tool?.reset?.();
    this.clicksBeside = false;
    this.name = name;
    radioOf(name).checked = true;
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

  /** Selects the class with which tools draw, by its mask value. */
  chooseClass(value) {
    this.value = value;
    this.#showClasses();
  }

  /** Selects the next class. */
  nextClass() {
    const values = this.#classes().map(({ value }) => value);
    if (values.length) this.chooseClass(values[(values.indexOf(this.value) + 1) % values.length]);
  }

  /** Runs undo, redo, clear, reset or, with its arguments, replace; returns whether something changed. */
  step(action, ...values) {
    if (!this.task || this.task.drawing.pending) return false;
    if (action === "undo" && this.tool?.removeLastPoint?.()) return true;
    this.tool?.reset?.();
    const done = this.task.drawing[action](...values) !== false;
    this.#stepped();
    return done;
  }

  #bindTool(name) {
    const radio = radioOf(name);
    if (this.tools[name] === undefined) return radio.parentElement.remove();
    radio.addEventListener("change", () => this.choose(name));
    return radio.addEventListener("click", ({ detail }) => detail && radio.blur()); // else the arrow keys would change the tool
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
    return { diameter: SIZES[this.size], value, color: value ? classColor(value, this.task.hasClasses) : ERASER };
  }

  #present() {
    const drawing = this.task?.drawing;
    byId("size").value = this.size;
    byId("size").setAttribute("aria-valuetext", translate("{size} pixels", { size: SIZES[this.size] }));
    byId("size-value").textContent = `${SIZES[this.size]} px`;
    byId("size-field").classList.toggle("unused", !["brush", "eraser"].includes(this.name));
    byId("close-polygon").classList.toggle("unused", this.name !== "polygon");
    byId("click-field").classList.toggle("unused", this.name !== "click");
    byId("click-beside").setAttribute("aria-pressed", this.clicksBeside);
    byId("step-undo").disabled = !drawing?.done.length;
    byId("step-redo").disabled = !drawing?.undone.length;
    byId("clear").disabled = !drawing;
    byId("reset").disabled = !drawing?.wasEdited;
    byId("tools").disabled = !drawing;
  }

  /** The classes with which tools draw. */
  #classes() {
    if (!this.task?.hasClasses) return [];
    return this.offersIgnored ? [...this.task.defects, { name: translate("Ignore"), value: IGNORED }] : this.task.defects;
  }

  #showClasses() {
    const classes = this.#classes();
    byId("classes").hidden = classes.length < 2;
    byId("classes").replaceChildren(...classes.map(({ name, value }) => {
      const button = createElement("button", "", name);
      button.type = "button";
      button.style.setProperty("--swatch", classColor(value, true));
      button.setAttribute("aria-pressed", value === this.value);
      button.addEventListener("click", () => this.chooseClass(value));
      return button;
    }));
  }
}

function radioOf(name) {
  return document.querySelector(`#tools input[value=${name}]`);
}
