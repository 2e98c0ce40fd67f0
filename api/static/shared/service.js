// Requests to the service. Its errors have messages for users.

const KEY_NAME = "segdec.key";
const MAX_RETRIES = 4;
const MAX_WAIT_S = 30;
const BUSY = [429, 503];
const UNAUTHORIZED = 401;
const KEY_NEEDED = "An API key is required.";
const KEY_UNKNOWN = "The service does not accept this key. Check it, or ask the operator of the service.";
const NO_ANSWER = "No response: the service is stopped or unreachable.";

/** A failed request. `status` is the HTTP status, 0 without a response; `code` the service's error code. */
export class ServiceError extends Error {
  constructor(message, status = 0, code = "") {
    super(message);
    Object.assign(this, { status, code });
  }
}

/** The API key: stored for this tab only, requested from the user when the service requires it. */
export class Key {
  /** `ask(reason)` shows the prompt and resolves to the key, or to "" if declined. */
  constructor(ask) {
    this.ask = ask;
    this.asking = null;
    this.declined = false;
  }

  get value() {
    return sessionStorage.getItem(KEY_NAME) ?? "";
  }

  forget() {
    sessionStorage.removeItem(KEY_NAME);
    this.declined = false;
  }

  /** Asks once for all requests that failed with the key `used`; returns whether there is a new key. */
  async renew(used, reason) {
    if (this.value !== used) return true;
    if (this.declined) return false;
    this.asking ??= this.ask(reason).finally(() => (this.asking = null));
    const given = await this.asking;
    if (given) sessionStorage.setItem(KEY_NAME, given);
    this.declined = !given;
    return Boolean(given);
  }
}

/**
 * Requests a `path` relative to the page; retries while the service is busy, and calls `onWait(text)` meanwhile.
 *
 * Returns the response. Throws a ServiceError, with the message `noAnswer` if there is no response, or none within
 * `timeoutMs`.
 */
export async function request(path, options) {
  const { method = "GET", body, headers = {}, key, onWait = () => {}, noAnswer = NO_ANSWER, timeoutMs } = options;
  for (let attempt = 1; ; ) {
    const used = key.value;
    const sent = used ? { ...headers, Authorization: `Bearer ${used}` } : headers;
    const signal = timeoutMs && AbortSignal.timeout(timeoutMs);
    const answer = await fetch(path, { method, body, headers: sent, signal, cache: "no-store" }).catch(() => null);
    if (answer?.ok) return answer;
    if (!answer) throw new ServiceError(noAnswer);
    if (answer.status === UNAUTHORIZED) {
      if (await key.renew(used, used ? KEY_UNKNOWN : "")) continue;
      throw new ServiceError(used ? KEY_UNKNOWN : KEY_NEEDED, UNAUTHORIZED);
    }
    const error = await explain(answer);
    if (!BUSY.includes(answer.status) || !answer.headers.has("Retry-After") || attempt > MAX_RETRIES) throw error;
    const given = Number(answer.headers.get("Retry-After"));
    const asked = Number.isFinite(given) ? Math.max(given, 0) : 1; // proxies may send a date
    if (asked > MAX_WAIT_S) throw error;
    await pause(asked, attempt, onWait);
    attempt++;
  }
}

async function explain(answer) {
  const kind = answer.headers.get("Content-Type") ?? "";
  const { detail, code } = kind.includes("json") ? ((await answer.json().catch(() => null)) ?? {}) : {};
  const message = typeof detail === "string" && detail ? detail : `The service answered ${answer.status} ${answer.statusText}.`;
  return new ServiceError(message, answer.status, code);
}

/** Waits at least the requested time, with exponential backoff and jitter. */
async function pause(asked, attempt, onWait) {
  const wait = Math.min(asked * 2 ** (attempt - 1) * (1 + Math.random()), MAX_WAIT_S);
  onWait(`Service busy: retrying in ${Math.ceil(wait)} s, attempt ${attempt + 1} of ${MAX_RETRIES + 1}.`);
  await new Promise((resolve) => setTimeout(resolve, wait * 1000));
  onWait("");
}
