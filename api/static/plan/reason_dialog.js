// The dialog that asks for the reason of a change, and for a station.

import { byId, setText } from "../shared/dom.js";
import { translate } from "../shared/language.js";

/**
 * Asks for the reason of `title`, explained by `lines`; resolves to {reason, station}, or null. With `stations`, it asks for a
 * station, too, and offers these.
 */
export function askReason(title, lines, { stations = null } = {}) {
  const dialog = byId("reason-dialog");
  const { elements } = dialog.querySelector("form");
  setText(byId("reason-title"), title);
  setText(byId("reason-yes"), title);
  byId("reason-lines").replaceChildren(...lines.map((line) => Object.assign(document.createElement("p"), { textContent: line })));
  elements.reason.value = "";
  elements.station.value = "";
  elements.station.parentElement.hidden = stations === null;
  byId("known-stations").replaceChildren(...(stations ?? []).map((name) => Object.assign(document.createElement("option"), { value: name })));
  const warn = () => {
    const name = elements.station.value.trim();
    setText(byId("station-hint"), name && !stations?.includes(name) ? translate("No part of this station is recorded: check its name.") : "");
  };
  elements.station.oninput = warn;
  warn();
  dialog.returnValue = "";
  dialog.showModal();
  elements.reason.focus();
  return new Promise((resolve) => dialog.addEventListener("close", () => {
    const answer = { reason: elements.reason.value.trim(), station: elements.station.value.trim() };
    resolve(dialog.returnValue === "yes" ? answer : null);
  }, { once: true }));
}
