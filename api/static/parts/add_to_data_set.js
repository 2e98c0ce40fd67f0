// Adds the photographs that a search finds to a data set.

import { attempt } from "../shared/attempt.js";
import { byId, createElement, setText } from "../shared/dom.js";
import { translate, translateCount } from "../shared/language.js";

export class AddToDataSet {
  /** `queryOf()` returns the present search as a URLSearchParams. */
  constructor(requests, queryOf) {
    Object.assign(this, { requests, queryOf, isStopped: false });
    byId("add-to-data-set").addEventListener("click", () => this.#open());
    byId("data-set-cancel").addEventListener("click", () => this.#close());
    byId("data-set-dialog").addEventListener("close", () => (this.isStopped = true));
    byId("data-set-form").addEventListener("submit", (event) => this.#add(event));
  }

  async #open() {
    const found = await attempt(this.requests.credentials, () => this.requests.json("v1/data-sets"));
    if (!found) return;
    const options = found.data_sets.map(({ id, name }) => Object.assign(createElement("option", "", name), { value: id }));
    byId("data-set-choice").replaceChildren(...options);
    byId("data-set-add").disabled = !options.length;
    setText(byId("data-set-state"), options.length ? "" : translate("There is no data set yet. Create one on the page Data sets."));
    this.isStopped = false;
    byId("data-set-dialog").showModal();
  }

  #close() {
    byId("data-set-dialog").close();
  }

  /** Adds all results, a page at a time; closing the dialog stops it. */
  async #add(event) {
    event.preventDefault();
    const id = byId("data-set-choice").value;
    const counts = { added: 0, restored: 0, present: 0, gone: 0, annotated: 0 };
    byId("data-set-add").disabled = true;
    try {
      for (let before = null; !this.isStopped; ) {
        const query = this.queryOf();
        if (before !== null) query.set("before", before);
        const answer = await this.requests.json(`v1/data-sets/${id}/parts?${query}`, { method: "POST" });
        for (const name of Object.keys(counts)) counts[name] += answer[name];
        setText(byId("data-set-state"), stateText(counts));
        before = answer.next_before;
        if (before === null) break;
      }
    } catch (error) {
      setText(byId("data-set-state"), `${stateText(counts)} ${error.message}`);
    }
    byId("data-set-add").disabled = false;
  }
}

function stateText({ added, restored, present, gone, annotated }) {
  const texts = [
    translateCount(added + restored, "{count} photograph added", "{count} photographs added"),
    translateCount(annotated, "{count} with its review", "{count} with their reviews"),
    translateCount(present, "{count} already there", "{count} already there"),
  ];
  if (gone) texts.push(translateCount(gone, "{count} was deleted", "{count} were deleted"));
  return `${texts.join(", ")}.`;
}
