// The charts of defect rate and scores, with a summary sentence each.

import { byId, setText } from "../shared/dom.js";
import { translate, translateCount } from "../shared/language.js";
import { Plot } from "./plot.js";
import { formatPercent, formatSigned } from "./format.js";

const MIN_AXIS_TOP = 0.01; // of the rate axis: 1 %
const AXIS_MARGIN = 1.15;

export class Charts {
  constructor() {
    this.rate = new Plot(byId("rate").querySelector(".plot"), formatPercent);
    this.scores = new Plot(byId("scores").querySelector(".plot"), formatSigned);
  }

  /** Shows `chart` and `drift` of a response; both may be null. */
  show({ chart, drift }, clock) {
    const rate = rateSummary(chart);
    showSummary(byId("rate"), rate);
    const drifting = driftSummary(drift);
    showSummary(byId("scores"), drifting);
    if (!chart) return;
    const time = (hour) => clock.time(hour);
    this.rate.show({ ...rates(chart), label: rate.text, time });
    this.scores.show({ ...means(chart, drift), label: drifting.text, time });
  }
}

function showSummary(section, { text, alert }) {
  const summary = section.querySelector(".summary");
  setText(summary, text);
  summary.classList.toggle("alert", alert);
}

// === The defect rate ===

function rates({ hours, centre }) {
  const values = hours.flatMap((hour) => [rateOf(hour) ?? 0, hour.high ?? 0]);
  return {
    hours: hours.map((hour) => hour.hour),
    points: hours.map((hour) => (hour.inspected ? { value: rateOf(hour), kind: kindOf(hour) } : null)),
    band: hours.map((hour) => (hour.high === null ? null : [hour.low, hour.high])),
    centre,
    from: 0,
    to: Math.min(Math.max(...values, MIN_AXIS_TOP) * AXIS_MARGIN, 1),
  };
}

function rateOf(hour) {
  return hour.inspected ? hour.defective / hour.inspected : null;
}

function kindOf(hour) {
  return hour.out ?? (hour.high === null ? "few" : "usual");
}

/** The summary of the chart: hours outside the limits, and the current hour. */
function rateSummary(chart) {
  if (!chart) return { text: translate("No data."), alert: false };
  const { hours, centre } = chart;
  if (centre === null) return { text: translate("Too few inspections for a baseline."), alert: false };
  const last = hours.at(-1);
  const values = {
    now: last.inspected ? translate("{rate} this hour", { rate: formatPercent(rateOf(last)) }) : translate("no inspections this hour"),
    baseline: formatPercent(centre),
  };
  const out = hours.filter((hour) => hour.out);
  if (!out.length) return { text: translate("Within limits: {now}, baseline {baseline}.", values), alert: false };
  const high = out.filter((hour) => hour.out === "high").length;
  const low = out.length - high;
  const above = translateCount(high, "{count} hour above the limits", "{count} hours above the limits");
  const below = translateCount(low, "{count} hour below the limits", "{count} hours below the limits");
  const sides = [high ? above : "", low ? below : ""].filter(Boolean).join(", ");
  return { text: translate("{sides}: {now}, baseline {baseline}.", { sides, ...values }), alert: true };
}

// === The scores ===

function means({ hours }, drift) {
  const values = hours.flatMap((hour) => (hour.log_odds === null ? [] : [hour.log_odds]));
  if (drift) values.push(drift.before - drift.least, drift.before + drift.least);
  const [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [-5, 5];
  const room = Math.max((high - low) * (AXIS_MARGIN - 1), 0.2);
  const first = drift ? hours.length - drift.hours : hours.length;
  return {
    hours: hours.map((hour) => hour.hour),
    points: hours.map((hour, index) => {
      if (hour.log_odds === null) return null;
      const out = drift?.towards && index >= first;
      return { value: hour.log_odds, kind: out ? (drift.towards === "defective" ? "high" : "low") : "usual" };
    }),
    band: hours.map(() => (drift ? [drift.before - drift.least, drift.before + drift.least] : null)),
    centre: drift ? drift.before : null,
    from: low - room,
    to: high + room,
  };
}

function driftSummary(drift) {
  if (!drift) return { text: translate("Too few inspections to detect drift."), alert: false };
  const values = { now: formatSigned(drift.now), baseline: formatSigned(drift.before) };
  if (!drift.towards) return { text: translate("Stable: {now} recently, baseline {baseline}.", values), alert: false };
  const text =
    drift.towards === "defective"
      ? translate("Drift towards defective: {now} recently, baseline {baseline}.", values)
      : translate("Drift towards good: {now} recently, baseline {baseline}.", values);
  return { text, alert: true };
}
