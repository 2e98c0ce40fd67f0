// Tracks the connection to the service, and polls it.

import { byId, setText } from "../shared/dom.js";
import { translate, translateCount } from "../shared/language.js";

const POLL_INTERVAL_MS = 5000; // while the queue is empty or the service is unreachable
const RENEW_INTERVAL_MS = 100_000; // leases expire after 300 s
const FORBIDDEN = 403; // trying again does not help
const IDLE_MS = 600_000; // without input; then leases expire for others

export class Connection {
  /** `countPending()` returns the number of verdicts not sent yet. */
  constructor(countPending) {
    this.countPending = countPending;
    this.failures = new Map(); // the last error of each failing sender, by its name
    this.lastInputAt = Date.now();
    for (const name of ["pointerdown", "keydown"]) {
      document.addEventListener(name, () => (this.lastInputAt = Date.now()), true);
    }
  }

  /** Records whether the sender `who` got a response; `error` is the service's error, if any. */
  report(who, connected, error) {
    if (connected) this.failures.delete(who);
    else this.failures.set(who, error);
    byId("offline").hidden = !this.failures.size;
    if (this.failures.size) this.#show([...this.failures.values()].find((failure) => failure?.status));
  }

  #show(error) {
    const refused = Boolean(error);
    const count = this.countPending();
    const unsent = translateCount(
      count,
      "{count} verdict is not sent yet: do not close this page.",
      "{count} verdicts are not sent yet: do not close this page.",
    );
    const sentences = [
      refused ? error.message : translate("The service is stopped or unreachable."),
      count ? unsent : "",
      error?.status === FORBIDDEN ? "" : translate("Retrying."),
    ];
    const text = sentences.filter(Boolean).join(" ");
    byId("try-now").hidden = error?.status === FORBIDDEN;
    if (error?.status === FORBIDDEN) setText(byId("empty-title"), ""); // nothing is loading
    byId("offline-title").textContent = refused ? translate("The service rejects requests.") : translate("No connection.");
    setText(byId("offline-text"), text);
  }

  /** Calls `refill` while `isIdle()` or the service is unreachable, and regularly while the user is active. */
  startPolling(refill, isIdle) {
    const renew = () => document.hidden || Date.now() - this.lastInputAt > IDLE_MS || refill();
    setInterval(() => document.hidden || ((isIdle() || this.failures.size) && refill()), POLL_INTERVAL_MS);
    setInterval(renew, RENEW_INTERVAL_MS);
    document.addEventListener("visibilitychange", renew);
  }
}
