// What this page asks of the service.

import { readGrey } from "../shared/png.js";
import { request, ServiceError } from "../shared/service.js";

const JSON_TYPE = { "Content-Type": "application/json" };
const MAX_SKIPPED = 100;
const TIMEOUT_MS = 60_000; // a network that is gone may say nothing for much longer

export class Requests {
  /** `session` is the tab's; `station` null is every one. */
  constructor({ key, session, station }) {
    Object.assign(this, { key, session, station });
    this.hasClasses = new Map(); // whether the masks of a model have classes, as far as is known
  }

  /** Up to `count` tasks for this session and how many wait, {tasks, waiting}; without those in `skipped`, by id. */
  async next(count, skipped) {
    const skip = skipped.slice(-MOST_SKIPPED);
    const body = JSON.stringify({ session: this.session, count, skip, station: this.station });
    return this.#json("v1/review/next", { method: "POST", headers: JSON_TYPE, body });
  }

  /** The photograph of a record, upright as the network saw it, decoded. */
  async picture(id) {
    const answer = await this.#ask(`v1/records/${id}/image?form=png`);
    return createImageBitmap(await answer.blob());
  }

  /** The mask that was answered for a record, {width, height, pixels, classed}: with the classes of its pixels, if any. */
  async mask(record) {
    const { model, regions } = record.answer;
    const name = `${model.name}/${model.version}`;
    if (regions.length) this.hasClasses.set(name, regions.some(({ label }) => label !== null));
    if (this.hasClasses.get(name) === false) return this.#mask(record, false);
    try {
      return await this.#mask(record, true);
    } catch (error) {
      if (error.status !== 400) throw error;
      this.hasClasses.set(name, false); // the first mask of a model may be empty, and tell nothing
      return this.#mask(record, false);
    }
  }

  async #mask({ record_id: id }, hasClasses) {
    const answer = await this.#ask(`v1/records/${id}/mask?which=predicted&values=${hasClasses ? "class" : "defect"}`);
    return { ...(await readGrey(new Uint8Array(await answer.arrayBuffer()))), hasClasses };
  }

  /** A record as it is now. */
  async find(id) {
    return this.#json(`v1/records/${id}`);
  }

  /** Keeps a verdict {label, reason, reviewer, mask}, `mask` a Blob or null; the record as it is then. */
  async review({ record_id: id, revision }, { label, reason, reviewer, mask }) {
    const sent = { label, reason, reviewer, session: this.session, mask: mask && { png: await base64Of(mask) } };
    const headers = { ...JSON_TYPE, "If-Match": `"${revision}"` };
    return this.#json(`v1/records/${id}/review`, { method: "PUT", headers, body: JSON.stringify(sent) });
  }

  /** Takes the last verdict on a record back; the record as it is then. */
  async undo({ record_id: id, revision }) {
    const path = `v1/records/${id}/review?session=${encodeURIComponent(this.session)}`;
    return this.#json(path, { method: "DELETE", headers: { "If-Match": `"${revision}"` } });
  }

  /** What is known of the verdicts since `moment`, a Date. */
  async statistics(moment) {
    const query = new URLSearchParams({ since: moment.toISOString() });
    if (this.station !== null) query.set("station", this.station);
    return this.#json(`v1/review/statistics?${query}`);
  }

  async #json(path, options) {
    const answer = await this.#ask(path, options);
    return answer.json().catch(() => {
      throw new ServiceError("The answer was cut off.");
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
