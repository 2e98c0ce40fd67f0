// The dialogs that ask for the reason of a change and its station, and for a distance.

import { byId, createElement, setText } from "../shared/dom.js";
import { formatNumber, translate } from "../shared/language.js";

/**
 * Asks for the reason of `title`, explained by `lines`; resolves to {reason, station}, or null. With `stations`, it asks for a
 * station, too, and offers these.
 */
export function askReason(title, lines, { stations = null } = {}) {
  const dialog = byId("reason-dialog");
  const { elements } = dialog.querySelector("form");
  setText(byId("reason-title"), title);
  setText(byId("reason-yes"), title);
  byId("reason-lines").replaceChildren(...lines.map((line) => createElement("p", "", line)));
  elements.reason.value = "";
  elements.station.value = "";
  elements.station.parentElement.hidden = stations === null;
  byId("known-stations").replaceChildren(...(stations ?? []).map((name) => Object.assign(createElement("option", ""), { value: name })));
  const warn = () => {
    const name = elements.station.value.trim();
    const hint = name ? translate("No part of this station is recorded: check its name.") : translate("Empty: all stations without a plan of their own.");
    setText(byId("station-hint"), stations?.includes(name) ? "" : hint);
  };
  elements.station.oninput = warn;
  warn();
  return openDialog(dialog, elements.reason, () => ({ reason: elements.reason.value.trim(), station: elements.station.value.trim() }));
}

/** Asks for the distance of two points that are `px` apart; resolves to mm, or null. */
export function askDistance(px) {
  const dialog = byId("distance-dialog");
  const { mm } = dialog.querySelector("form").elements;
  mm.value = "";
  setText(byId("distance-px"), translate("The points are {px} px apart.", { px: formatNumber(px, { maximumFractionDigits: 1 }) }));
  return openDialog(dialog, mm, () => mm.valueAsNumber);
}

/** Opens a dialog with the focus in `field`; resolves to `answer()`, or null if the user cancels. */
function openDialog(dialog, field, answer) {
  dialog.querySelector(".cancel").onclick = () => dialog.close("");
  dialog.returnValue = "";
  dialog.showModal();
  field.focus();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes" ? answer() : null), { once: true }));
}
