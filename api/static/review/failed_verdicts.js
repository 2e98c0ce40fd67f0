// The bar of verdicts that were not stored. It stays until each one is resolved.

import { byId } from "../shared/dom.js";
import { translateCount } from "../shared/language.js";
import { partName } from "../shared/record_text.js";

export class FailedVerdicts {
  /** Calls `onRetry(task)` to review a task again, or `onDismiss(task)`. */
  constructor({ onRetry, onDismiss }) {
    this.tasks = new Map(); // with their reasons
    this.title = document.title;
    const first = () => [...this.tasks.keys()][0];
    byId("review-again").addEventListener("click", () => this.#pass(first(), onRetry));
    byId("dismiss").addEventListener("click", () => this.#pass(first(), onDismiss));
  }

  get count() {
    return this.tasks.size;
  }

  add(task, why) {
    this.tasks.set(task, why);
    this.#present();
  }

  remove(task) {
    this.tasks.delete(task);
    this.#present();
  }

  #pass(task, action) {
    this.remove(task);
    action(task);
  }

  #present() {
    const [first] = this.tasks;
    byId("failed").hidden = !first;
    document.title = first ? `${translateCount(this.count, "{count} not saved", "{count} not saved")} – ${this.title}` : this.title;
    if (!first) return;
    byId("failed-title").textContent = translateCount(
      this.count,
      "A verdict was not saved.",
      "{count} verdicts were not saved.",
    );
    byId("failed-text").textContent = `${partName(first[0].record)}: ${first[1]}`;
  }
}
