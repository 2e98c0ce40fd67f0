// What the user may move: two thresholds, each null while it is the model's own, and the opacity.
// The slider of the score's threshold moves along the scale of scores; all others are even.

import { placeOf, scoreAt, short } from "./scale.js";

const part = (id) => document.getElementById(id);

export class Sliders {
  /** `onChange(name)` is told which of "score", "mask" and "opacity" was moved; "all" by a reset. */
  constructor(onChange) {
    this.score = null;
    this.mask = null;
    this.opacity = 0.4;
    this.own = { score: 0.5, mask: 0.5 };
    this.onChange = onChange;
    for (const name of ["score", "mask"]) this.#connect(name);
    part("opacity-slider").addEventListener("input", (event) => {
      this.opacity = event.target.valueAsNumber;
      this.#present();
      onChange("opacity");
    });
    part("reset").addEventListener("click", () => {
      this.score = this.mask = null;
      this.#present();
      onChange("all");
    });
  }

  /** The thresholds in force. */
  get inForce() {
    return { score: this.score ?? this.own.score, mask: this.mask ?? this.own.mask };
  }

  /** Takes the thresholds of the model that answered. */
  setOwn(score, mask) {
    this.own = { score, mask };
    this.#present();
  }

  /** Goes back to the model's threshold for the decision. */
  resetScore() {
    this.score = null;
    this.#present();
    this.onChange("score");
  }

  #connect(name) {
    for (const kind of ["slider", "number"]) {
      part(`${name}-${kind}`).addEventListener("input", ({ target }) => {
        if (Number.isNaN(target.valueAsNumber) || !target.validity.valid) return;
        this[name] = kind === "slider" && name === "score" ? scoreAt(target.valueAsNumber) : target.valueAsNumber;
        this.#present(target);
        this.onChange(name);
      });
    }
    part(`${name}-number`).addEventListener("change", () => this.#present());
  }

  /** Shows the values; leaves the field alone that is being `edited`. */
  #present(edited) {
    for (const name of ["score", "mask"]) {
      const value = this.inForce[name];
      for (const kind of ["slider", "number"]) {
        const field = part(`${name}-${kind}`);
        if (field !== edited) field.value = kind === "number" ? short(value) : name === "score" ? placeOf(value) : value;
      }
      part(`${name}-slider`).setAttribute("aria-valuetext", short(value));
      part(`${name}-model`).textContent = `model ${short(this.own[name])}`;
    }
    part("opacity-slider").value = this.opacity;
    part("opacity-value").textContent = `${Math.round(this.opacity * 100)} %`;
    part("reset").disabled = this.score === null && this.mask === null;
  }
}
