// A verdict with its colours, which contact_sheet.css has.

import { createElement } from "./dom.js";
import { verdictKind, verdictText } from "./record_text.js";

export function verdictBadge(label) {
  const badge = createElement("span", "badge", verdictText(label));
  badge.dataset.kind = verdictKind(label);
  return badge;
}
