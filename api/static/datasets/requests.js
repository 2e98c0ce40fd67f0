// This page's requests to the service.

import { request } from "../shared/service.js";

const JSON_TYPE = { "Content-Type": "application/json" };

export class DataSetRequests {
  constructor(credentials) {
    this.credentials = credentials;
  }

  /** All data sets, by name. */
  async list() {
    return (await this.#json("v1/data-sets")).data_sets;
  }

  create(name, classes) {
    return this.#json("v1/data-sets", "POST", { name, classes });
  }

  find(id) {
    return this.#json(pathOf(id));
  }

  /** The newest trainings of a data set. */
  async trainings(id) {
    const { jobs } = await this.#json("v1/training/jobs?limit=200");
    return jobs.filter(({ data_set: dataSet }) => dataSet === Number(id));
  }

  /** Deletes a data set; `name` confirms which one. */
  delete(id, name) {
    return this.#ask(`${pathOf(id)}?${new URLSearchParams({ name })}`, { method: "DELETE" });
  }

  addClass(id, name) {
    return this.#json(pathOf(id), "PATCH", { add_classes: [name] });
  }

  /** A page of photographs, {photographs, next_after}; `query` is a URLSearchParams. */
  photographs(id, query) {
    return this.#json(`${pathOf(id)}/photographs?${query}`);
  }

  /** A small picture of a photograph, as a Blob. */
  async thumbnail(id, photographId) {
    return (await this.#ask(`${pathOf(id)}/photographs/${photographId}/image?form=thumbnail`)).blob();
  }

  /** Gives a photograph a label without a mask; returns the photograph. */
  label(id, { id: photographId, annotation_id: seen }, label) {
    const sent = { label, mask: null, source: "drawn", based_on: seen };
    return this.#json(`${pathOf(id)}/photographs/${photographId}/annotation`, "PUT", sent);
  }

  remove(id, photographId) {
    return this.#json(`${pathOf(id)}/photographs/${photographId}`, "DELETE");
  }

  /** Sends a photograph; `outcome` is added, restored or present. */
  async add(id, name, file, onWait) {
    const query = new URLSearchParams({ name });
    const options = { method: "POST", body: file, headers: { "Content-Type": "application/octet-stream" }, onWait };
    return (await this.#ask(`${pathOf(id)}/photographs?${query}`, options)).json();
  }

  /** The newest imports of archives. */
  async imports(id) {
    return (await this.#json(`${pathOf(id)}/imports`)).imports;
  }

  /** Imports an archive again with answers to the questions of its import. */
  answerImport(id, importId, answers) {
    return this.#json(`${pathOf(id)}/imports/${importId}/answers`, "POST", answers);
  }

  /** The latest check of the labelled photographs; null if there is none. */
  check(id) {
    return this.#json(`${pathOf(id)}/check`);
  }

  startCheck(id) {
    return this.#json(`${pathOf(id)}/check`, "POST");
  }

  photograph(id, photographId) {
    return this.#json(`${pathOf(id)}/photographs/${photographId}`);
  }

  async versions(id) {
    return (await this.#json(`${pathOf(id)}/versions`)).versions;
  }

  makeVersion(id, note) {
    return this.#json(`${pathOf(id)}/versions`, "POST", { note });
  }

  compare(id, from, to) {
    return this.#json(`${pathOf(id)}/versions/compare?${new URLSearchParams({ from, to })}`);
  }

  async #json(path, method = "GET", body = undefined) {
    const sent = body && { body: JSON.stringify(body), headers: JSON_TYPE };
    return (await this.#ask(path, { method, ...sent })).json();
  }

  #ask(path, options = {}) {
    return request(path, { ...options, credentials: this.credentials });
  }
}

/** The path of a data set; `archives` of it is where an archive is sent. */
export function pathOf(id) {
  return `v1/data-sets/${id}`;
}
