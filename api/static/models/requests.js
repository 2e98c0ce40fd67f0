// This page's requests to the service.

import { request } from "../shared/service.js";

const NOT_FOUND = 404;
const FORBIDDEN = 403;

export class ModelRequests {
  constructor(key) {
    this.key = key;
  }

  /** The served versions of all models. */
  async models() {
    return (await this.#json("v1/models")).models;
  }

  /** How candidates compare; none without a record, or with a key that may not read it. */
  async candidates() {
    try {
      return (await this.#json("v1/review/candidates")).candidates;
    } catch (error) {
      if ([NOT_FOUND, FORBIDDEN].includes(error.status)) return [];
      throw error;
    }
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

  #post(name, action, body) {
    const sent = body && { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
    return this.#json(`v1/admin/models/${encodeURIComponent(name)}/${action}`, { method: "POST", ...sent });
  }

  async #json(path, options = {}) {
    return (await request(path, { ...options, key: this.key })).json();
  }
}
