// The trade-off of a model: rejected good parts against missed defective ones, at limits that the user moves.

import { createElement, setText } from "../shared/dom.js";
import { formatNumber, translate } from "../shared/language.js";
import { applyText } from "./threshold_form.js";

const SVG = "http://www.w3.org/2000/svg";
const PARTS = 1000;

/** The elements that show it; none without a curve. `apply` as in `thresholdForm`. */
export function outcomeCurve(model, apply) {
  const { curve, points } = model.manifest.operating_points ?? {};
  if (!curve) return [];
  const limits = new CurveLimits(curve, model.thresholds);
  const plot = drawPlot(curve);
  const sliders = [sliderOf(translate("Review from"), limits, "review"), sliderOf(translate("Defect from"), limits, "score")];
  const rate = rateField(curve, points[0].expected);
  const expected = createElement("p", "", "");
  expected.setAttribute("role", "status");
  const send = createElement("button", "", translate("Apply these thresholds"));
  send.dataset.needs = "engineer";
  send.type = "button";
  send.disabled = true;
  send.addEventListener("click", () => apply(translate("Apply thresholds"), applyText(model.version, model.thresholds, limits.values), limits.values));
  limits.onChange = () => {
    for (const { input, show } of sliders) show(input);
    plot.show(limits);
    setText(expected, expectedText(curve, limits, rate.input));
    send.disabled = !limits.moved;
  };
  rate.input.addEventListener("input", limits.onChange);
  moveByPointer(plot.area, limits);
  limits.onChange();
  const basis = translate("Parts that were measured, each by its worst photograph: good {good}, defective {defective}.", {
    good: formatNumber(curve.good),
    defective: formatNumber(curve.defective),
  });
  const title = createElement("h4", "", translate("Rejects, reviews and misses"));
  const rows = sliders.map(({ label }) => label);
  return [title, createElement("div", "outcome-curve", plot.legend, plot.area, ...rows, rate.label, expected, send, createElement("p", "hint", basis))];
}

/** The two limits as places of the curve; equal ones mean that nothing is for review. */
class CurveLimits {
  constructor(curve, { score, review }) {
    this.scores = curve.scores;
    this.score = this.#nearest(score);
    this.review = Math.min(this.#nearest(review ?? score), this.score);
    this.moved = false;
    this.onChange = () => {};
  }

  get last() {
    return this.scores.length - 1;
  }

  /** The thresholds {score, review} as the service expects them. */
  get values() {
    return { score: this.scores[this.score], review: this.review < this.score ? this.scores[this.review] : null };
  }

  /** Moves a limit, `score` or `review`; it takes the other one along. */
  move(name, place) {
    this[name] = Math.max(0, Math.min(this.last, place));
    if (name === "score") this.review = Math.min(this.review, this.score);
    else this.score = Math.max(this.score, this.review);
    this.moved = true;
    this.onChange();
  }

  #nearest(value) {
    const distances = this.scores.map((score) => Math.abs(score - value));
    return distances.indexOf(Math.min(...distances));
  }
}

function sliderOf(name, limits, kind) {
  const input = Object.assign(createElement("input", ""), { type: "range", min: 0, max: limits.last, step: 1 });
  const shown = createElement("span", "");
  shown.setAttribute("aria-hidden", "true"); // aria-valuetext says it
  const show = () => {
    const none = kind === "review" && limits.review === limits.score;
    const text = none ? translate("none") : formatNumber(limits.scores[limits[kind]], { maximumSignificantDigits: 3 });
    input.value = limits[kind];
    input.setAttribute("aria-valuetext", text);
    setText(shown, text);
  };
  input.addEventListener("input", () => limits.move(kind, input.valueAsNumber));
  return { label: createElement("label", "slider", name, shown, input), input, show };
}

function rateField({ good, defective }, expected) {
  const rate = expected?.defect_rate ?? defective / (good + defective);
  const value = Number((PARTS * rate).toPrecision(3));
  const input = Object.assign(createElement("input", ""), { type: "number", min: 0, max: PARTS, step: "any", value });
  return { label: createElement("label", "slider", translate("Defective parts of 1,000"), input), input };
}

function expectedText(curve, { score, review }, input) {
  const rate = input.valueAsNumber / PARTS;
  if (!(rate >= 0 && rate <= 1)) return translate("Enter a number from 0 to 1,000.");
  const good = (1 - rate) / curve.good;
  const defective = rate / curve.defective;
  const { rejected, missed } = curve;
  const alarms = good * rejected[score];
  const values = {
    rejected: alarms + defective * (curve.defective - missed[score]),
    alarms,
    review: good * (rejected[review] - rejected[score]) + defective * (missed[score] - missed[review]),
    missed: defective * missed[review],
  };
  const texts = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, partsText(PARTS * value)]));
  return translate("Of 1,000 parts, {rejected} are rejected ({alarms} of them good), {review} are for review and {missed} defective ones are missed.", texts);
}

function partsText(value) {
  return formatNumber(value, value < 9.95 ? { maximumSignificantDigits: 2 } : { maximumFractionDigits: 0 });
}

// === Plot ===

/** Both shares over the places of the curve, with the ranges of the three outcomes. */
function drawPlot({ scores, rejected, missed, good, defective }) {
  const last = Math.max(scores.length - 1, 1);
  const svg = element("svg", { viewBox: `0 0 ${last} 1`, preserveAspectRatio: "none", "aria-hidden": "true" });
  const ranges = ["good", "review", "defect"].map((name) => element("rect", { class: name, y: 0, height: 1 }));
  const line = (name, counts, parts) =>
    element("polyline", { class: name, points: counts.map((count, place) => `${place},${1 - count / parts}`).join(" ") });
  svg.append(...ranges, line("rejected", rejected, good), line("missed", missed, defective));
  const show = ({ review, score }) => {
    const edges = [0, review, score, last];
    ranges.forEach((range, place) => {
      range.setAttribute("x", edges[place]);
      range.setAttribute("width", edges[place + 1] - edges[place]);
    });
  };
  const key = (name, text) => createElement("span", name, text);
  const legend = createElement("p", "legend", key("rejected", translate("good parts rejected")), key("missed", translate("defective parts missed")), ...outcomeKeys());
  return { area: createElement("div", "plot", svg), legend, show };
}

/** The colours of the three outcomes. */
function outcomeKeys() {
  const outcomes = { good: translate("good"), review: translate("for review"), defect: translate("defective") };
  return Object.entries(outcomes).map(([name, text]) => createElement("span", name, text));
}

function element(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** A press on the plot moves the nearest limit there, and a drag moves it on. */
function moveByPointer(area, limits) {
  let moved = null;
  const placeOf = ({ clientX }) => {
    const { left, width } = area.firstElementChild.getBoundingClientRect();
    return (limits.last * (clientX - left)) / width;
  };
  area.addEventListener("pointerdown", (event) => {
    const place = placeOf(event);
    moved = place - limits.review < limits.score - place ? "review" : "score";
    area.setPointerCapture(event.pointerId);
    limits.move(moved, Math.round(place));
  });
  area.addEventListener("pointermove", (event) => {
    if (moved && area.hasPointerCapture(event.pointerId)) limits.move(moved, Math.round(placeOf(event)));
  });
}
