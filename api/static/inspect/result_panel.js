// The panel with the result of one photograph.

import { byId, createElement } from "../shared/dom.js";
import { formatDecimals, formatNumber, LOCALE, translate, translateCount } from "../shared/language.js";
import { planVerdictText } from "../shared/plan_text.js";
import { warningText } from "../shared/record_text.js";
import { decideAt, distinctDecimals, limitsAt, decisionText } from "./decision.js";
import { drawScale } from "./score_scale.js";

const MAX_ROWS = 200;
const percent = new Intl.NumberFormat(LOCALE, { style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** Shows `word` as the state of a photograph, and the reason. */
export function showState(result, word, reason) {
  byId("decision").dataset.result = result;
  byId("word").textContent = word;
  byId("reason").textContent = reason;
  byId("changed").hidden = true;
  byId("decision").classList.remove("changed");
  byId("retry").hidden = result !== "failed";
}

/** Shows the decision at the user's `threshold`, or at the model's if it is null. */
export function showDecision(decision, threshold) {
  const decided = decideAt(decision, threshold);
  const limits = limitsAt(decision, threshold);
  const reason = decided.moved ? "" : planVerdictText(decision.plan);
  showState(decided.verdict, decisionText(decided), reason || decisionReason(decided.verdict, decision, limits));
  const model = decideAt(decision, null);
  byId("changed").hidden = !decided.moved;
  byId("decision").classList.toggle("changed", decided.moved);
  const note = (decision.review_threshold ?? null) === null ? translate("At your threshold.") : translate("At your threshold (no review band).");
  const before = decision.plan
    ? translate("Decision of the inspection plan: {decision}.", { decision: decisionText(model) })
    : translate("Model’s decision: {decision}.", { decision: decisionText(model) });
  byId("changed").textContent = `${note} ${before}`;
  drawScale(decision.score, limits, decided.verdict);
}

function decisionReason(verdict, decision, { threshold, review }) {
  const { score } = decision;
  if (verdict === "review" && score < (review ?? threshold)) return translate("The photograph is unlike those of the training: review instead of good.");
  if (review === null || verdict === "defect") {
    const [value, limit] = distinctDecimals(score, threshold);
    return verdict === "defect"
      ? translate("Score {value} reaches the threshold {limit}.", { value, limit })
      : translate("Score {value} is below the threshold {limit}.", { value, limit });
  }
  const [value, lower, upper] = distinctDecimals(score, review, threshold);
  if (verdict === "good") return translate("Score {value} is below the review threshold {lower}.", { value, lower });
  return translate("Score {value} is between the thresholds {lower} and {upper}.", { value, lower, upper });
}

/** Shows the probability of each class, most probable first. */
export function showProbabilities({ probabilities }) {
  const sorted = Object.entries(probabilities).sort((a, b) => b[1] - a[1]);
  const items = sorted.flatMap(([name, share]) => [createElement("dt", "", name === "good" ? translate("good") : name), createElement("dd", "", percentText(share))]);
  byId("probabilities").replaceChildren(...items);
}

/** Shows facts about image and model, and the warnings. */
export function showFacts({ image, model, timing_ms: timing, warnings }) {
  const format = image.format.toUpperCase();
  const kind = image.integrity === "checked" ? format : translate("{format} without checksum", { format });
  const size = `${image.width} × ${image.height} px, ${image.bit_depth} bit, ${kind}`;
  byId("facts").textContent = `${size} · ${model.name} ${model.version} · ${Math.round(timing.total)} ms`;
  showWarnings(warnings);
}

export function showWarnings(warnings) {
  byId("warnings").replaceChildren(...warnings.map((warning) => createElement("li", "", warningText(warning))));
}

export function showNote(note) {
  byId("note").textContent = note;
  byId("note").hidden = !note;
}

/** Lists regions; calls `onHover(region)` for pointer or focus, `onSelect(region)` for a click. */
export function showRegions(regions, { onHover, onSelect }) {
  byId("regions-title").textContent = regions.length ? translate("Regions ({count})", { count: formatNumber(regions.length) }) : translate("Regions");
  byId("no-regions").hidden = regions.length > 0;
  byId("regions-head").hidden = !regions.length;
  byId("regions").replaceChildren(...regions.slice(0, MAX_ROWS).map((region) => row(region, onHover, onSelect)));
  const more = regions.length - MAX_ROWS;
  byId("more-regions").hidden = more <= 0;
  byId("more-regions").textContent = translateCount(more, "and {count} with a lower score", "and {count} with a lower score");
}

/** Marks the rows of the hovered and of the selected region. */
export function markRegions(hovered, selected) {
  byId("regions").querySelectorAll("button").forEach((button, index) => {
    button.classList.toggle("pointed", index + 1 === hovered?.number);
    button.setAttribute("aria-pressed", index + 1 === selected?.number);
  });
}

/** A share in percent; never rounded to 0 % or 100 %. */
function percentText(share) {
  if (share > 0 && share < 0.001) return `< ${percent.format(0.001)}`;
  return share > 0.999 && share < 1 ? `> ${percent.format(0.999)}` : percent.format(share);
}

function row(region, onHover, onSelect) {
  const [x, y, width, height] = region.box;
  const score = formatDecimals(region.score, 2);
  const button = document.createElement("button");
  button.type = "button";
  const size = `${width} × ${height}`;
  const values = { number: region.number, label: region.label ? ` ${region.label}` : "", x, y, size, area: formatNumber(region.area), score };
  button.setAttribute(
    "aria-label",
    translate("Region {number}:{label} at {x}, {y}; {size} pixels; area {area} pixels; highest score {score}", values),
  );
  button.append(...[region.number, `${x}, ${y}`, size, formatNumber(region.area, { useGrouping: false }), score].map((cell) => createElement("span", "", cell)));
  if (region.label) button.append(createElement("span", "", region.label));
  for (const event of ["pointerenter", "focus"]) button.addEventListener(event, () => onHover(region));
  for (const event of ["pointerleave", "blur"]) button.addEventListener(event, () => onHover(null));
  button.addEventListener("click", () => onSelect(region));
  const item = document.createElement("li");
  item.append(button);
  return item;
}
