// Requests about labels that a model proposes for a data set.

import { JSON_TYPE, RecordRequests } from "./record_requests.js";

export class ProposalRequests extends RecordRequests {
  /** `dataSet` is the id of the data set. */
  constructor(credentials, dataSet) {
    super(credentials);
    this.path = `v1/data-sets/${dataSet}/proposals`;
  }

  /** The latest run; null if there is none. */
  async run() {
    return this.json(this.path);
  }

  /** The models that can propose, the default first. */
  async models() {
    return (await this.json(`${this.path}/models`)).models;
  }

  /** Starts a run of a model {model, version, training_job}; returns it. */
  async start({ model, version, training_job: job }) {
    return this.#post(this.path, job === null ? { model, version } : { training_job: job });
  }

  /** Whether the labels suffice for a training, and the latest training for proposals. */
  async training() {
    return this.json(`${this.path}/training`);
  }

  /** Orders a short training whose model proposes the rest; the answer is that of `training`. */
  async train() {
    return this.#post(`${this.path}/training`, {});
  }

  async #post(path, body) {
    return this.json(path, { method: "POST", headers: JSON_TYPE, body: JSON.stringify(body) });
  }
}
