// Writes one photograph's result onto the page.

import { decideAt, digits, limitsAt, wordsFor } from "./decision.js";
import { showScale } from "./scale.js";

const MOST_ROWS = 200;
const percent = new Intl.NumberFormat("en", { style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 });

const part = (id) => document.getElementById(id);

/** Shows a photograph that has no result: `word` and why. */
export function showState(result, word, reason) {
  part("decision").dataset.result = result;
  part("word").textContent = word;
  part("reason").textContent = reason;
  part("changed").hidden = true;
  part("decision").classList.remove("changed");
  part("again").hidden = result !== "failed";
}

/** Shows the decision at the user's `threshold`, or at the model's own when it is null. */
export function showDecision(decision, threshold) {
  const decided = decideAt(decision, threshold);
  const limits = limitsAt(decision, threshold);
  showState(decided.verdict, wordsFor(decided), reasonFor(decided.verdict, decision.score, limits));
  const own = decideAt(decision, null);
  part("changed").hidden = !decided.moved;
  part("decision").classList.toggle("changed", decided.moved);
  const lost = (decision.review_threshold ?? null) === null ? "" : ", with no review";
  part("changed").textContent = `At your threshold${lost}. At the model’s: ${wordsFor(own)}.`;
  showScale(decision.score, limits, decided.verdict);
}

function reasonFor(verdict, score, { threshold, review }) {
  if (review === null || verdict === "defect") {
    const [value, limit] = digits(score, threshold);
    return `Score ${value} ${verdict === "defect" ? "reaches" : "is below"} the threshold ${limit}.`;
  }
  const [value, lower, upper] = digits(score, review, threshold);
  if (verdict === "good") return `Score ${value} is below the review threshold ${lower}.`;
  return `Score ${value} lies between the thresholds ${lower} and ${upper}.`;
}

/** Shows the probability of each class, most probable first. */
export function showProbabilities({ probabilities }) {
  const sorted = Object.entries(probabilities).sort((a, b) => b[1] - a[1]);
  const words = sorted.flatMap(([name, share]) => [text("dt", name), text("dd", shareText(share))]);
  part("probabilities").replaceChildren(...words);
}

/** Shows what was inspected by what, and what was done to the photograph. */
export function showFacts({ image, model, timing_ms: timing, warnings }) {
  const kind = image.format.toUpperCase() + (image.integrity === "checked" ? "" : " without a checksum");
  const size = `${image.width} × ${image.height} px, ${image.bit_depth} bit, ${kind}`;
  part("facts").textContent = `${size} · ${model.name} ${model.version} · ${Math.round(timing.total)} ms`;
  showWarnings(warnings);
}

export function showWarnings(warnings) {
  part("warnings").replaceChildren(...warnings.map((warning) => text("li", warning)));
}

export function showNote(note) {
  part("note").textContent = note;
  part("note").hidden = !note;
}

/** Lists regions; `onPoint` is told the one below the pointer or focus, `onPick` the one pressed. */
export function showRegions(regions, { onPoint, onPick }) {
  part("regions-title").textContent = regions.length ? `Regions (${regions.length})` : "Regions";
  part("no-regions").hidden = regions.length > 0;
  part("regions-head").hidden = !regions.length;
  part("regions").replaceChildren(...regions.slice(0, MOST_ROWS).map((region) => row(region, onPoint, onPick)));
  const more = regions.length - MOST_ROWS;
  part("more-regions").hidden = more <= 0;
  part("more-regions").textContent = `and ${more} with a lower score`;
}

/** Marks the rows of the pointed and of the picked region. */
export function markRegions(pointed, picked) {
  part("regions").querySelectorAll("button").forEach((button, index) => {
    button.classList.toggle("pointed", index + 1 === pointed?.number);
    button.setAttribute("aria-pressed", index + 1 === picked?.number);
  });
}

/** A share in percent that never reads as none or all where it is not. */
function shareText(share) {
  if (share > 0 && share < 0.001) return `< ${percent.format(0.001)}`;
  return share > 0.999 && share < 1 ? `> ${percent.format(0.999)}` : percent.format(share);
}

function row(region, onPoint, onPick) {
  const [x, y, width, height] = region.box;
  const score = region.score.toFixed(2);
  const button = document.createElement("button");
  button.type = "button";
  const size = `${width} × ${height}`;
  const label = region.label ? ` ${region.label}` : "";
  button.setAttribute(
    "aria-label",
    `Region ${region.number}:${label} at ${x}, ${y}; ${size} pixels; area ${region.area} pixels; highest score ${score}`,
  );
  button.append(...[region.number, `${x}, ${y}`, size, region.area, score].map((words) => text("span", words)));
  if (region.label) button.append(text("span", region.label));
  for (const event of ["pointerenter", "focus"]) button.addEventListener(event, () => onPoint(region));
  for (const event of ["pointerleave", "blur"]) button.addEventListener(event, () => onPoint(null));
  button.addEventListener("click", () => onPick(region));
  const item = document.createElement("li");
  item.append(button);
  return item;
}

function text(name, words) {
  const made = document.createElement(name);
  made.textContent = words;
  return made;
}
