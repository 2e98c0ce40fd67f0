// This page's requests to the service.

import { readGrey } from "../shared/png.js";
import { request, ServiceError } from "../shared/service.js";

const JSON_TYPE = { "Content-Type": "application/json" };
const MAX_SKIPPED = 100;
const TIMEOUT_MS = 60_000; // a lost network reports no error for much longer

export class Requests {
  /** `session` identifies the tab; `station` null = all stations; `reviewer` has the name. */
  constructor({ key, session, station, reviewer }) {
    Object.assign(this, { key, session, station, reviewer });
  }

  /** Up to `count` tasks and the queue length, {tasks, waiting}, without the record ids in `skipped`. */
  async next(count, skipped) {
    const skip = skipped.slice(-MAX_SKIPPED);
    const asked = { session: this.session, count, skip, station: this.station, reviewer: this.reviewer.name };
    const body = JSON.stringify(asked);
    return this.#json("v1/review/next", { method: "POST", headers: JSON_TYPE, body });
  }

  /** The decoded photograph of a record, upright as the network saw it. */
  async picture(id) {
    const answer = await this.#ask(`v1/records/${id}/image?form=png`);
    return createImageBitmap(await answer.blob());
  }

  /** The predicted mask of a record, {width, height, pixels, hasClasses}. */
  async mask(id) {
    const answer = await this.#ask(`v1/records/${id}/mask?which=predicted&values=any`);
    const hasClasses = answer.headers.get("X-Segdec-Values") === "class";
    return { ...(await readGrey(new Uint8Array(await answer.arrayBuffer()))), hasClasses };
  }

  /** The current state of a record. */
  async find(id) {
    return this.#json(`v1/records/${id}`);
  }

  /** Stores a verdict {label, reason, reviewer, mask}, `mask` a Blob or null; returns the new record. */
  async review({ record_id: id, revision }, { label, reason, reviewer, mask }) {
    const sent = { label, reason, reviewer, session: this.session, mask: mask && { png: await base64Of(mask) } };
    const headers = { ...JSON_TYPE, "If-Match": `"${revision}"` };
    return this.#json(`v1/records/${id}/review`, { method: "PUT", headers, body: JSON.stringify(sent) });
  }

  /** Reverts the last verdict on a record, in the name of `reviewer` or null; returns the new record. */
  async undo({ record_id: id, revision }, reviewer) {
    const query = new URLSearchParams({ session: this.session, ...(reviewer && { reviewer }) });
    return this.#json(`v1/records/${id}/review?${query}`, { method: "DELETE", headers: { "If-Match": `"${revision}"` } });
  }

  /** The review statistics since `moment`, a Date. */
  async statistics(moment) {
    const query = new URLSearchParams({ since: moment.toISOString() });
    if (this.station !== null) query.set("station", this.station);
    return this.#json(`v1/review/statistics?${query}`);
  }

  async #json(path, options) {
    const answer = await this.#ask(path, options);
    return answer.json().catch(() => {
      throw new ServiceError("The response is incomplete.");
    });
  }

  #ask(path, options = {}) {
    return request(path, { ...options, key: this.key, timeoutMs: TIMEOUT_MS });
  }
}

async function base64Of(blob) {
  const reader = new FileReader();
  await new Promise((resolve, reject) => {
    reader.onload = resolve;
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
  return reader.result.slice(reader.result.indexOf(",") + 1);
}
