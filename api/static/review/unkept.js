// The bar of verdicts that were not kept. It is loud, and stays until somebody has seen to each of them.

import { partWords } from "./words.js";

const part = (id) => document.getElementById(id);

export class Unkept {
  /** `onAgain(task)` is told which one is to be judged again, `onLeave(task)` which is not. */
  constructor({ onAgain, onLeave }) {
    this.tasks = new Map(); // with the reason of each
    this.title = document.title;
    const first = () => [...this.tasks.keys()][0];
    part("judge-again").addEventListener("click", () => this.#pass(first(), onAgain));
    part("leave-it").addEventListener("click", () => this.#pass(first(), onLeave));
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

  #pass(task, act) {
    this.remove(task);
    act(task);
  }

  #present() {
    const [first] = this.tasks;
    part("failed").hidden = !first;
    document.title = first ? `${this.count} not kept – ${this.title}` : this.title;
    if (!first) return;
    part("failed-title").textContent = this.count === 1 ? "A verdict was not kept." : `${this.count} verdicts were not kept.`;
    part("failed-words").textContent = `${partWords(first[0].record)}: ${first[1]}`;
  }
}
