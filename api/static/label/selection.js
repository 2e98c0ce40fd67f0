// Which photographs of the data set the page shows.

import { byId, createElement } from "../shared/dom.js";
import { IGNORE, labelText } from "../shared/label_text.js";
import { translate } from "../shared/language.js";

const GOOD = "good";

/** The selection in the address of the page, {state, label} as the service knows them. */
export function selectionOf(query) {
  return Object.fromEntries(["state", "label"].filter((name) => query.has(name)).map((name) => [name, query.get(name)]));
}

/** Offers the selections for these classes; a choice opens the page with it. */
export function showSelection(dataSet, classes, selection) {
  byId("selection").replaceChildren(
    optionOf({}, translate("Without a label")),
    ...[GOOD, ...classes].map((label) => optionOf({ state: "unlabelled", label }, translate("{label} (proposed)", { label: labelText(label) }))),
    optionOf({ state: "corrected" }, translate("Labelled otherwise than proposed")),
    ...[GOOD, ...classes, IGNORE].map((label) => optionOf({ state: "labelled", label }, translate("{label} (labelled)", { label: labelText(label) }))),
  );
  byId("selection").value = valueOf(selection);
  byId("selection").hidden = false;
  byId("selection").addEventListener("change", ({ target }) => {
    location.search = new URLSearchParams([["data_set", dataSet], ...new URLSearchParams(target.value)]);
  });
}

function optionOf(selection, text) {
  return Object.assign(createElement("option", "", text), { value: valueOf(selection) });
}

function valueOf(selection) {
  return new URLSearchParams(selection).toString();
}
