// What the training says about a weak model.

import { createElement } from "../shared/dom.js";
import { translate } from "../shared/language.js";

const LEVELS = {
  useless: translate("Rated useless: do not serve it."),
  weak: translate("Rated weak."),
  "not measurable": translate("Not measurable: nothing shows how good it is."),
};
const NAMES = {
  usable: translate("usable"),
  weak: translate("weak"),
  useless: translate("useless"),
  "not measurable": translate("not measurable"),
};

/** The level of a rating as text. */
export function levelText(level) {
  return NAMES[level] ?? level;
}

/** The note of a model that is not rated usable, or has warnings; null for others. */
export function ratingNote({ rating, warnings = [] }) {
  const isWeak = rating && rating.level !== "usable";
  const lines = [...(isWeak ? [rating.reason, ...rating.advice.map((sentence) => `→ ${sentence}`)] : []), ...warnings];
  if (!lines.length) return null;
  const title = isWeak ? LEVELS[rating.level] : translate("The training warned.");
  const note = createElement("div", "rating", createElement("strong", "", title), ...lines.map((line) => createElement("p", "", line)));
  note.dataset.level = isWeak ? rating.level : "weak";
  return note;
}

/** A sentence that warns before a model is promoted; empty if it is rated usable, or unknown. */
export function ratingWarning({ version, manifest: { rating } }) {
  if (!rating || rating.level === "usable") return "";
  return translate("Version {version} is rated {level}: {reason}", { version, level: levelText(rating.level), reason: rating.reason });
}
