// The sliders: two thresholds, null while they are the model's, and the opacity.
// The slider of the score threshold is linear in log-odds; the others are linear.

import { byId } from "../shared/dom.js";
import { formatNumber, translate } from "../shared/language.js";
import { toPosition, scoreAt, short, shortText } from "./score_scale.js";

export class Sliders {
  /** Calls `onChange(name)` with "score", "mask" or "opacity", or "all" after a reset. */
  constructor(onChange) {
    this.score = null;
    this.mask = null;
    this.opacity = 0.4;
    this.model = { score: 0.5, mask: 0.5 };
    this.onChange = onChange;
    for (const name of ["score", "mask"]) this.#connect(name);
    byId("opacity-slider").addEventListener("input", (event) => {
      this.opacity = event.target.valueAsNumber;
      this.#present();
      onChange("opacity");
    });
    byId("reset").addEventListener("click", () => {
      this.score = this.mask = null;
      this.#present();
      onChange("all");
    });
  }

  /** The effective thresholds. */
  get effective() {
    return { score: this.score ?? this.model.score, mask: this.mask ?? this.model.mask };
  }

  /** Sets the model's thresholds. */
  setModelThresholds(score, mask) {
    this.model = { score, mask };
    this.#present();
  }

  /** Resets the score threshold to the model's. */
  resetScore() {
    this.score = null;
    this.#present();
    this.onChange("score");
  }

  #connect(name) {
    for (const kind of ["slider", "number"]) {
      byId(`${name}-${kind}`).addEventListener("input", ({ target }) => {
        if (Number.isNaN(target.valueAsNumber) || !target.validity.valid) return;
        this[name] = kind === "slider" && name === "score" ? scoreAt(target.valueAsNumber) : target.valueAsNumber;
        this.#present(target);
        this.onChange(name);
      });
    }
    byId(`${name}-number`).addEventListener("change", () => this.#present());
  }

  /** Shows the values, except in the field being `edited`. */
  #present(edited) {
    for (const name of ["score", "mask"]) {
      const value = this.effective[name];
      for (const kind of ["slider", "number"]) {
        const field = byId(`${name}-${kind}`);
        if (field !== edited) field.value = kind === "number" ? short(value) : name === "score" ? toPosition(value) : value;
      }
      byId(`${name}-slider`).setAttribute("aria-valuetext", shortText(value));
      byId(`${name}-model`).textContent = translate("model {value}", { value: shortText(this.model[name]) });
    }
    byId("opacity-slider").value = this.opacity;
    byId("opacity-value").textContent = `${formatNumber(Math.round(this.opacity * 100))} %`;
    byId("reset").disabled = this.score === null && this.mask === null;
  }
}
