// Whether the service answers, and when it is asked again.

const LOOK_AGAIN_MS = 5000; // where nothing waits, or nothing answers
const RENEW_MS = 100_000; // leases last 300 s
const AWAY_MS = 600_000; // without a touch; then others may have what is leased

const part = (id) => document.getElementById(id);

export class Connection {
  /** `verdictsUnderWay()` counts those that wait to be sent. */
  constructor(verdictsUnderWay) {
    this.verdictsUnderWay = verdictsUnderWay;
    this.lost = new Map(); // what was said to whom nothing is given any more, by name
    this.touched = Date.now();
    for (const name of ["pointerdown", "keydown"]) {
      document.addEventListener(name, () => (this.touched = Date.now()), true);
    }
  }

  /** Notes whether `who` was answered; `error` is what the service said, if it said anything. */
  note(who, connected, error) {
    if (connected) this.lost.delete(who);
    else this.lost.set(who, error);
    part("offline").hidden = !this.lost.size;
    if (this.lost.size) this.#say([...this.lost.values()].find((said) => said?.status));
  }

  #say(error) {
    const refused = Boolean(error);
    const count = this.verdictsUnderWay();
    const waits = count === 1 ? "A verdict waits" : `${count} verdicts wait`;
    const sentences = [
      refused ? error.message : "The service is stopped or cannot be reached.",
      count ? `${waits} here to be sent: do not close this page.` : "",
      "Trying again.",
    ];
    const words = sentences.filter(Boolean).join(" ");
    part("offline-title").textContent = refused ? "The service gives no work." : "No connection.";
    if (part("offline-words").textContent !== words) part("offline-words").textContent = words; // else it is read out again
  }

  /** Calls `refill` where `isIdle()` or nothing answers, and now and then as long as somebody is here. */
  keepAsking(refill, isIdle) {
    const renew = () => document.hidden || Date.now() - this.touched > AWAY_MS || refill();
    setInterval(() => document.hidden || ((isIdle() || this.lost.size) && refill()), LOOK_AGAIN_MS);
    setInterval(renew, RENEW_MS);
    document.addEventListener("visibilitychange", renew);
  }
}
