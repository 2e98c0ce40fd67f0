// A form that filters the record; the address of the page holds the same values.

import { byId, createElement } from "./dom.js";
import { momentOf } from "./plant_time.js";

const TIMES = ["since", "until"];
const MAX_OFFERED = 1000; // names of an answer of the service
const DEFAULT_KEY = "lot"; // of the metadata

export class SearchForm {
  /** Calls `onSearch()` when the user searches. */
  constructor(form, onSearch) {
    Object.assign(this, { form, onSearch });
    form.elements.key.placeholder = DEFAULT_KEY;
    this.#read(fromAddress(new URLSearchParams(location.search)));
    this.submitted = this.#values();
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      form.elements.part_id?.select(); // a scanner types the next part over this one
      this.#search();
    });
    form.addEventListener("change", ({ target }) => target.matches("select, [type=date], [type=datetime-local]") && this.#search());
    form.addEventListener("input", () => this.#requireValue());
    byId("clear").addEventListener("click", () => {
      this.#read(new URLSearchParams());
      this.#search();
    });
  }

  /** The address of the page with the last search. */
  get address() {
    const values = this.submitted.toString();
    return values ? `?${values}` : location.pathname;
  }

  /** The last search as a query for the service. */
  get query() {
    return toQuery(this.submitted);
  }

  /** The fields as they are now, as a query for the service. */
  get typed() {
    return toQuery(this.#values());
  }

  /** Offers names to choose from: those of each list, by its id. */
  suggest(namesByList) {
    for (const [id, names] of Object.entries(namesByList)) {
      const options = names.filter(Boolean).map((name) => Object.assign(createElement("option", ""), { value: name }));
      byId(id)?.replaceChildren(...options);
    }
  }

  /** Offers the stations that contain what is typed, which `find` resolves to, if there are too many to offer all. */
  suggestStations(find) {
    const field = this.form.elements.station;
    if (byId("stations").options.length < MAX_OFFERED) return;
    field.addEventListener("input", async () => {
      const text = field.value.trim();
      const names = await find(text).catch(() => null); // the search works without suggestions
      if (names && field.value.trim() === text) this.suggest({ stations: names.stations });
    });
  }

  #search() {
    if (!this.form.reportValidity()) return;
    this.submitted = this.#values();
    this.onSearch();
  }

  /** The values of the fields that are not empty. */
  #values() {
    const values = [...new FormData(this.form)].map(([name, value]) => [name, value.trim()]);
    return new URLSearchParams(values.filter(([, value]) => value));
  }

  /** A key of the metadata needs a value. */
  #requireValue() {
    const { key, value } = this.form.elements;
    value.required = Boolean(key.value.trim());
  }

  #read(values) {
    this.form.reset();
    for (const field of this.form.elements) if (values.has(field.name)) field.value = values.get(field.name);
    this.#requireValue();
  }
}

/** Values of the fields in an address, which may have the metadata as one value, as a query for the service has it. */
function fromAddress(values) {
  const [, key, value] = /^([^:]+):(.+)$/su.exec(values.get("metadata") ?? "") ?? [];
  if (value) {
    values.set("key", key);
    values.set("value", value);
  }
  return values;
}

/** Values of the fields as the service expects them: times of the plant with their zone, and the metadata as one value. */
function toQuery(values) {
  const query = new URLSearchParams(values);
  for (const name of TIMES) {
    const moment = momentOf(query.get(name));
    query.delete(name);
    if (moment !== null) query.set(name, moment);
  }
  const [key, value] = [query.get("key") ?? DEFAULT_KEY, query.get("value")];
  query.delete("key");
  query.delete("value");
  if (value) query.set("metadata", `${key}:${value}`);
  return query;
}
