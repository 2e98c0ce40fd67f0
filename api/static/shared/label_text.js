// Labels of photographs as texts.

import { createElement } from "./dom.js";
import { translate } from "./language.js";
import { verdictBadge } from "./verdict_badge.js";

export const IGNORE = "ignore"; // left out of versions
export const UNLABELLED = "";

const TEXTS = { [IGNORE]: translate("Left out"), [UNLABELLED]: translate("Not labelled") };

/** The text of a label; the names of classes are those of the data set. */
export function labelText(label) {
  return TEXTS[label ?? UNLABELLED] ?? (label === "good" ? translate("Good") : label);
}

/** The split that a photograph came with; empty if it has none. */
export function splitText(split) {
  if (split === null) return "";
  return split === "left_out" ? translate("left out of the split") : translate("split {split}", { split });
}

/** A label with its colours. */
export function labelBadge(label) {
  if (!((label ?? UNLABELLED) in TEXTS)) return verdictBadge(label);
  const badge = createElement("span", "badge", labelText(label));
  badge.dataset.kind = "none";
  return badge;
}
