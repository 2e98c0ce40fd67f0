// The dialog that asks before a change.

import { byId } from "../shared/dom.js";

/** Asks whether to do `title`, explained by `text`; resolves to true or false. */
export function confirm(title, text) {
  const dialog = byId("confirm");
  byId("confirm-title").textContent = title;
  byId("confirm-text").textContent = text;
  byId("confirm-yes").textContent = title;
  dialog.returnValue = "cancel";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}
