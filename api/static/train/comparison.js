// A finished training beside another one.

import { byId, createElement, setText } from "../shared/dom.js";
import { formatDecimals, translate, translateCount } from "../shared/language.js";

const SIGNIFICANCE = 0.05;

export class Comparison {
  /** `run(act)` runs a request and shows its error. */
  constructor(requests, run) {
    Object.assign(this, { requests, run });
    this.job = null;
    byId("other").addEventListener("change", ({ target }) => target.value && this.run(() => this.#compare(Number(target.value))));
  }

  /** Offers the other finished trainings of the data set, once. */
  async offer(job) {
    if (this.job) return;
    this.job = job;
    const { jobs } = await this.requests.jobs();
    this.others = jobs.filter(({ id, state, data_set: dataSet }) => state === "done" && id !== job.id && dataSet === job.data_set);
    byId("comparison").hidden = !this.others.length;
    const options = this.others.map((other) => new Option(nameOf(other), other.id));
    byId("other").replaceChildren(new Option(translate("Choose a training"), ""), ...options);
  }

  async #compare(id) {
    const other = this.others.find((each) => each.id === id);
    const found = await this.requests.comparison(this.job.id, id);
    setText(byId("difference"), differenceText(found, nameOf(this.job), nameOf(other)));
    const names = { missed: translate("Missed defects"), false_alarms: translate("False alarms"), correct: translate("Right labels") };
    const heads = ["", nameOf(this.job), nameOf(other)].map((text) => Object.assign(createElement("th", "", text), { scope: "col" }));
    const rows = Object.entries(names).map(([key, name]) => {
      const head = Object.assign(createElement("th", "", name), { scope: "row" });
      return createElement("tr", "", head, ...[found.first, found.second].map((one) => createElement("td", "", rateText(one[key]))));
    });
    byId("compared").replaceChildren(createElement("tr", "", ...heads), ...rows);
  }
}

function differenceText({ photographs, only_first_correct: first, only_second_correct: second, p_value: p }, name, other) {
  const values = { first, second, name, other, p: formatDecimals(p, p < 0.1 ? 3 : 2) };
  const counts = translateCount(
    photographs,
    "Of {count} photograph, only {name} labels {first} correctly, and only {other} {second}.",
    "Of {count} photographs, only {name} labels {first} correctly, and only {other} {second}.",
    values,
  );
  const better = first > second ? name : other;
  const verdict = p < SIGNIFICANCE
    ? translate("{better} is better, by more than chance (p = {p}).", { better, p: values.p })
    : translate("The difference may be chance (p = {p}).", values);
  return `${counts} ${verdict}`;
}

function rateText({ count, total, low, high }) {
  if (!total) return "–";
  const percent = (share) => formatDecimals(100 * share, 1);
  return translate("{count} of {total} ({low} to {high} %)", { count, total, low: percent(low), high: percent(high) });
}

function nameOf({ model, version }) {
  return `${model} ${version}`;
}
