// The queue of review tasks: the current one, and prefetched ones.

import { partName } from "../shared/record_text.js";
import { Task } from "./task.js";

const PREFETCH = 3; // leased tasks, including the current one
const MAX_LEASED = 5; // the service's limit per request

export class TaskQueue {
  /** Calls `onChange()` when the current task or the number of waiting ones changes, `onConnection(ok, error)` after requests. */
  constructor(requests, { onChange, onConnection }) {
    Object.assign(this, { requests, onChange, onConnection });
    this.current = null;
    this.upcoming = [];
    this.pending = new Set(); // tasks whose verdict is being sent, or failed
    this.judged = new Map(); // revision of records judged here, by id; older revisions are ignored
    this.skipped = []; // ids
    this.waiting = null; // length of the service's queue
    this.exhausted = false; // whether the service has no task for this page
    this.leasedElsewhere = ""; // name of a part whose lease another session took
    this.fetching = null;
    this.refetch = false;
  }

  /** Makes the next task the current one. */
  showNext() {
    this.current?.release();
    this.current = this.upcoming.shift() ?? null;
    this.onChange();
  }

  /** Makes `task` the current one; the former comes next. */
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

  /** Removes the current task while its verdict is being sent; returns it. */
  send() {
    const task = this.current;
    this.pending.add(task);
    this.showNext();
    return task;
  }

  /** Handles the end of a request about `task`: `stored` if the service stored or reverted its verdict. */
  finishVerdict(task, stored) {
    if (stored) this.pending.delete(task);
    if (stored) this.judged.set(task.id, task.record.revision);
    this.refill();
  }

  /** Drops a task whose verdict was not stored. */
  forget(task) {
    this.pending.delete(task);
    this.skipped.push(task.id);
    task.release();
  }

  /** Fetches tasks and renews leases. Concurrent calls share one request. */
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
        this.#merge(tasks, count);
        this.onConnection(true);
      }
    } catch (error) {
      this.onConnection(false, error);
    } finally {
      this.fetching = null;
    }
  }

  #merge(tasks, count) {
    const known = new Map([this.current, ...this.upcoming].filter(Boolean).map((task) => [task.id, task]));
    const offered = tasks.filter(({ record }) => this.#isNew(record));
    const found = offered.map((given) => known.get(given.record.record_id) ?? new Task(given, this.requests));
    // The service lists this session's leases first. So a missing current task has been leased elsewhere.
    if (tasks.length < count || found.some(({ id }) => !known.has(id))) this.#dropLeased(found);
    const stays = (task) => task.reopened || found.includes(task);
    for (const task of this.upcoming) if (!stays(task)) task.release();
    const fresh = found.filter((task) => task !== this.current && !this.upcoming.includes(task));
    this.upcoming = [...this.upcoming.filter(stays), ...fresh];
    this.exhausted = !this.current && !this.upcoming.length;
    if (this.current) this.onChange();
    else this.showNext();
    for (const task of this.upcoming) task.load().catch(() => {}); // reported when the task is shown
  }

  #isNew({ record_id: id, revision }) {
    const pending = [...this.pending].some((task) => task.id === id);
    return !pending && !this.skipped.includes(id) && !(revision < this.judged.get(id));
  }

  /** Drops the current task if its lease is lost and its mask is not edited. */
  #dropLeased(found) {
    const { current } = this;
    if (!current || found.includes(current) || current.reopened || current.drawing?.modified) return;
    this.leasedElsewhere = partName(current.record);
    current.release();
    this.current = null;
  }
}
