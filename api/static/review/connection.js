// Whether the service answers, and when it is asked again.

import { byId } from "../shared/dom.js";

const POLL_INTERVAL_MS = 5000; // where nothing waits, or nothing answers
const RENEW_INTERVAL_MS = 100_000; // leases last 300 s
const IDLE_MS = 600_000; // without a touch; then others may have what is leased

export class Connection {
  /** `countPending()` counts those that wait to be sent. */
  constructor(countPending) {
    this.countPending = countPending;
    this.failures = new Map(); // what was said to whom nothing is given any more, by name
    this.lastInputAt = Date.now();
    for (const name of ["pointerdown", "keydown"]) {
      document.addEventListener(name, () => (this.lastInputAt = Date.now()), true);
    }
  }

  /** Notes whether `who` was answered; `error` is what the service said, if it said anything. */
  report(who, connected, error) {
    if (connected) this.failures.delete(who);
    else this.failures.set(who, error);
    byId("offline").hidden = !this.failures.size;
    if (this.failures.size) this.#say([...this.failures.values()].find((said) => said?.status));
  }

  #say(error) {
    const refused = Boolean(error);
    const count = this.countPending();
    const waits = count === 1 ? "A verdict waits" : `${count} verdicts wait`;
    const sentences = [
      refused ? error.message : "The service is stopped or cannot be reached.",
      count ? `${waits} here to be sent: do not close this page.` : "",
      "Trying again.",
    ];
    const words = sentences.filter(Boolean).join(" ");
    byId("offline-title").textContent = refused ? "The service gives no work." : "No connection.";
    if (byId("offline-words").textContent !== words) byId("offline-words").textContent = words; // else it is read out again
  }

  /** Calls `refill` where `isIdle()` or nothing answers, and now and then as long as somebody is here. */
  startPolling(refill, isIdle) {
    const renew = () => document.hidden || Date.now() - this.lastInputAt > IDLE_MS || refill();
    setInterval(() => document.hidden || ((isIdle() || this.failures.size) && refill()), POLL_INTERVAL_MS);
    setInterval(renew, RENEW_INTERVAL_MS);
    document.addEventListener("visibilitychange", renew);
  }
}
