// The panel beside the photograph: its name, the labels, what is saved.

import { byId, createElement, setText } from "../shared/dom.js";
import { labelText } from "../shared/label_text.js";
import { translate } from "../shared/language.js";
import { proposalText } from "./proposal_text.js";

const CHOOSE = translate("Choose a label or draw a defect");

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

  showPhotograph({ given: { name, part, label, proposal, proposed_label: proposed }, error }) {
    setText(byId("name"), name);
    setText(byId("proposal"), proposal ? proposalText(proposal) : "");
    byId("proposal").hidden = !proposal;
    setText(byId("save-text"), CHOOSE);
    byId("save").disabled = true;
    const facts = [
      part,
      label && translate("Label: {label}", { label: labelText(label) }),
      label && proposed && label !== proposed && translate("Proposed: {label}", { label: labelText(proposed) }),
    ];
    setText(byId("facts"), facts.filter(Boolean).join(" · "));
    this.showNotice(error);
  }

  /** Shows the classes of the photograph, whether its mask has boxes, and what "Save" stores. */
  showLabel(photograph) {
    const { drawnClasses: drawn, accepted, chosen } = photograph;
    const classes = drawn.length ? drawn : [accepted?.label ?? chosen?.name];
    byId("boxes-field").hidden = !drawn.length;
    byId("is-boxes").checked = photograph.drawing.isBoxes;
    photograph.defects.forEach(({ name }, at) => byId("labels").children[at + 1].setAttribute("aria-pressed", classes.includes(name)));
    setText(byId("save-text"), accepted ? acceptText(accepted, drawn) : saveText(drawn, chosen?.name));
    byId("save").disabled = !accepted && !drawn.length && !chosen;
  }

  /** Shows a message, also without a photograph; hides it if empty. */
  showNotice(text) {
    for (const part of [byId("notice"), byId("empty-notice")]) {
      setText(part, text);
      part.hidden = !text;
    }
    byId("retry").hidden = !text;
    byId("others").hidden = !text || !byId("others").hasAttribute("href");
    byId("empty-title").hidden = Boolean(text) && document.querySelector("main").dataset.state === "loading";
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

/** What the button says that accepts a proposal; `drawn` are the classes in its mask. */
function acceptText({ label }, drawn) {
  if (drawn.length) return translate("Accept {classes} with the mask", { classes: drawn.join(", ") });
  return label === "good" ? translate("Accept: good") : translate("Accept {label} without a mask", { label });
}

function saveText(drawn, chosen) {
  if (drawn.length) return translate("Save {classes} with the mask", { classes: drawn.join(", ") });
  return chosen ? translate("Save {label} without a mask", { label: chosen }) : CHOOSE;
}
