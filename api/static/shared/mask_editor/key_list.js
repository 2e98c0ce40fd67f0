// The dialog with the keys of the page, and how to use it.

import { byId, createElement } from "../dom.js";
import { translate, translateTree } from "../language.js";

const DIALOG = `
  <form method="dialog">
    <h2 id="keys-title">Keys</h2>
    <dl></dl>
    <div class="buttons"><button type="submit" class="primary">Close</button></div>
  </form>`;
const NAMES = {
  Enter: "↵",
  ArrowLeft: "←",
  "Control+Z": translate("Ctrl Z"),
  "Control+Y": translate("Ctrl Y"),
};

/** Shows the keys of the elements that are displayed, after the help of the page, the element `help-steps`, if it has one. */
export function showKeys() {
  const dialog = byId("keys") ?? makeDialog();
  const displayed = [...document.querySelectorAll("[aria-keyshortcuts]")].filter((part) => part.checkVisibility());
  dialog.querySelector("dl").replaceChildren(...displayed.flatMap(rowOf));
  dialog.showModal();
}

function rowOf(part) {
  const keys = part.getAttribute("aria-keyshortcuts").split(" ").map((key) => createElement("kbd", "", NAMES[key] ?? key));
  return [createElement("dt", "", ...keys), createElement("dd", "", nameOf(part))];
}

function nameOf(part) {
  const copy = part.cloneNode(true);
  for (const extra of copy.querySelectorAll("kbd, output")) extra.remove();
  return part.title || part.getAttribute("aria-label") || copy.textContent.trim();
}

function makeDialog() {
  const dialog = createElement("dialog", "");
  dialog.id = "keys";
  dialog.autofocus = true; // not its button at the end, which would scroll to it
  dialog.setAttribute("aria-labelledby", "keys-title");
  dialog.innerHTML = DIALOG;
  translateTree(dialog);
  const help = byId("help-steps")?.cloneNode(true);
  if (help) {
    help.removeAttribute("id");
    dialog.querySelector("h2").before(help);
  }
  document.body.append(dialog);
  return dialog;
}
