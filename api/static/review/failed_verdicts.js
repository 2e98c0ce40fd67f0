// The bar of verdicts that were not kept. It is loud, and stays until somebody has seen to each of them.

import { byId } from "../shared/dom.js";
import { partName } from "./format.js";

export class FailedVerdicts {
  /** `onRetry(task)` is told which one is to be judged again, `onDismiss(task)` which is not. */
  constructor({ onRetry, onDismiss }) {
    this.tasks = new Map(); // with the reason of each
    this.title = document.title;
    const first = () => [...this.tasks.keys()][0];
    byId("judge-again").addEventListener("click", () => this.#pass(first(), onRetry));
    byId("leave-it").addEventListener("click", () => this.#pass(first(), onDismiss));
  }

  get count() {
    return this.tasks.size;
  }

  add(task, why) {
    this.tasks.set(task, why);
    this.#present();
  }

  /** Whether it was here. */
  remove(task) {
    const removed = this.tasks.delete(task);
    this.#present();
    return removed;
  }

  #pass(task, action) {
    this.remove(task);
    action(task);
  }

  #present() {
    const [first] = this.tasks;
    byId("failed").hidden = !first;
    document.title = first ? `${this.count} not kept – ${this.title}` : this.title;
    if (!first) return;
    byId("failed-title").textContent = this.count === 1 ? "A verdict was not kept." : `${this.count} verdicts were not kept.`;
    byId("failed-words").textContent = `${partName(first[0].record)}: ${first[1]}`;
  }
}
