// Requests to the service. Its errors have messages for users.

import { LANGUAGE_HEADER, translate } from "./language.js";
import { csrfHeader, refreshSession } from "./session.js";

const MAX_RETRIES = 4;
const MAX_WAIT_S = 30;
const BUSY = [429, 503];
const UNAUTHORIZED = 401;
const CSRF = "csrf";
const SAFE_METHODS = ["GET", "HEAD"];
const KEY_NEEDED = translate("Log in, or enter an API key.");
const KEY_UNKNOWN = translate("The service does not accept this key. Check it, or ask the operator of the service.");
const NO_ANSWER = translate("No response: the service is stopped or unreachable.");

/** A failed request. `status` is the HTTP status, 0 without a response; `code` the service's error code. */
export class ServiceError extends Error {
  constructor(message, status = 0, code = "") {
    super(message);
    Object.assign(this, { status, code });
  }
}

/**
 * Requests a `path` relative to the page; retries while the service is busy, and calls `onWait(text)` meanwhile.
 *
 * Returns the response to a request with `credentials`, a Credentials. Throws a ServiceError, with the message
 * `noAnswer` if there is no response, or none within `timeoutMs`.
 */
export async function request(path, options) {
  const { method = "GET", body, headers = {}, credentials, onWait = () => {}, noAnswer = NO_ANSWER, timeoutMs, keepalive } = options;
  for (let attempt = 1; ; ) {
    const used = credentials.key;
    const sent = { ...headers, ...(await requestHeaders(method, used)) };
    const signal = timeoutMs && AbortSignal.timeout(timeoutMs);
    const answer = await fetch(path, { method, body, headers: sent, signal, keepalive, cache: "no-store" }).catch(() => null);
    if (answer?.ok) return answer;
    if (!answer) throw new ServiceError(noAnswer);
    if (answer.status === UNAUTHORIZED) {
      if (await credentials.renew(used, used ? KEY_UNKNOWN : "")) continue;
      throw new ServiceError(used ? KEY_UNKNOWN : KEY_NEEDED, UNAUTHORIZED);
    }
    const error = await explain(answer);
    if (error.code === CSRF && attempt === 1) {
      await refreshSession(); // the user logged in again in another tab
      attempt++;
      continue;
    }
    if (!BUSY.includes(answer.status) || !answer.headers.has("Retry-After") || attempt > MAX_RETRIES) throw error;
    const given = Number(answer.headers.get("Retry-After"));
    const asked = Number.isFinite(given) ? Math.max(given, 0) : 1; // proxies may send a date
    if (asked > MAX_WAIT_S) throw error;
    await pause(asked, attempt, onWait);
    attempt++;
  }
}

/** The headers of the language and of who sends a request; the cookie of a session is added by the browser. */
export async function requestHeaders(method, key) {
  if (key) return { ...LANGUAGE_HEADER, Authorization: `Bearer ${key}` };
  return { ...LANGUAGE_HEADER, ...(!SAFE_METHODS.includes(method) && (await csrfHeader())) };
}

/** The ServiceError of an answer that is not a success. */
export async function explain(answer) {
  const kind = answer.headers.get("Content-Type") ?? "";
  const problem = kind.includes("json") ? ((await answer.json().catch(() => null)) ?? {}) : {};
  const status = `${answer.status} ${answer.statusText}`;
  const message = problem.detail || translate("The service answered {status}.", { status });
  return new ServiceError(message, answer.status, problem.code);
}

/** Waits at least the requested time, with exponential backoff and jitter. */
async function pause(asked, attempt, onWait) {
  const wait = Math.min(asked * 2 ** (attempt - 1) * (1 + Math.random()), MAX_WAIT_S);
  const values = { seconds: Math.ceil(wait), number: attempt + 1, all: MAX_RETRIES + 1 };
  onWait(translate("Service busy: retrying in {seconds} s, attempt {number} of {all}.", values));
  await new Promise((resolve) => setTimeout(resolve, wait * 1000));
  onWait("");
}
