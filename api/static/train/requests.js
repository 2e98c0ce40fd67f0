// This page's requests to the service.

import { JSON_TYPE, RecordRequests } from "../shared/record_requests.js";

export class TrainingRequests extends RecordRequests {
  /** A page of trainings, the newest first: {jobs, next_before}. */
  async jobs(before = null) {
    const query = new URLSearchParams({ limit: 20, ...(before && { before }) });
    return this.json(`v1/training/jobs?${query}`);
  }

  async job(id) {
    return this.json(`v1/training/jobs/${id}`);
  }

  /** Events of a training after the event `after`: {events, next_after}. */
  async events(id, after) {
    return this.json(`v1/training/jobs/${id}/events?after=${after}`);
  }

  async workers() {
    return (await this.json("v1/training/workers")).workers;
  }

  /** The picture of predictions, as a Blob. */
  async panel(id) {
    return (await this.ask(`v1/training/jobs/${id}/panel`)).blob();
  }

  /** The report of a finished training, as a Blob. */
  async report(id) {
    return (await this.ask(`v1/training/jobs/${id}/report`)).blob();
  }

  /** Two finished trainings on the photographs that both were measured on. */
  async comparison(first, second) {
    return this.json(`v1/training/comparison?${new URLSearchParams({ first, second })}`);
  }

  /** Orders a training; returns it. */
  async start(settings) {
    return this.#post("v1/training/jobs", settings);
  }

  /** Changes a training: cancel, stop, continue or use. */
  async change(id, action) {
    return this.#post(`v1/training/jobs/${id}/${action}`, null);
  }

  /** Deletes a training that has ended. */
  async delete(id) {
    await this.ask(`v1/training/jobs/${id}`, { method: "DELETE" });
  }

  async dataSets() {
    return (await this.json("v1/data-sets")).data_sets;
  }

  async versions(dataSet) {
    return (await this.json(`v1/data-sets/${dataSet}/versions`)).versions;
  }

  /** Makes a version of what a data set contains now, or returns the latest one if nothing has changed. */
  async makeVersion(dataSet) {
    return this.#post(`v1/data-sets/${dataSet}/versions`, { note: "" });
  }

  async #post(path, body) {
    const sent = body === null ? {} : { headers: JSON_TYPE, body: JSON.stringify(body) };
    return this.json(path, { method: "POST", ...sent });
  }
}
