// What lies on the reviewer's desk: the picture that is shown, and those that come next, fetched already.

import { Task } from "./task.js";

const AHEAD = 3; // tasks that are leased, with the one that is shown
const MOST = 5; // that the service leases at once

export class Desk {
  /** `onChange()` is told when there is another current task, or more is known of those that wait. */
  constructor(requests, { onChange, onConnection }) {
    Object.assign(this, { requests, onChange, onConnection });
    this.current = null;
    this.upcoming = [];
    this.away = new Set(); // tasks whose verdict is under way, or was not kept
    this.judged = new Map(); // revision of what was judged here, by id: an older one is no news
    this.skipped = []; // ids
    this.waiting = null; // how many, in all
    this.exhausted = false; // whether the service had nothing more for this page
    this.taken = ""; // of which part another has taken the picture away
    this.asking = null;
    this.askAgain = false;
  }

  /** Shows the next one; what was shown is away, is skipped, or comes after it. */
  advance() {
    this.current?.release();
    this.current = this.upcoming.shift() ?? null;
    this.onChange();
  }

  /** Shows `task` before all others. */
  recall(task) {
    if (this.current) this.upcoming.unshift(this.current);
    this.current?.release();
    this.away.delete(task);
    this.skipped = this.skipped.filter((id) => id !== task.id);
    this.upcoming = this.upcoming.filter(({ id }) => id !== task.id);
    this.current = Object.assign(task, { recalled: true });
    this.onChange();
  }

  skip() {
    this.skipped.push(this.current.id);
    this.advance();
    this.refill();
  }

  /** Takes the current one away for as long as its verdict is under way. */
  send() {
    const task = this.current;
    this.away.add(task);
    this.advance();
    return task;
  }

  /** Notes that a verdict on `task` was kept or taken back, or that the page has it still. */
  settle(task, kept) {
    if (kept) this.away.delete(task);
    if (kept) this.judged.set(task.id, task.record.revision);
    this.refill();
  }

  /** Lets go of a task whose verdict was not kept. */
  forget(task) {
    this.away.delete(task);
    this.skipped.push(task.id);
    task.release();
  }

  /** Asks the service what there is; also renews what is leased. Calls meanwhile are one; `onConnection` tells failures. */
  async refill() {
    this.askAgain = true;
    this.asking ??= this.#askWhileNeeded();
    return this.asking;
  }

  async #askWhileNeeded() {
    try {
      while (this.askAgain) {
        this.askAgain = false;
        const count = Math.min(AHEAD + this.away.size, MOST);
        const { tasks, waiting } = await this.requests.next(count, this.skipped);
        this.waiting = waiting;
        this.#take(tasks, count);
        this.onConnection(true);
      }
    } catch (error) {
      this.onConnection(false, error);
    } finally {
      this.asking = null;
    }
  }

  #take(tasks, count) {
    const known = new Map([this.current, ...this.upcoming].filter(Boolean).map((task) => [task.id, task]));
    const offered = tasks.filter(({ record }) => this.#isNews(record));
    const found = offered.map((given) => known.get(given.record.record_id) ?? new Task(given, this.requests));
    // What this page has comes first: where there is room for anything else, all of it is there.
    if (tasks.length < count || found.some(({ id }) => !known.has(id))) this.#dropTaken(found);
    const stays = (task) => task.recalled || found.includes(task);
    for (const task of this.upcoming) if (!stays(task)) task.release();
    const fresh = found.filter((task) => task !== this.current && !this.upcoming.includes(task));
    this.upcoming = [...this.upcoming.filter(stays), ...fresh];
    this.exhausted = !this.current && !this.upcoming.length;
    if (this.current) this.onChange();
    else this.advance();
    for (const task of this.upcoming) task.load().catch(() => {}); // said when it is shown
  }

  #isNews({ record_id: id, revision }) {
    const away = [...this.away].some((task) => task.id === id);
    return !away && !this.skipped.includes(id) && !(revision < this.judged.get(id));
  }

  /** Puts the current one aside if it is not this page's any more and nobody has drawn on it. */
  #dropTaken(found) {
    const { current } = this;
    if (!current || found.includes(current) || current.recalled || current.drawing?.mended) return;
    this.taken = current.record.part_id ?? `record ${current.id}`;
    current.release();
    this.current = null;
  }
}
