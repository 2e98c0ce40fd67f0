// This page's requests to the service.

import { JSON_TYPE, RecordRequests } from "../shared/record_requests.js";

const PARTS_SEARCHED = 100;
const SIMULATION_TIMEOUT_MS = 600_000; // photographs that inspections precede
const KEPT = ["kept", "expiring"];

export class PlanRequests extends RecordRequests {
  /** The stable versions of all served models. */
  async models() {
    const { models } = await this.json("v1/models");
    return models.filter(({ aliases }) => !aliases.length || aliases.includes("stable"));
  }

  /** The last inspected parts of a model that have a photograph. */
  async parts(model) {
    const { records } = await this.search(new URLSearchParams({ limit: PARTS_SEARCHED }));
    return records.filter(({ answer, picture }) => answer?.model.name === model && KEPT.includes(picture.state));
  }

  /** The active plans of a model, [{station, version}]. */
  async activePlans(model) {
    const { models } = await this.json(`v1/models/${encodeURIComponent(model)}`);
    return models[0].plans;
  }

  /** A page of stored versions, {plans, next_before, can_store}; `before` is a version, or null. */
  plans(model, before = null) {
    const query = before === null ? "" : `?before=${before}`;
    return this.json(`${path(model)}${query}`);
  }

  /** A stored version with its content. */
  plan(model, version) {
    return this.json(`${path(model)}/${version}`);
  }

  /** Stores a version of a plan. */
  store(model, plan, reason) {
    return this.#send(path(model), { plan, reason });
  }

  /** Judges recorded parts below the record `before` by a plan; of a station, if it is not empty. */
  simulate(model, plan, { station, before, limit }) {
    const query = new URLSearchParams({ limit, ...(station && { station }), ...(before && { before }) });
    return this.#send(`${path(model)}/simulation?${query}`, { plan }, { timeoutMs: SIMULATION_TIMEOUT_MS });
  }

  /** Lets a stored version decide at a station, empty for all others; null = no plan of its own. */
  activate(model, version, station, reason) {
    return this.#send(`v1/admin/models/${encodeURIComponent(model)}/plan`, { version, station, reason });
  }

  #send(address, body, options = {}) {
    return this.json(address, { method: "POST", headers: JSON_TYPE, body: JSON.stringify(body), ...options });
  }
}

function path(model) {
  return `v1/models/${encodeURIComponent(model)}/plans`;
}
