// Runs jobs in order, at most a fixed number at a time.

export class RequestQueue {
  constructor(maxConcurrent) {
    this.free = maxConcurrent;
    this.waiting = [];
  }

  /** Runs `job`, an async function, when a slot is free. */
  add(job) {
    this.waiting.push(job);
    this.#next();
  }

  #next() {
    if (!this.free || !this.waiting.length) return;
    this.free--;
    const job = this.waiting.shift();
    job().finally(() => {
      this.free++;
      this.#next();
    });
  }
}
