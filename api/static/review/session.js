// This tab's session: its id, which owns the leases, and the times of its verdicts.

import { randomId } from "../shared/random_id.js";

const NAME = "segdec.review";
const MAX_PAUSE_MS = 120_000; // longer intervals do not count towards the pace
const MIN_VERDICTS = 5; // needed for a pace
const MAX_REMEMBERED = 500; // times that are stored

/** Number and pace of verdicts. */
export class Tally {
  constructor({ count = 0, times = [] } = {}) {
    Object.assign(this, { count, times });
  }

  add(now) {
    this.count++;
    this.times = [...this.times, now].slice(-MAX_REMEMBERED);
  }

  /** Removes the last verdict. */
  remove() {
    this.count = Math.max(0, this.count - 1);
    this.times.pop();
  }

  /** Verdicts per hour without pauses; null if too few. */
  get perHour() {
    const steps = this.times.slice(1).map((time, at) => time - this.times[at]);
    const taken = steps.filter((step) => step <= MAX_PAUSE_MS);
    const milliseconds = taken.reduce((sum, step) => sum + step, 0);
    return taken.length + 1 < MIN_VERDICTS || !milliseconds ? null : Math.round((taken.length * 3_600_000) / milliseconds);
  }
}

/**
 * The session {id, tally} of this tab; it survives a reload.
 *
 * It is stored only while no page uses it: browsers copy the storage when they duplicate a tab, and two tabs with one
 * session would show the same picture.
 */
export function openSession() {
  const { id = randomId(), tally } = take();
  const session = { id, tally: new Tally(tally) };
  window.addEventListener("pagehide", () => sessionStorage.setItem(NAME, JSON.stringify(session)));
  window.addEventListener("pageshow", (event) => event.persisted && take());
  return session;
}

function take() {
  const saved = sessionStorage.getItem(NAME);
  sessionStorage.removeItem(NAME);
  return saved ? JSON.parse(saved) : {};
}
