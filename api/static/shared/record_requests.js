// Requests about recorded inspections.

import { LANGUAGE, translate } from "./language.js";
import { readGrey } from "./png.js";
import { request, ServiceError } from "./service.js";

export const JSON_TYPE = { "Content-Type": "application/json" };
const TIMEOUT_MS = 60_000; // a lost network reports no error for much longer

export class RecordRequests {
  constructor(credentials) {
    this.credentials = credentials;
  }

  /** A page of inspections, {records, next_before}; `query` is a URLSearchParams. */
  async search(query) {
    return this.json(`v1/records?${query}`);
  }

  /** Names in the record: {stations, labels, reviewers, metadata}; of the stations those that contain a text. */
  async names(station = "") {
    return this.json(`v1/records/names?${new URLSearchParams(station ? { station } : {})}`);
  }

  /** The trends of a period. */
  async trends(query) {
    return this.json(`v1/trends?${query}`);
  }

  /** The error rates since a time, estimated from reviews; until a time and of a station, if they are not null. */
  async statistics(since, until = null, station = null) {
    return this.json(`v1/review/statistics?${queryOf({ since, until, station, language: LANGUAGE })}`);
  }

  /** How often two reviewers agreed: {reviewed_twice, agreed}; arguments as of `statistics`. */
  async agreement(since, until, station) {
    return this.json(`v1/review/agreement?${queryOf({ since, until, station })}`);
  }

  /** The decoded photograph of a record, upright as the network saw it. */
  async picture(id) {
    const answer = await this.ask(`v1/records/${id}/image?form=png`);
    return createImageBitmap(await answer.blob());
  }

  /** The mask of a record, `predicted` or `reviewed`: {width, height, pixels, hasClasses}. */
  async mask(id, which = "predicted") {
    const answer = await this.ask(`v1/records/${id}/mask?which=${which}&values=any`);
    const hasClasses = answer.headers.get("X-Segdec-Values") === "class";
    return { ...(await readGrey(new Uint8Array(await answer.arrayBuffer()))), hasClasses };
  }

  /** The current state of a record. */
  async find(id) {
    return this.json(`v1/records/${id}`);
  }

  /** A QR code of the page of a record, as a Blob. */
  async qrCode(id) {
    return (await this.ask(`v1/records/${id}/qr-code`)).blob();
  }

  /** Stores a verdict {label, reason, reviewer, mask, session}, `mask` a Blob or null; returns the new record. */
  async review({ record_id: id, revision }, { mask = null, session = null, ...verdict }) {
    const sent = { ...verdict, session, mask: mask && { png: await base64Of(mask) } };
    const headers = { ...JSON_TYPE, "If-Match": `"${revision}"` };
    return this.json(`v1/records/${id}/review`, { method: "PUT", headers, body: JSON.stringify(sent) });
  }

  /** Confirms photographs of the model `name` as usual, by their record ids; returns what is confirmed now. */
  async confirmUsual(name, records) {
    const body = JSON.stringify({ records });
    return this.json(`v1/models/${encodeURIComponent(name)}/confirmed`, { method: "POST", headers: JSON_TYPE, body });
  }

  /** The newest changes of a record, the newest first. */
  async changesOf(id) {
    return (await this.json(`v1/records/${id}/audit`)).changes;
  }

  /** The messages about a record to other systems. */
  async messagesOf(id) {
    return (await this.json(`v1/records/${id}/messages`)).messages;
  }

  /** A page of all changes, {changes, next_before}; `query` is a URLSearchParams. */
  async changes(query) {
    return this.json(`v1/audit?${query}`);
  }

  /** The photograph with its mask as a Blob, at most `side` px long or high. */
  async overlay(id, side) {
    return (await this.ask(`v1/records/${id}/overlay?side=${side}`)).blob();
  }

  /** The mask scores of a record, {width, height, pixels}: one pixel for each cell of the network. */
  async heatMap(id) {
    const answer = await this.ask(`v1/records/${id}/heat-map`);
    return readGrey(new Uint8Array(await answer.arrayBuffer()));
  }

  async json(path, options) {
    const answer = await this.ask(path, options);
    return answer.json().catch(() => {
      throw new ServiceError(translate("The response is incomplete."));
    });
  }

  ask(path, options = {}) {
    return request(path, { timeoutMs: TIMEOUT_MS, ...options, credentials: this.credentials });
  }
}

/** A query without the values that are null. */
function queryOf(values) {
  return new URLSearchParams(Object.entries(values).filter(([, value]) => value !== null));
}

/** The content of a Blob in base64. */
export async function base64Of(blob) {
  const reader = new FileReader();
  await new Promise((resolve, reject) => {
    reader.onload = resolve;
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
  return reader.result.slice(reader.result.indexOf(",") + 1);
}
