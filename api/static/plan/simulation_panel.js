// The panel that simulates the plan: progress, changed verdicts, and the parts.

import { attempt } from "../shared/attempt.js";
import { ContactSheet } from "../shared/contact_sheet.js";
import { byId, createElement, setText } from "../shared/dom.js";
import { formatNumber, translate, translateCount } from "../shared/language.js";
import { decidingText } from "../shared/plan_text.js";
import { partName, verdictKind, verdictText } from "../shared/record_text.js";
import { verdictBadge } from "../shared/verdict_badge.js";
import { button, replaceForm } from "./fields.js";
import { shareInterval, Simulation, VERDICTS } from "./simulation.js";

const MAX_SHOWN = 60;
const PERCENT = { style: "percent", maximumSignificantDigits: 2 };
const NAMES = { good: translate("Good"), review: translate("Review"), defect: translate("Defect"), uninspected: translate("Not inspected") };

export class SimulationPanel {
  /** `current()` returns {model, plan}, `isReady()` whether it is valid; calls `onResult(simulation)` after each page, and `onShow(part)` for a chosen part. */
  constructor(requests, { current, isReady, onResult, onShow }) {
    Object.assign(this, { requests, current, isReady, onResult, onShow, running: null, simulation: null, shown: null });
    this.sheet = new ContactSheet(byId("simulated-parts"), requests);
    byId("simulate").addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.running) this.running.isStopped = true;
      else this.#run();
    });
  }

  /** Forgets the result. */
  clear() {
    if (this.running) this.running.isStopped = true;
    this.running = this.simulation = null;
    this.#show();
  }

  /** Says whether the result is about another plan than the one that is edited. */
  compare(plan) {
    byId("outdated").hidden = !this.simulation || this.simulation.plan === plan;
  }

  /** What was simulated about a plan; null = one that is not edited. */
  textAbout(plan) {
    const { simulation } = this;
    const isSame = plan && simulation?.isComplete && simulation.plan === plan;
    return isSame ? summaryText(simulation, false) : translate("This plan was not simulated on this page.");
  }

  async #run() {
    if (!this.isReady()) return;
    const { elements } = byId("simulate");
    const { model, plan } = this.current();
    const simulation = new Simulation(this.requests, model, plan, { station: elements.station.value.trim(), count: elements.count.valueAsNumber });
    this.running = this.simulation = simulation;
    this.shown = null;
    const progress = () => {
      if (this.simulation !== simulation) return;
      this.#show();
      this.onResult(simulation);
    };
    progress();
    await attempt(this.requests.credentials, () => simulation.run(progress));
    if (this.running === simulation) this.running = null;
    progress();
  }

  #show() {
    const { simulation, running } = this;
    setText(byId("simulate-button"), running ? translate("Stop") : translate("Simulate"));
    byId("simulated").hidden = !simulation;
    if (!simulation) return;
    byId("outdated").hidden = simulation.plan === this.current().plan;
    setText(byId("simulation-summary"), summaryText(simulation, Boolean(running)));
    setText(byId("simulation-details"), detailsText(simulation));
    replaceForm(byId("simulation-table"), ...this.#tableRows(simulation));
    this.#showParts(simulation);
  }

  #tableRows(simulation) {
    const counts = simulation.table();
    const used = VERDICTS.filter((one) => one !== "uninspected" || VERDICTS.some((other) => counts[one][other] || counts[other][one]));
    const cell = (before, now) => {
      const count = counts[before][now];
      if (before === now || !count) return createElement("td", "", formatNumber(count));
      const chosen = this.shown?.before === before && this.shown.now === now;
      const filter = button(`parts-${before}-${now}`, formatNumber(count), () => {
        this.shown = chosen ? null : { before, now };
        this.#show();
      });
      filter.setAttribute("aria-pressed", chosen);
      filter.setAttribute("aria-label", translate("Parts from {before} to {now}: {number}", { before: NAMES[before], now: NAMES[now], number: formatNumber(count) }));
      return createElement("td", "", filter);
    };
    const header = (text) => Object.assign(createElement("th", "", text), { scope: "col" });
    const head = createElement("tr", "", header(translate("Before ↓, by the plan →")), ...used.map((now) => header(NAMES[now])));
    return [head, ...used.map((before) => createElement("tr", "", Object.assign(createElement("th", "", NAMES[before]), { scope: "row" }), ...used.map((now) => cell(before, now))))];
  }

  #showParts(simulation) {
    const { shown } = this;
    const matches = ({ label, new_label: now }) => !shown || (verdictKind(label) === shown.before && verdictKind(now) === shown.now);
    const parts = simulation.changed.filter(matches);
    if (this.listed === parts.map(({ record_id: id }) => id).join()) return; // keeps the loaded photographs
    this.listed = parts.map(({ record_id: id }) => id).join();
    this.sheet.clear();
    for (const part of parts.slice(0, MAX_SHOWN)) this.#addPart(part);
    byId("more-simulated").hidden = parts.length <= MAX_SHOWN;
    setText(byId("more-simulated"), translateCount(parts.length - MAX_SHOWN, "and {count} more part", "and {count} more parts"));
  }

  #addPart(part) {
    const { label, new_label: now, reviewed_label: reviewed } = part;
    const show = button(`show-${part.record_id}`, translate("Show on the photograph"), () => this.onShow(part));
    const verdicts = createElement("span", "verdict", verdictBadge(label), " → ", verdictBadge(now));
    const review = reviewed ? [createElement("span", "verdict", translate("Review: {verdict}", { verdict: verdictText(reviewed) }))] : [];
    this.sheet.add(part, verdicts, ...review, createElement("span", "verdict", reasonText(part)), show);
  }
}

