// The list of the latest changes, with a button for each that can be undone.

import { changeText } from "../shared/change_text.js";
import { byId, createElement } from "../shared/dom.js";
import { translate } from "../shared/language.js";
import { timeText } from "../shared/plant_time.js";
import { newestOfEach, undoSteps } from "./undo.js";

/** Shows `changes` of the audit log, the newest first; `undo(change)` undoes one. */
export function showChanges(changes, models, undo) {
  const newest = newestOfEach(changes);
  const items = changes.map((change) => {
    const item = createElement("li", "", createElement("time", "", timeText(change.at)), createElement("span", "", changeText(change)));
    if (newest.has(change) && undoSteps(change, models)) item.append(undoButton(() => undo(change), translate("Undo: {change}", { change: changeText(change) })));
    return item;
  });
  byId("latest").hidden = !items.length;
  byId("latest").querySelector("ol").replaceChildren(...items);
}

/** A button that undoes a change. */
export function undoButton(undo, name) {
  const button = createElement("button", "", translate("Undo"));
  button.dataset.needs = "engineer";
  button.type = "button";
  button.setAttribute("aria-label", name);
  button.addEventListener("click", undo);
  return button;
}
