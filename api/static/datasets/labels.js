// The numbers of photographs by label; a click filters them.

import { attempt } from "../shared/attempt.js";
import { byId, createElement } from "../shared/dom.js";
import { formatNumber } from "../shared/language.js";
import { IGNORE, labelBadge, UNLABELLED } from "../shared/label_text.js";

export class Labels {
  /** Calls `onChoose(label)` for a click and `onChange(dataSet)` after a class was added. */
  constructor(id, requests, { onChoose, onChange }) {
    Object.assign(this, { id, requests, onChoose, onChange });
    byId("new-class").addEventListener("submit", (event) => this.#addClass(event));
  }

  show({ classes, counts }) {
    const numbers = { ...counts.labels, [UNLABELLED]: counts.unlabelled };
    const labels = [UNLABELLED, "good", ...classes, ...(numbers[IGNORE] ? [IGNORE] : [])];
    byId("labels").replaceChildren(...labels.map((label) => this.#entry(label, numbers[label] ?? 0)));
  }

  #entry(label, count) {
    const button = createElement("button", "", labelBadge(label), createElement("span", "count", formatNumber(count)));
    button.type = "button";
    button.addEventListener("click", () => this.onChoose(label));
    return createElement("li", "", button);
  }

  async #addClass(event) {
    event.preventDefault();
    const form = event.target;
    const name = form.elements.name.value.trim();
    const changed = await attempt(this.requests.credentials, () => this.requests.addClass(this.id, name));
    if (!changed) return;
    form.reset();
    this.onChange(changed);
  }
}
