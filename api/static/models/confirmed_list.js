// The photographs of a version that people confirmed as usual, with a button to undo each confirmation.

import { createElement } from "../shared/dom.js";
import { formatNumber, translate, translateCount } from "../shared/language.js";
import { timeText } from "../shared/plant_time.js";
import { undoButton } from "./latest_changes.js";

/** A section about `confirmed`, which opens on request; null without confirmations. `withdraw(entry)` undoes one. */
export function confirmedList(confirmed, withdraw) {
  if (!confirmed?.entries.length) return null;
  const title = translate("Photographs confirmed as usual ({count})", { count: formatNumber(confirmed.count) });
  const hint = translate("They widen the limits of this version, now in revision {number}: photographs like them get no warning.", { number: formatNumber(confirmed.revision) });
  const items = confirmed.entries.toReversed().map((entry) => {
    const links = entry.records.flatMap((id, place) => [...(place ? [", "] : []), recordLink(id)]);
    const about = createElement("span", "", `${confirmationText(entry)}: `, ...links);
    return createElement("li", "", createElement("time", "", timeText(entry.at)), about, undoButton(() => withdraw(entry), translate("Undo: {change}", { change: confirmationText(entry) })));
  });
  const list = createElement("ul", "", ...items);
  return createElement("details", "confirmed", createElement("summary", "", title), createElement("p", "hint", hint), list);
}

/** Who confirmed how many photographs. */
export function confirmationText({ who, records }) {
  return translateCount(records.length, "{name}, {count} photograph", "{name}, {count} photographs", { name: who || translate("An unknown person") });
}

function recordLink(id) {
  const link = createElement("a", "", String(id));
  link.href = `parts/${id}`;
  return link;
}
