// What the page shows if its address names no data set, or nothing that exists.

import { byId, createElement, setText } from "../shared/dom.js";
import { deletedText, nextStep } from "../shared/empty_state.js";
import { translate, translateCount } from "../shared/language.js";

export function showChoice({ data_sets: dataSets }) {
  document.querySelector("main").dataset.state = "empty";
  setText(byId("empty-title"), dataSets.length ? translate("Choose a data set") : translate("There is no data set yet"));
  setText(byId("empty-text"), dataSets.length ? "" : translate("This page shows the photographs of a data set one after another, to label them."));
  if (!dataSets.length) byId("empty").append(...nextStep(translate("Create a data set"), "datasets", "engineer"));
  byId("data-sets").replaceChildren(...dataSets.map(({ id, name, counts }) => {
    const link = createElement("a", "", name);
    link.href = `label?data_set=${id}`;
    const count = translateCount(counts.unlabelled, "{count} without a label", "{count} without a label");
    return createElement("li", "", link, " ", createElement("span", "", count));
  }));
}

/** Shows that what the address names does not exist, with a link `text` to others. */
export function showMissing(title, text, href) {
  document.querySelector("main").dataset.state = "empty";
  setText(byId("empty-title"), title);
  setText(byId("empty-text"), deletedText());
  byId("empty").append(...nextStep(text, href));
}
