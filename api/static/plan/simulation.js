// How a plan would have judged the last recorded parts.

import { translate } from "../shared/language.js";
import { verdictKind } from "../shared/record_text.js";
import { ServiceError } from "../shared/service.js";

const MAX_PARTS = 1000; // of a request
const Z = 1.96; // of a two-sided interval of 95 %
/** Kinds of verdicts, as of `verdictKind`. */
export const VERDICTS = ["good", "review", "defect", "uninspected"];

export class Simulation {
  /** Judges up to `count` parts by `plan`; of a station, if it is not empty. */
  constructor(requests, model, plan, { station, count }) {
    Object.assign(this, { requests, model, plan, station, count });
    this.judged = this.good = this.deleted = 0;
    this.parts = [];
    this.goodReviewed = {}; // number of reviewed parts that the model calls good, by label
    this.isStopped = false;
    this.isComplete = false;
  }

  /** Judges the parts, some in each request; calls `onProgress()` after each. */
  async run(onProgress) {
    let before = null;
    while (!this.isStopped && this.judged < this.count) {
      const page = await this.requests.simulate(this.model, this.plan, { station: this.station, before, limit: Math.min(this.count - this.judged, MAX_PARTS) });
      if (this.version !== undefined && this.version !== page.model_version) throw new ServiceError(translate("Another version of the model was promoted meanwhile. Simulate again."));
      this.version = page.model_version;
      this.judged += page.judged;
      this.good += page.good;
      this.deleted += page.deleted;
      this.parts.push(...page.parts);
      for (const [label, number] of Object.entries(page.good_reviewed)) this.goodReviewed[label] = (this.goodReviewed[label] ?? 0) + number;
      before = page.next_before;
      onProgress();
      if (before === null) break;
    }
    this.isComplete = !this.isStopped;
    onProgress();
  }

  /** Parts whose verdict the plan changes. */
  get changed() {
    return this.parts.filter(({ label, new_label: now }) => label !== now);
  }

  /** Parts that have a verdict before and now. */
  get compared() {
    return this.good + this.parts.length;
  }

  /** Number of parts by `before` and `now`, each of VERDICTS. */
  table() {
    const counts = Object.fromEntries(VERDICTS.map((before) => [before, Object.fromEntries(VERDICTS.map((now) => [now, 0]))]));
    counts.good.good = this.good;
    for (const { label, new_label: now } of this.parts) counts[verdictKind(label)][verdictKind(now)]++;
    return counts;
  }

  /** Of the parts that a reviewer called `reviewed`: {total, count}, how many are `now`. */
  reviewedAs(reviewed, now) {
    const parts = this.parts.filter(({ reviewed_label: label }) => label && verdictKind(label) === reviewed);
    const good = Object.entries(this.goodReviewed).reduce((sum, [label, number]) => sum + (verdictKind(label) === reviewed ? number : 0), 0);
    const count = parts.filter((part) => verdictKind(part.new_label) === now).length;
    return { total: parts.length + good, count: count + (now === "good" ? good : 0) };
  }

  /** Number of parts that stop the line by the plan. */
  get stopping() {
    return this.parts.filter(({ verdict }) => verdict?.severity === "stop").length;
  }

  /** Number of parts that another version of the model had inspected. */
  get ofOtherVersions() {
    return this.parts.filter(({ version }) => version !== this.version).length;
  }
}

/** The interval of a share (Wilson 1927), 95 %: {low, high}. */
export function shareInterval(count, total) {
  const share = count / total;
  const weight = 1 + Z ** 2 / total;
  const centre = share + Z ** 2 / (2 * total);
  const half = Z * Math.sqrt((share * (1 - share)) / total + Z ** 2 / (4 * total ** 2));
  return { low: count ? (centre - half) / weight : 0, high: count < total ? (centre + half) / weight : 1 };
}
