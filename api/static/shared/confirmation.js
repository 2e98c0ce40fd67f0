// The dialog that asks before a change.

import { byId } from "./dom.js";
import { translateTree } from "./language.js";

const DIALOG = `
  <form method="dialog">
    <h2 id="confirm-title"></h2>
    <p id="confirm-text"></p>
    <div class="buttons">
      <button value="cancel">Cancel</button>
      <button value="yes" class="primary" id="confirm-yes"></button>
    </div>
  </form>`;

/** Asks whether to do `title`, explained by `text`; resolves to true or false. */
export function confirm(title, text) {
  const dialog = byId("confirm") ?? makeDialog();
  byId("confirm-title").textContent = title;
  byId("confirm-text").textContent = text;
  byId("confirm-yes").textContent = title;
  dialog.returnValue = "cancel";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}

function makeDialog() {
  const dialog = document.createElement("dialog");
  dialog.id = "confirm";
  dialog.setAttribute("aria-labelledby", "confirm-title");
  dialog.innerHTML = DIALOG;
  translateTree(dialog);
  document.body.append(dialog);
  return dialog;
}
