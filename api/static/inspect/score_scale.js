// The score axis: linear in log-odds, because scores cluster near 0 and 1.

import { byId } from "../shared/dom.js";
import { formatNumber, translate } from "../shared/language.js";
import { distinctDecimals } from "./decision.js";

const END = Math.log(1e5); // log-odds at the ends: scores of about 0.00001 and 0.99999
const TICKS = [0.0001, 0.01, 0.5, 0.99, 0.9999];

/** The position of a score on the axis, 0 to 1, clamped to its ends. */
export function toPosition(score) {
  const place = 0.5 + Math.log(score / (1 - score)) / (2 * END);
  return Math.min(Math.max(place, 0), 1);
}

/** The score at a position; the ends are exactly 0 and 1, so that every decision can be reached. */
export function scoreAt(place) {
  if (place <= 0 || place >= 1) return place <= 0 ? 0 : 1;
  return 1 / (1 + Math.exp(-(place - 0.5) * 2 * END));
}

/** A score with few significant digits, also near 0 and 1. */
export function short(score) {
  const distance = Math.min(score, 1 - score);
  const places = distance > 0 ? 2 - Math.floor(Math.log10(distance)) : 4;
  return Number(score.toFixed(Math.min(Math.max(places, 4), 6)));
}

/** The same as text in the language of the page. */
export function shortText(score) {
  return formatNumber(short(score), { maximumFractionDigits: 6 });
}

/** Draws `score` and the limits {threshold, review}; `verdict` is the score's zone. */
export function drawScale(score, { threshold, review }, verdict) {
  const [value, ...limits] = review === null ? distinctDecimals(score, threshold) : distinctDecimals(score, threshold, review);
  const values = { value, threshold: limits[0], review: limits[1] };
  const [label, limitsText] =
    review === null
      ? [translate("Score {value} of 1, threshold {threshold}", values), translate("Defect from {threshold}", values)]
      : [
          translate("Score {value} of 1, review from {review}, threshold {threshold}", values),
          translate("Review from {review}, defect from {threshold}", values),
        ];
  byId("scale").dataset.result = verdict;
  byId("scale").setAttribute("aria-label", label);
  const ends = [toPosition(review ?? threshold), toPosition(threshold)];
  byId("zone-good").style.width = percent(ends[0]);
  byId("zone-review").style.width = percent(ends[1] - ends[0]);
  byId("zone-review").hidden = review === null;
  byId("score-mark").style.left = percent(toPosition(score));
  placeText(byId("score-value"), translate("score {value}", { value }), toPosition(score));
  byId("score-limits").textContent = limitsText;
  byId("ticks").replaceChildren(...TICKS.map(tick));
}

function tick(score) {
  const made = document.createElement("span");
  made.textContent = formatNumber(score, { maximumFractionDigits: 4 });
  made.style.left = percent(toPosition(score));
  return made;
}

/** Places `text` centred at `position`, within the axis. */
function placeText(element, text, position) {
  element.textContent = text;
  const half = element.offsetWidth / 2 / byId("scale").offsetWidth;
  element.style.left = percent(Math.min(Math.max(position, half), 1 - half));
}

function percent(share) {
  return `${share * 100}%`;
}
