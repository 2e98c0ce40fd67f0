// This page's requests to the service.

import { request } from "../shared/service.js";

const PAGE_SIZE = 24;
const NOT_FOUND = 404;
const FORBIDDEN = 403;

export class ModelRequests {
  constructor(credentials) {
    this.credentials = credentials;
  }

  /** The served versions of all models. */
  async models() {
    return (await this.#json("v1/models")).models;
  }

  /** How candidates compare; none without a record, or with a key that may not read it. */
  async candidates() {
    return (await this.#ofRecord("v1/review/candidates"))?.candidates ?? [];
  }

  /** A page of photographs on which the candidate differs, {differences, next_before}; `before` is a record, or null. */
  differences(name, before) {
    const query = new URLSearchParams({ limit: PAGE_SIZE, ...(before && { before }) });
    return this.#json(`v1/review/candidates/${encodeURIComponent(name)}/differences?${query}`);
  }

  /** The photograph of a record with its mask as a Blob, at most `side` px long or high. */
  async overlay(id, side) {
    return (await request(`v1/records/${id}/overlay?side=${side}`, { credentials: this.credentials })).blob();
  }

  /** The latest changes of models, the newest first; none as for `candidates`. */
  async changes() {
    return (await this.#ofRecord("v1/audit?about=models&limit=10"))?.changes ?? [];
  }

  promote(name) {
    return this.#post(name, "promote");
  }

  rollBack(name) {
    return this.#post(name, "rollback");
  }

  /** Lets a version process all photographs without answering; null = none. */
  setCandidate(name, version) {
    return this.#post(name, "candidate", { version });
  }

  /** Sets the thresholds {score, review} of a version; null for both: those of its model. */
  setThresholds(name, version, { score, review }) {
    return this.#post(name, "thresholds", { version, score, review });
  }

  /** Confirms photographs of the version that answers as usual, by their record ids. */
  confirmUsual(name, records) {
    return this.#send(`v1/models/${encodeURIComponent(name)}/confirmed`, { records });
  }

  /** Withdraws a confirmation of a version by its number. */
  withdraw(name, version, number) {
    const path = `v1/admin/models/${encodeURIComponent(name)}/versions/${encodeURIComponent(version)}/confirmed/${number}`;
    return this.#json(path, { method: "DELETE" });
  }

  /** The address of the report of a version. */
  static reportPath({ name, version }) {
    return `v1/models/${encodeURIComponent(name)}/versions/${encodeURIComponent(version)}/report`;
  }

  /** The report of a version, as a Blob. */
  async report(model) {
    return (await request(ModelRequests.reportPath(model), { credentials: this.credentials })).blob();
  }

  /** What the record answers; null without one, or with a key that may not read it. */
  async #ofRecord(path) {
    try {
      return await this.#json(path);
    } catch (error) {
      if ([NOT_FOUND, FORBIDDEN].includes(error.status)) return null;
      throw error;
    }
  }

  #post(name, action, body) {
    return this.#send(`v1/admin/models/${encodeURIComponent(name)}/${action}`, body);
  }

  #send(path, body) {
    const sent = body && { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
    return this.#json(path, { method: "POST", ...sent });
  }

  async #json(path, options = {}) {
    return (await request(path, { ...options, credentials: this.credentials })).json();
  }
}
