// This tab's session: its name, which holds the leases, and when something was judged in it.

const NAME = "segdec.review";
const MAX_PAUSE_MS = 120_000; // between two verdicts of one sitting
const MIN_VERDICTS = 5; // verdicts of which a pace can be told
const MAX_REMEMBERED = 500; // are remembered one by one

/** Judged pictures: how many, and how fast. */
export class Tally {
  constructor({ count = 0, times = [] } = {}) {
    Object.assign(this, { count, times });
  }

  add(now) {
    this.count++;
    this.times = [...this.times, now].slice(-MOST);
  }

  /** One was taken back. */
  remove() {
    this.count = Math.max(0, this.count - 1);
    this.times.pop();
  }

  /** How many an hour, pauses left out; null while it cannot be told. */
  get perHour() {
    const steps = this.times.slice(1).map((time, at) => time - this.times[at]);
    const taken = steps.filter((step) => step <= MAX_PAUSE_MS);
    const milliseconds = taken.reduce((sum, step) => sum + step, 0);
    return taken.length + 1 < MIN_VERDICTS || !milliseconds ? null : Math.round((taken.length * 3_600_000) / milliseconds);
  }
}

/**
 * The session {id, tally} of this tab, which a reload keeps.
 *
 * It lies in the storage only while no page of the tab has it: a browser that duplicates a tab copies its storage,
 * and both would be shown the same picture.
 */
export function openSession() {
  const { id = randomId(), tally } = take();
  const session = { id, tally: new Tally(tally) };
  window.addEventListener("pagehide", () => sessionStorage.setItem(NAME, JSON.stringify(session)));
  window.addEventListener("pageshow", (event) => event.persisted && take());
  return session;
}

function take() {
  const kept = sessionStorage.getItem(NAME);
  sessionStorage.removeItem(NAME);
  return kept ? JSON.parse(kept) : {};
}

/** 128 random bits; `crypto.randomUUID` is there with HTTPS only. */
function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
