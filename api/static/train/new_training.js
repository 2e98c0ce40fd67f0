// The form that orders a training.

import { byId, createElement, setText } from "../shared/dom.js";
import { formatNumber, translate, translateCount } from "../shared/language.js";

const NEW_VERSION = "";
const MIN_GOOD = 3; // good photographs that the service expects
const MINUTES = { "": 10, true: 720 }; // of a training with a time limit, and of one that takes all steps

export class NewTraining {
  /** Calls `onStarted(job)` after a training was ordered; `run(act)` runs a request and shows its error. */
  constructor(requests, { run, onStarted }) {
    Object.assign(this, { requests, run, onStarted });
    this.form = byId("new");
    this.dataSets = [];
    this.fields = this.form.elements;
    this.fields.data_set.addEventListener("change", () => this.run(() => this.#showDataSet()));
    this.fields.version.addEventListener("change", () => this.#showVersion());
    this.fields.all_steps.addEventListener("change", () => this.#showDuration());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.run(() => this.#start());
    });
  }

  /** Offers the data sets; `chosen` is the id of the first choice, or null. */
  async load(chosen) {
    this.dataSets = await this.requests.dataSets();
    this.fields.data_set.replaceChildren(...this.dataSets.map(({ id, name }) => new Option(name, id)));
    if (this.dataSets.some(({ id }) => id === chosen)) this.fields.data_set.value = chosen;
    if (!this.dataSets.length) return;
    await this.#showDataSet();
  }

  #showDuration() {
    const { all_steps: allSteps, minutes } = this.fields;
    minutes.value = MINUTES[allSteps.value];
    byId("all-steps-note").hidden = !allSteps.value;
  }

  get #dataSet() {
    return this.dataSets.find(({ id }) => id === Number(this.fields.data_set.value));
  }

  async #showDataSet() {
    const { id, name } = this.#dataSet;
    this.versions = await this.requests.versions(id);
    const options = this.versions.map(({ number, note }) => new Option(note ? `${number} · ${note}` : number, number));
    this.fields.version.replaceChildren(new Option(translate("What it contains now"), NEW_VERSION), ...options);
    this.fields.model.value = name.toLowerCase().replace(/[^a-z0-9]+/g, "_").replace(/^_+|_+$/g, "").slice(0, 64) || "parts";
    this.#showVersion();
  }

  #showVersion() {
    const { classes, counts } = this.#shownVersion();
    const known = Object.entries(counts.labels).filter(([label]) => label !== "ignore");
    const total = known.reduce((sum, [, count]) => sum + count, 0);
    const parts = known.map(([label, count]) => `${formatNumber(count)} ${label === "good" ? translate("good") : label}`).join(", ");
    const summary = total
      ? translateCount(total, "{count} labelled photograph: {labels}", "{count} labelled photographs: {labels}", { labels: parts })
      : translate("No photograph is labelled.");
    const isEnough = (counts.labels.good ?? 0) >= MIN_GOOD;
    setText(byId("version-note"), isEnough ? summary : `${summary} ${translate("A training needs at least {count} good photographs.", { count: MIN_GOOD })}`);
    byId("label-more").hidden = isEnough;
    byId("label-more").href = `label?data_set=${this.#dataSet.id}`;
    this.form.querySelector("[type=submit]").disabled = !isEnough;
    byId("class-choice").hidden = classes.length < 2;
    byId("class-boxes").replaceChildren(...classes.map((name) => {
      const box = createElement("input", "");
      Object.assign(box, { type: "checkbox", name: "class", value: name, checked: true });
      return createElement("label", "", box, name);
    }));
  }

  /** The chosen version, or the data set as it is now: both have classes and counts. */
  #shownVersion() {
    return this.versions.find(({ number }) => String(number) === this.fields.version.value) ?? this.#dataSet;
  }

  async #start() {
    const { fields } = this;
    const { classes } = this.#shownVersion();
    const chosen = [...byId("class-boxes").querySelectorAll("input:checked")].map(({ value }) => value);
    const dataSet = this.#dataSet.id;
    const version = fields.version.value === NEW_VERSION ? (await this.requests.makeVersion(dataSet)).number : Number(fields.version.value);
    const job = await this.requests.start({
      data_set: dataSet,
      data_set_version: version,
      model: fields.model.value,
      minutes: fields.minutes.valueAsNumber,
      all_steps: fields.all_steps.value !== "",
      encoder: fields.encoder.value.trim() || null,
      area: Number.isNaN(fields.area.valueAsNumber) ? null : fields.area.valueAsNumber,
      machines: fields.machines.valueAsNumber,
      classes: chosen.length === classes.length ? null : chosen,
    });
    this.onStarted(job);
  }
}
