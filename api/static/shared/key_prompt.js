// The dialog that asks for the API key.

import { byId } from "./dom.js";

const DIALOG = `
  <form method="dialog">
    <h2 id="key-title">API key</h2>
    <p id="key-reason"></p>
    <label>Key<input id="key" type="password" autocomplete="off" required></label>
    <p class="hint">Stored until this tab is closed.</p>
    <div class="buttons">
      <button id="key-cancel" type="button">Cancel</button>
      <button type="submit" class="primary">Use key</button>
    </div>
  </form>`;

/** Shows the dialog with `reason`; resolves to the key, or to "" if declined. */
export function askKey(reason) {
  const dialog = byId("key-dialog") ?? makeDialog();
  byId("key-reason").textContent = reason || "The service requires an API key.";
  byId("key").value = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => resolve(dialog.returnValue);
    dialog.oncancel = () => (dialog.returnValue = "");
    byId("key-cancel").onclick = () => dialog.close("");
    dialog.querySelector("form").onsubmit = (event) => {
      event.preventDefault();
      dialog.close(byId("key").value.trim());
    };
  });
}

function makeDialog() {
  const dialog = document.createElement("dialog");
  dialog.id = "key-dialog";
  dialog.setAttribute("aria-labelledby", "key-title");
  dialog.innerHTML = DIALOG;
  document.body.append(dialog);
  return dialog;
}
