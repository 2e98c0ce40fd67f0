// The plan that is edited, with its undo steps; it survives a reload.

import { DraftStore } from "../shared/draft_store.js";

const DATABASE = "segdec.plan_drafts";
const MAX_STEPS = 200;

export class PlanDraft {
  /** Calls `onChange()` after each change. */
  constructor(onChange) {
    this.onChange = onChange;
    this.store = new DraftStore(DATABASE);
    this.clear();
  }

  /** Forgets the plan, and continues with the draft of a model, if there is one. */
  async restore(model) {
    this.clear();
    this.model = model;
    Object.assign(this, await this.store.find(model));
    this.onChange();
  }

  clear() {
    Object.assign(this, { model: null, step: null, done: [], undone: [], merged: null });
  }

  /** The plan, or null. */
  get plan() {
    return this.step?.plan ?? null;
  }

  /** The number of the stored version that the plan is; null if it is not stored. */
  get version() {
    return this.step?.version ?? null;
  }

  /** Replaces the plan by a stored version; can be undone. */
  open(plan, version = null) {
    this.#take({ plan, version });
  }

  /** Replaces the plan. Consecutive changes with the same `merge` are one step of undo. */
  change(plan, merge = null) {
    if (plan !== this.plan) this.#take({ plan, version: null }, merge);
  }

  /** Ends a change of several steps, such as a drag. */
  endMerge() {
    this.merged = null;
  }

  /** The plan that was stored is this version. */
  markStored(plan, version) {
    if (plan === this.plan) this.#show({ plan, version });
  }

  undo() {
    this.#step(this.done, this.undone);
  }

  redo() {
    this.#step(this.undone, this.done);
  }

  #take(step, merge = null) {
    if (this.step && (merge === null || merge !== this.merged)) this.done = [...this.done, this.step].slice(-MAX_STEPS);
    this.merged = merge;
    this.undone = [];
    this.#show(step);
  }

  #step(from, to) {
    if (!from.length) return;
    to.push(this.step);
    this.merged = null;
    this.#show(from.pop());
  }

  #show(shown) {
    this.step = shown;
    const { model, step, done, undone } = this;
    this.store.keep(model, { step, done, undone });
    this.onChange();
  }
}
