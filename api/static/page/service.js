// Speaks with the inspection service. The messages of its errors are for people.

const KEY_NAME = "segdec.key";
const MOST_RETRIES = 4;
const LONGEST_WAIT_S = 30;
const BUSY = [429, 503];
const UNAUTHORIZED = 401;
const KEY_NEEDED = "A key is needed.";
const KEY_UNKNOWN = "This key is not known here. Check it, or ask whoever runs the service.";

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

/** All served models; an empty list when they cannot be told. */
export async function listModels(key) {
  const answer = await request("v1/models", { key });
  return (await answer.json()).models ?? [];
}

/**
 * Has one photograph inspected; `model` is one of `listModels` or nothing for the service's default.
 *
 * Returns {decision, json}: the answer's decision, and all of it as it came, a Blob: a long session would
 * fill the memory with masks otherwise. `onWait(text)` is told what is waited for.
 */
export async function inspect(file, { model, key, onWait }) {
  const body = new FormData();
  body.append("file", file, file.name);
  const query = "predict?mask=scores";
  const path = model
    ? `v1/models/${encodeURIComponent(model.name)}/versions/${encodeURIComponent(model.version)}/${query}`
    : `v1/${query}`;
  const json = await (await request(path, { method: "POST", body, key, onWait })).blob();
  return { decision: JSON.parse(await json.text()).decision, json };
}

async function request(path, { method = "GET", body, key, onWait = () => {} }) {
  for (let attempt = 1; ; ) {
    const used = key.value;
    const answer = await send(path, { method, body, headers: used ? { Authorization: `Bearer ${used}` } : {} });
    if (answer.ok) return answer;
    if (answer.status === UNAUTHORIZED) {
      if (await key.renew(used, used ? KEY_UNKNOWN : "")) continue;
      throw new Error(used ? KEY_UNKNOWN : KEY_NEEDED); // the service's words are for programs
    }
    const error = await explain(answer);
    if (!BUSY.includes(answer.status) || !answer.headers.has("Retry-After") || attempt > MOST_RETRIES) throw error;
    const given = Number(answer.headers.get("Retry-After"));
    const asked = Number.isFinite(given) ? Math.max(given, 0) : 1; // a date, as proxies send it
    if (asked > LONGEST_WAIT_S) throw error;
    await pause(asked, attempt, onWait);
    attempt++;
  }
}

async function send(path, options) {
  try {
    return await fetch(path, { ...options, cache: "no-store" });
  } catch {
    const size = options.body?.get("file").size;
    const large = size > 2 ** 24 ? ` It may also refuse a file of ${(size / 1e6).toFixed(0)} MB.` : "";
    const reasons = "The service is stopped or cannot be reached, or the file cannot be read.";
    throw new Error(`No answer. ${reasons}${large}`);
  }
}

async function explain(answer) {
  const kind = answer.headers.get("Content-Type") ?? "";
  let detail = "";
  if (kind.includes("json")) detail = (await answer.json().catch(() => ({}))).detail ?? "";
  const status = `The service answered ${answer.status} ${answer.statusText}.`;
  return new Error(typeof detail === "string" && detail ? detail : status);
}

/** Waits as long as was asked for at least; longer with each attempt, and not all pages equally long. */
async function pause(asked, attempt, onWait) {
  const wait = Math.min(asked * 2 ** (attempt - 1) * (1 + Math.random()), LONGEST_WAIT_S);
  onWait(`Service busy: trying again in ${Math.ceil(wait)} s, attempt ${attempt + 1} of ${MOST_RETRIES + 1}.`);
  await new Promise((resolve) => setTimeout(resolve, wait * 1000));
  onWait("");
}
