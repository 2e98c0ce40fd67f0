// Says which model answers, and lets choose when there are several.

import { listModels } from "./inspecting.js";

const part = (id) => document.getElementById(id);

export class ModelChooser {
  constructor(key) {
    this.key = key;
    this.models = [];
  }

  /** The model to ask, or nothing for the service's default. */
  get chosen() {
    return this.models[Number(part("models").value || -1)];
  }

  /** Asks the service what it serves. */
  async fill() {
    try {
      this.models = await listModels(this.key);
    } catch (error) {
      part("model").textContent = error.message;
      return;
    }
    const several = this.models.length > 1;
    part("chooser").hidden = !several;
    part("model").textContent = several ? "" : this.models.map(nameOf).join();
    const options = this.models.map((model, index) => new Option(nameOf(model), String(index)));
    part("models").replaceChildren(new Option("default", "-1"), ...options);
  }
}

function nameOf({ name, version, labels }) {
  return `${name} ${version}${labels.length ? ` (${labels.join(", ")})` : ""}`;
}
