// How this tab is identified to the service: by an API key, or by the session of a user.

const KEY_NAME = "segdec.key";

/**
 * The API key of this tab; without one, the browser sends the session cookie of the user who is logged in.
 *
 * The user is asked for a key or a log-in when the service rejects a request.
 */
export class Credentials {
  /** `ask(reason)` shows the prompt and resolves to {key}, to {user} after a log-in, or to null if declined. */
  constructor(ask) {
    this.ask = ask;
    this.asking = null;
    this.declined = false;
  }

  /** The key; "" without one. */
  get key() {
    return sessionStorage.getItem(KEY_NAME) ?? "";
  }

  forgetKey() {
    sessionStorage.removeItem(KEY_NAME);
    this.declined = false;
  }

  /** Asks once for all requests that were rejected with the key `used`; returns whether there is a new key or log-in. */
  async renew(used, reason) {
    if (this.key !== used) return true;
    if (this.declined) return false;
    this.asking ??= this.ask(reason).finally(() => (this.asking = null));
    const given = await this.asking;
    if (given?.key) sessionStorage.setItem(KEY_NAME, given.key);
    if (given?.user) sessionStorage.removeItem(KEY_NAME);
    this.declined = !given;
    return Boolean(given);
  }
}
