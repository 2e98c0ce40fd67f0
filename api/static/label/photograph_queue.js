// The photographs to label: the current one, prefetched ones and those that were shown before.

import { Photograph } from "./photograph.js";

const PREFETCH = 3; // leased photographs, including the current one
const MAX_LEASED = 5; // the service's limits for one request
const MAX_SKIPPED = 1000;

export class PhotographQueue {
  /** `parts` are those of Photograph; calls `onChange()` when the current photograph or the counts change. */
  constructor(requests, parts, onChange) {
    Object.assign(this, { requests, parts, onChange });
    this.current = null;
    this.upcoming = [];
    this.former = []; // labelled or skipped, the newest last
    this.saving = new Set();
    this.saved = []; // in the order of saving, also again; those being saved too
    this.skipped = new Set(); // ids
    this.unlabelled = null; // number in the data set
    this.exhausted = false; // whether the service has no photograph for this page
    this.wanted = null; // id of a photograph to show first
    this.fetching = null;
  }

  /** Shows a certain photograph first, labelled or not. */
  want(id) {
    this.wanted = id;
  }

  /** Shows the next photograph. */
  showNext() {
    if (this.current) this.former.push(this.current);
    this.#setCurrent(this.upcoming.shift() ?? null);
    return this.refill();
  }

  skip() {
    this.skipped.add(this.current.id);
    return this.showNext();
  }

  /** Shows the former photograph again; returns whether there was one. */
  back() {
    const former = this.former.pop();
    if (former) this.reopen(former);
    return Boolean(former);
  }

  /** Shows a photograph again; the current one comes next. */
  reopen(photograph) {
    if (photograph === this.current) return;
    if (this.current) this.upcoming.unshift(this.current);
    this.former = this.former.filter((each) => each !== photograph);
    this.upcoming = this.upcoming.filter((each) => each !== photograph);
    this.#setCurrent(photograph);
  }

  /** Offers the skipped photographs again. */
  offerSkipped() {
    this.skipped.clear();
    return this.refill();
  }

  /** Fetches photographs and renews the leases. Concurrent calls share one request. */
  refill() {
    this.fetching ??= this.#fetch().finally(() => (this.fetching = null));
    return this.fetching;
  }

  async #fetch() {
    const count = Math.min(PREFETCH + this.saving.size, MAX_LEASED);
    const first = this.wanted === null ? [] : (await this.requests.lease(this.wanted)).photographs;
    this.wanted = null;
    const { photographs, unlabelled } = await this.requests.next(count, [...this.#finished()].slice(-MAX_SKIPPED));
    this.unlabelled = unlabelled;
    const known = this.#finished(); // some may have been labelled meanwhile
    for (const { id } of [this.current, ...this.upcoming].filter(Boolean)) known.add(id);
    for (const given of [...first, ...photographs]) {
      if (!known.has(given.id)) this.upcoming.push(new Photograph(given, this.parts));
      known.add(given.id);
    }
    this.exhausted = !this.current && !this.upcoming.length;
    if (this.current || this.exhausted) this.onChange();
    else this.#setCurrent(this.upcoming.shift());
    this.#loadAhead();
  }

  /** Loads the current photograph, then the next ones: together they would delay it. */
  async #loadAhead() {
    for (const photograph of [this.current, ...this.upcoming.slice(0, PREFETCH)]) {
      const isOpen = photograph && (photograph === this.current || this.upcoming.includes(photograph));
      if (isOpen) await photograph.load().catch(() => {}); // reported when it is shown
    }
  }

  /** Fetches the photographs again, whose proposals have changed, except the current one if it was edited. */
  async reload() {
    if (this.fetching) await this.fetching;
    const { current } = this;
    const isEdited = current?.drawing?.modified || current?.chosen;
    for (const photograph of this.upcoming) photograph.release();
    this.upcoming = [];
    if (isEdited) return this.refill();
    this.#setCurrent(null);
    await this.requests.release(); // others may be more useful now
    return this.refill();
  }

  /** Ids of the photographs that are not shown again by themselves. */
  #finished() {
    return new Set([...this.skipped, ...[...this.former, ...this.saving].map(({ id }) => id)]);
  }

  #setCurrent(photograph) {
    this.current?.release();
    this.current = photograph;
    this.onChange();
  }
}