/** Why the plan decides so about a part, or why it cannot. */
function reasonText({ verdict, problem }) {
  return verdict ? decidingText(verdict) : problem;
}

/** How many verdicts the plan changes. */
function summaryText(simulation, isRunning) {
  const { judged, compared, changed, isComplete, station } = simulation;
  if (isRunning) return translate("Judged parts: {judged} of {all} …", { judged: formatNumber(judged), all: formatNumber(simulation.count) });
  if (!compared) return translate("No recorded part could be judged.");
  const values = { changed: formatNumber(changed.length), compared: formatNumber(compared), share: shareText(changed.length, compared) };
  const sentences = [translate("Verdicts that the plan changes: {changed} of {compared}, {share}.", values)];
  if (station) sentences.push(translate("Only parts of the station {station}.", { station }));
  if (!isComplete) sentences.push(translate("It ended before all parts were judged."));
  return sentences.join(" ");
}

function detailsText(simulation) {
  const { compared, deleted, judged, parts, stopping, ofOtherVersions: others } = simulation;
  const table = simulation.table();
  const sum = (counts) => counts.reduce((total, count) => total + count, 0);
  const sentences = [];
  if (compared) {
    const before = shareText(sum(Object.values(table.defect)), compared);
    const now = shareText(sum(VERDICTS.map((one) => table[one].defect)), compared);
    sentences.push(translate("Defective before: {before}; by the plan: {now}.", { before, now }));
    sentences.push(translateCount(parts.length, "The model inspected {count} part again: all that it had not called good.", "The model inspected {count} parts again: all that it had not called good."));
  }
  sentences.push(...reviewSentences(simulation));
  if (stopping) sentences.push(translateCount(stopping, "{count} part stops the line.", "{count} parts stop the line."));
  if (others) sentences.push(translateCount(others, "{count} part had been inspected by another version of the model.", "{count} parts had been inspected by another version of the model."));
  if (deleted) sentences.push(translateCount(deleted, "{count} part is unknown: its photograph was deleted.", "{count} parts are unknown: their photographs were deleted."));
  const without = judged - compared - deleted;
  if (without) sentences.push(translateCount(without, "{count} part had no verdict.", "{count} parts had no verdict."));
  return sentences.join(" ");
}

/** What reviewers said about parts of which the plan says the contrary. */
function reviewSentences(simulation) {
  const [missed, rejected] = [simulation.reviewedAs("defect", "good"), simulation.reviewedAs("good", "defect")];
  const text = ({ count, total }) => ({ count: formatNumber(count), total: formatNumber(total), share: shareText(count, total) });
  return [
    ...(missed.total ? [translate("Reviewed as defective, but good by the plan: {count} of {total}, {share}.", text(missed))] : []),
    ...(rejected.total ? [translate("Reviewed as good, but defective by the plan: {count} of {total}, {share}.", text(rejected))] : []),
  ];
}

/** A share with its interval. */
function shareText(count, total) {
  const { low, high } = shareInterval(count, total);
  const text = (share) => formatNumber(share, PERCENT);
  return translate("{share} ({low} to {high}, 95 % interval)", { share: text(count / total), low: text(low), high: text(high) });
}
