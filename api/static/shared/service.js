// Speaks with the service. The messages of its errors are for people.

const KEY_NAME = "segdec.key";
const MAX_RETRIES = 4;
const MAX_WAIT_S = 30;
const BUSY = [429, 503];
const UNAUTHORIZED = 401;
const KEY_NEEDED = "A key is needed.";
const KEY_UNKNOWN = "This key is not known here. Check it, or ask whoever runs the service.";
const NO_ANSWER = "No answer. The service is stopped or cannot be reached.";

/** What went wrong with a request. Its `status` is that of HTTP, 0 where nothing answered; `code` a word for programs. */
export class ServiceError extends Error {
  constructor(message, status = 0, code = "") {
    super(message);
    Object.assign(this, { status, code });
  }
}

/** The API key: kept for this tab only, asked for when the service wants one. */
export class Key {
  /** `ask(reason)` shows the prompt and answers the key, or nothing when it was declined. */
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

  /** Asks once for all requests that were refused with `used`; whether there is a newer key now. */
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
 * Asks for a `path` relative to the page, and again while the service is busy, which `onWait(text)` is told.
 *
 * Returns the response. A ServiceError says why there is none, with the words `noAnswer` where nothing answered;
 * that is given up after `timeoutMs`, if given.
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
      throw new ServiceError(used ? KEY_UNKNOWN : KEY_NEEDED, UNAUTHORIZED); // the service's words are for programs
    }
    const error = await explain(answer);
    if (!BUSY.includes(answer.status) || !answer.headers.has("Retry-After") || attempt > MAX_RETRIES) throw error;
    const given = Number(answer.headers.get("Retry-After"));
    const asked = Number.isFinite(given) ? Math.max(given, 0) : 1; // a date, as proxies send it
    if (asked > MAX_WAIT_S) throw error;
    await pause(asked, attempt, onWait);
    attempt++;
  }
}

async function explain(answer) {
  const kind = answer.headers.get("Content-Type") ?? "";
  const { detail, code } = kind.includes("json") ? ((await answer.json().catch(() => null)) ?? {}) : {};
  const words = typeof detail === "string" && detail ? detail : `The service answered ${answer.status} ${answer.statusText}.`;
  return new ServiceError(words, answer.status, code);
}

/** Waits as long as was asked for at least; longer with each attempt, and not all pages equally long. */
async function pause(asked, attempt, onWait) {
  const wait = Math.min(asked * 2 ** (attempt - 1) * (1 + Math.random()), MAX_WAIT_S);
  onWait(`Service busy: trying again in ${Math.ceil(wait)} s, attempt ${attempt + 1} of ${MAX_RETRIES + 1}.`);
  await new Promise((resolve) => setTimeout(resolve, wait * 1000));
  onWait("");
}
