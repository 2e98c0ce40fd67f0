// What the charts show, and what they say: the defect rate with its limits, and the scores.

import { byId } from "../shared/dom.js";
import { Plot } from "./plot.js";
import { formatCount, part, formatPercent, formatSigned, setText } from "./format.js";

const MIN_AXIS_TOP = 0.01; // of the axis of rates: 1 %
const AXIS_MARGIN = 1.15;

export class Charts {
  constructor() {
    this.rate = new Plot(byId("rate").querySelector(".plot"), formatPercent);
    this.scores = new Plot(byId("scores").querySelector(".plot"), formatSigned);
  }

  /** Shows `chart` and `drift` of an answer; both may be null. */
  show({ chart, drift }, clock) {
    const says = rateSummary(chart);
    say(byId("rate"), says);
    const told = driftSummary(drift);
    say(byId("scores"), told);
    if (!chart) return;
    const time = (hour) => clock.time(hour);
    this.rate.show({ ...rates(chart), label: says.words, time });
    this.scores.show({ ...means(chart, drift), label: told.words, time });
  }
}

function say(section, { words, loud }) {
  const says = section.querySelector(".says");
  setText(says, words);
  says.classList.toggle("loud", loud);
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

/** What the chart says: first the running hour, then how many hours are out. */
function rateSummary(chart) {
  if (!chart) return { words: "Not known.", loud: false };
  const { hours, centre } = chart;
  if (centre === null) return { words: "Too few inspections yet to tell what is usual.", loud: false };
  const last = hours.at(-1);
  const now = last.inspected ? `${formatPercent(rateOf(last))} in this hour` : "nothing inspected in this hour";
  const out = hours.filter((hour) => hour.out);
  const usual = `usually ${formatPercent(centre)}`;
  if (!out.length) return { words: `As usual: ${now}, ${usual}.`, loud: false };
  const high = out.filter((hour) => hour.out === "high").length;
  const sides = [
    [high, "above"],
    [out.length - high, "below"],
  ];
  const told = sides.filter(([number]) => number).map(([number, side]) => `${hoursIn(number)} ${side} the limits`);
  return { words: `${told.join(", ")}: ${now}, ${usual}.`, loud: true };
}

function hoursIn(number) {
  return number === 1 ? "1 hour" : `${formatCount(number)} hours`;
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
  if (!drift) return { words: "Too few inspections yet to tell.", loud: false };
  const means = `${formatSigned(drift.now)} lately, usually ${formatSigned(drift.before)}`;
  if (!drift.towards) return { words: `Steady: ${means}.`, loud: false };
  return { words: `Drift towards ${drift.towards}: ${means}.`, loud: true };
}
