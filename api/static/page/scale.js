// The scale of scores: even in log-odds, as scores of good parts crowd near 0 and those of defects near 1.

import { digits } from "./decision.js";

const END = Math.log(1e5); // log-odds at its ends: scores of about 0.00001 and 0.99999
const TICKS = [0.0001, 0.01, 0.5, 0.99, 0.9999];

const part = (id) => document.getElementById(id);

/** Where a score stands on the scale, from 0 to 1; what lies beyond an end stands at it. */
export function placeOf(score) {
  const place = 0.5 + Math.log(score / (1 - score)) / (2 * END);
  return Math.min(Math.max(place, 0), 1);
}

/** The score at a place; the ends are 0 and 1 themselves, so that every decision can be reached. */
export function scoreAt(place) {
  if (place <= 0 || place >= 1) return place <= 0 ? 0 : 1;
  return 1 / (1 + Math.exp(-(place - 0.5) * 2 * END));
}

/** A score in few digits, also where only its distance from 0 or 1 tells something. */
export function short(score) {
  const away = Math.min(score, 1 - score);
  const places = away > 0 ? 2 - Math.floor(Math.log10(away)) : 4;
  return String(Number(score.toFixed(Math.min(Math.max(places, 4), 6))));
}

/** Draws `score` between the limits {threshold, review}; `verdict` is the zone it lies in. */
export function showScale(score, { threshold, review }, verdict) {
  const [value, ...limits] = review === null ? digits(score, threshold) : digits(score, threshold, review);
  const from = review === null ? "" : `review from ${limits[1]}, `;
  const words = `${from}defect from ${limits[0]}`;
  part("scale").dataset.result = verdict;
  part("scale").setAttribute("aria-label", `Score ${value} of 1, ${from}threshold ${limits[0]}`);
  const ends = [placeOf(review ?? threshold), placeOf(threshold)];
  part("zone-good").style.width = percent(ends[0]);
  part("zone-review").style.width = percent(ends[1] - ends[0]);
  part("zone-review").hidden = review === null;
  part("score-mark").style.left = percent(placeOf(score));
  write(part("score-value"), `score ${value}`, placeOf(score));
  part("score-limits").textContent = words[0].toUpperCase() + words.slice(1);
  part("ticks").replaceChildren(...TICKS.map(tick));
}

function tick(score) {
  const made = document.createElement("span");
  made.textContent = score;
  made.style.left = percent(placeOf(score));
  return made;
}

/** Writes `words` centred at `place` of the scale, but not beyond its ends. */
function write(element, words, place) {
  element.textContent = words;
  const half = element.offsetWidth / 2 / part("scale").offsetWidth;
  element.style.left = percent(Math.min(Math.max(place, half), 1 - half));
}

function percent(share) {
  return `${share * 100}%`;
}
