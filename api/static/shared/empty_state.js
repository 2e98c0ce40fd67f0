// What a page shows while it has no content: what will be here, and the next step.

import { byId, createElement } from "./dom.js";
import { translate } from "./language.js";
import { roleText } from "./role_text.js";

/** An element with a title, a text about what the page will show, and elements of `nextStep`. */
export function emptyState(title, text, ...step) {
  return createElement("div", "empty-state", createElement("h2", "", title), createElement("p", "", text), ...step);
}

/** A link to the next step `text`, and who can take it for users without its role. Without a role everybody can. */
export function nextStep(text, href, role = null) {
  const link = createElement("a", "button", text);
  link.classList.add("primary");
  link.href = href;
  if (role === null) return [link];
  link.dataset.needs = role;
  return [link, whoCan(text, role)];
}

/** Whether a request failed because what the address of the page names does not exist, or is not the number of one. */
export function isMissing({ status }) {
  return [400, 404].includes(status);
}

/** Shows in place of the page that what its address names does not exist, why, and a link `text` to all of its kind. */
export function showMissing(title, text, href, reason = deletedText()) {
  const state = emptyState(title, reason, ...nextStep(text, href));
  state.setAttribute("role", "alert");
  document.querySelector("main").replaceChildren(state);
}

/** Why something does not exist. */
export function deletedText() {
  return translate("It was deleted, or the address is wrong: {address}", { address: location.pathname + location.search });
}

/** Why something that cannot be deleted does not exist. */
export function wrongAddressText() {
  return translate("The address is wrong: {address}", { address: location.pathname + location.search });
}

/** A note for users without a role, who cannot take a step. */
export function whoCan(text, role) {
  const note = createElement("p", "hint", translate("Somebody with the role {role} can do this: {step}.", { role: roleText(role), step: text }));
  note.dataset.lacks = role;
  return note;
}

/** The empty state of a page that needs a model. Without a record the service trains none. */
export function noModelState(text) {
  const hint = translate("Train a model, or put one into the folder of models.");
  const step = byId("account") ? nextStep(translate("Train a model"), "train", "engineer") : [];
  return emptyState(translate("No model is served yet"), `${text} ${hint}`, ...step);
}

/** The next step of a page that shows recorded inspections. */
export function recordStep() {
  return nextStep(translate("Send photographs by the API"), "docs", "engineer");
}
