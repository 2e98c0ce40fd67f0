// What lies on the reviewer's desk: the picture that is shown, and those that come next, fetched already.

import { Task } from "./task.js";

const PREFETCH = 3; // tasks that are leased, with the one that is shown
const MAX_LEASED = 5; // that the service leases at once

export class TaskQueue {
  /** `onChange()` is told when there is another current task, or more is known of those that wait. */
  constructor(requests, { onChange, onConnection }) {
    Object.assign(this, { requests, onChange, onConnection });
    this.current = null;
    this.upcoming = [];
    this.pending = new Set(); // tasks whose verdict is under way, or was not kept
    this.judged = new Map(); // revision of what was judged here, by id: an older one is no news
    this.skipped = []; // ids
    this.waiting = null; // how many, in all
    this.exhausted = false; // whether the service had nothing more for this page
    this.leasedElsewhere = ""; // of which part another has taken the picture away
    this.fetching = null;
    this.refetch = false;
  }

  /** Shows the next one; what was shown is away, is skipped, or comes after it. */
  showNext() {
    this.current?.release();
    this.current = this.upcoming.shift() ?? null;
    this.onChange();
  }

  /** Shows `task` before all others. */
  reopen(task) {
    if (this.current) this.upcoming.unshift(this.current);
    this.current?.release();
    this.pending.delete(task);
    this.skipped = this.skipped.filter((id) => id !== task.id);
    this.upcoming = this.upcoming.filter(({ id }) => id !== task.id);
    this.current = Object.assign(task, { reopened: true });
    this.onChange();
  }

  skip() {
    this.skipped.push(this.current.id);
    this.showNext();
    this.refill();
  }

  /** Takes the current one away for as long as its verdict is under way. */
  send() {
    const task = this.current;
    this.pending.add(task);
    this.showNext();
    return task;
  }

  /** Notes that a verdict on `task` was kept or taken back, or that the page has it still. */
  finishVerdict(task, kept) {
    if (kept) this.pending.delete(task);
    if (kept) this.judged.set(task.id, task.record.revision);
    this.refill();
  }

  /** Lets go of a task whose verdict was not kept. */
  forget(task) {
    this.pending.delete(task);
    this.skipped.push(task.id);
    task.release();
  }

  /** Asks the service what there is; also renews what is leased. Calls meanwhile are one; `onConnection` tells failures. */
  async refill() {
    this.refetch = true;
    this.fetching ??= this.#fetchTasks();
    return this.fetching;
  }

  async #fetchTasks() {
    try {
      while (this.refetch) {
        this.refetch = false;
        const count = Math.min(PREFETCH + this.pending.size, MAX_LEASED);
        const { tasks, waiting } = await this.requests.next(count, this.skipped);
        this.waiting = waiting;
        this.#take(tasks, count);
        this.onConnection(true);
      }
    } catch (error) {
      this.onConnection(false, error);
    } finally {
      this.fetching = null;
    }
  }

  #take(tasks, count) {
    const known = new Map([this.current, ...this.upcoming].filter(Boolean).map((task) => [task.id, task]));
    const offered = tasks.filter(({ record }) => this.#isNew(record));
    const found = offered.map((given) => known.get(given.record.record_id) ?? new Task(given, this.requests));
    // What this page has comes first: where there is room for anything else, all of it is there.
    if (tasks.length < count || found.some(({ id }) => !known.has(id))) this.#dropLeased(found);
    const stays = (task) => task.reopened || found.includes(task);
    for (const task of this.upcoming) if (!stays(task)) task.release();
    const fresh = found.filter((task) => task !== this.current && !this.upcoming.includes(task));
    this.upcoming = [...this.upcoming.filter(stays), ...fresh];
    this.exhausted = !this.current && !this.upcoming.length;
    if (this.current) this.onChange();
    else this.showNext();
    for (const task of this.upcoming) task.load().catch(() => {}); // said when it is shown
  }

  #isNew({ record_id: id, revision }) {
    const pending = [...this.pending].some((task) => task.id === id);
    return !pending && !this.skipped.includes(id) && !(revision < this.judged.get(id));
  }

  /** Puts the current one aside if it is not this page's any more and nobody has drawn on it. */
  #dropLeased(found) {
    const { current } = this;
    if (!current || found.includes(current) || current.reopened || current.drawing?.modified) return;
    this.leasedElsewhere = current.record.part_id ?? `record ${current.id}`;
    current.release();
    this.current = null;
  }
}
