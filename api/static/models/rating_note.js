// What the training says about a weak model.

import { createElement } from "../shared/dom.js";

const LEVELS = {
  useless: "Rated useless: do not serve it.",
  weak: "Rated weak.",
  "not measurable": "Not measurable: nothing shows how good it is.",
};

/** The note of a model that is not rated usable, or has warnings; null for others. */
export function ratingNote({ rating, warnings = [] }) {
  const isWeak = rating && rating.level !== "usable";
  const lines = [...(isWeak ? [rating.reason, ...rating.advice.map((sentence) => `→ ${sentence}`)] : []), ...warnings];
  if (!lines.length) return null;
  const title = isWeak ? LEVELS[rating.level] : "The training warned.";
  const note = createElement("div", "rating", createElement("strong", "", title), ...lines.map((line) => createElement("p", "", line)));
  note.dataset.level = isWeak ? rating.level : "weak";
  return note;
}

/** A sentence that warns before a model is promoted; empty if it is rated usable, or unknown. */
export function ratingWarning({ version, manifest: { rating } }) {
  return rating && rating.level !== "usable" ? `Version ${version} is rated ${rating.level}: ${rating.reason}` : "";
}
