// The panel beside the photograph: its name, the labels, what is saved.

import { byId, createElement, setText } from "../shared/dom.js";
import { translate } from "../shared/language.js";

export class LabelPanel {
  /** Calls `onGood()` and `onClass(number)`, from 1, when a label is chosen. */
  constructor({ onGood, onClass }) {
    Object.assign(this, { onGood, onClass });
  }

  /** Shows a button for good and one for each class of defects. */
  showClasses(classes) {
    const good = this.#button(translate("Good"), "G", "good", this.onGood);
    const others = classes.map((name, at) => this.#button(name, at < 9 ? String(at + 1) : "", "defect", () => this.onClass(at + 1)));
    byId("labels").replaceChildren(good, ...others);
  }

  showPhotograph({ given: { name, part, label }, error }) {
    setText(byId("name"), name);
    setText(byId("facts"), [part, label && translate("labelled {label}", { label })].filter(Boolean).join(" · "));
    this.showNotice(error);
  }

  /** Shows the chosen class, a mask value, and what "Save" stores. */
  showLabel(photograph, value) {
    const drawn = photograph.drawnClasses;
    const chosen = photograph.defects.find((defect) => defect.value === value)?.name;
    [...byId("labels").children].slice(1).forEach((button, at) => button.setAttribute("aria-pressed", at + 1 === value));
    const classes = drawn.join(", ");
    const text = drawn.length
      ? translate("Save {classes} with the mask", { classes })
      : translate("Save {label} without a mask", { label: chosen ?? "–" });
    setText(byId("save-text"), text);
    byId("save").disabled = !drawn.length && !chosen;
  }

  /** Shows a message, or hides it if empty. */
  showNotice(text) {
    setText(byId("notice"), text);
    byId("notice").hidden = !text;
  }

  #button(text, key, kind, act) {
    const button = createElement("button", "");
    button.type = "button";
    button.dataset.kind = kind;
    if (key) {
      const hint = createElement("kbd", "", key);
      hint.setAttribute("aria-hidden", "true");
      button.setAttribute("aria-keyshortcuts", key);
      button.append(hint);
    }
    button.append(createElement("span", "", text));
    button.addEventListener("click", (event) => event.detail > 1 || act()); // a double click would label the next one
    return button;
  }
}
