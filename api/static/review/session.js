// This tab's session: its id, which owns the leases, and the times of its verdicts.

import { openTabSession } from "../shared/tab_session.js";

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

/** The session {id, tally} of this tab; it survives a reload. */
export function openSession() {
  const session = openTabSession(NAME);
  session.tally = new Tally(session.tally);
  return session;
}
