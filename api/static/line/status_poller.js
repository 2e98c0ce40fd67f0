// Polls the state of the line once a second, less often while the service is unreachable.

import { LANGUAGE_HEADER, translate } from "../shared/language.js";
import { explain } from "../shared/service.js";

const POLL_INTERVAL_MS = 1000;
const MAX_RETRY_MS = 10_000;
const TIMEOUT_MS = 5000;
const UNAUTHORIZED = 401;
const KEY_NEEDED = translate("Log in, or enter an API key.");
const KEY_UNKNOWN = translate("The service does not accept this key.");

export class StatusPoller {
  /** Calls `onAnswer(status)` or `onError(message, needsKey)` after each request. */
  constructor({ credentials, onAnswer, onError }) {
    Object.assign(this, { credentials, onAnswer, onError });
    this.run = 0;
    this.asking = null;
  }

  /** Polls `station`, or all stations if null; aborts the current request. */
  async follow(station) {
    const run = ++this.run;
    this.asking?.abort();
    const path = station === null ? "v1/line" : `v1/line?station=${encodeURIComponent(station)}`;
    for (let failures = 0; run === this.run; ) {
      try {
        const status = await this.ask(path);
        if (run !== this.run) return;
        failures = 0;
        this.onAnswer(status);
      } catch (error) {
        if (run !== this.run) return;
        failures++;
        this.onError(error.message, Boolean(error.needsKey));
      }
      await pause(failures);
    }
  }

  async ask(path) {
    const used = this.credentials.key;
    const asking = (this.asking = new AbortController());
    const timeout = setTimeout(() => asking.abort(), TIMEOUT_MS);
    try {
      const headers = { ...LANGUAGE_HEADER, ...(used && { Authorization: `Bearer ${used}` }) };
      const answer = await fetch(path, { headers, cache: "no-store", signal: asking.signal }).catch(() => null);
      const status = answer?.ok ? await answer.json().catch(() => null) : null;
      if (status) return status;
      if (!answer || answer.ok) throw new Error(translate("The service is stopped or unreachable."));
      if (answer.status !== UNAUTHORIZED) throw await explain(answer);
    } finally {
      clearTimeout(timeout);
    }
    if (await this.credentials.renew(used, used ? KEY_UNKNOWN : "")) return this.ask(path);
    throw Object.assign(new Error(used ? KEY_UNKNOWN : KEY_NEEDED), { needsKey: true });
  }
}

/** Waits for the next request, with backoff and jitter after failures. */
function pause(failures) {
  const wait = failures ? Math.min(POLL_INTERVAL_MS * 2 ** failures, MAX_RETRY_MS) * (0.5 + Math.random() / 2) : POLL_INTERVAL_MS;
  return new Promise((resolve) => setTimeout(resolve, wait));
}
