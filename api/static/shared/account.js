// The user who is logged in, beside the links to the pages: name, own password, log-out.

import { byId, createElement } from "./dom.js";
import { translate, translateTree } from "./language.js";
import { roleText } from "./role_text.js";
import { changePassword, currentSession, logOut, refreshSession } from "./session.js";

const REFRESH_MS = 10 * 60_000; // keeps the session of an open page alive

const rules = new CSSStyleSheet();
document.adoptedStyleSheets.push(rules);

const DIALOG = `
  <form method="dialog">
    <h2 id="account-title">Account</h2>
    <p id="account-role"></p>
    <label>Present password<input id="old-password" type="password" autocomplete="current-password" required></label>
    <label>New password<input id="new-password" type="password" autocomplete="new-password" minlength="10" required></label>
    <p id="account-problem" role="alert"></p>
    <div class="buttons">
      <button id="account-close" type="button">Close</button>
      <button id="log-out" type="button">Log out</button>
      <button type="submit" class="primary">Change password</button>
    </div>
  </form>`;

async function present() {
  const { user } = await currentSession();
  hideControls(user);
  if (!user) {
    byId("account").replaceChildren();
    return;
  }
  const button = createElement("button", "", user.name);
  button.type = "button";
  button.title = translate("Logged in as {role}", { role: roleText(user.role) });
  button.addEventListener("click", () => open(user));
  byId("account").replaceChildren(button);
}

/** Hides the controls that no role of the user allows; base.css hides all of them until the user is known. */
function hideControls(user) {
  const allowed = user?.roles.map((role) => `[data-needs="${role}"]`);
  rules.replaceSync(allowed ? `[data-needs]:not(${allowed}) {}` : "");
  rules.cssRules[0]?.style.setProperty("display", "none", "important");
  document.documentElement.dataset.user = user?.name ?? "";
}

function open(user) {
  const dialog = byId("account-dialog") ?? makeDialog();
  byId("account-role").textContent = translate("{name}, role: {role}", { name: user.name, role: roleText(user.role) });
  byId("account-problem").textContent = "";
  dialog.querySelector("form").reset();
  dialog.showModal();
}

function makeDialog() {
  const dialog = createElement("dialog", "");
  dialog.id = "account-dialog";
  dialog.setAttribute("aria-labelledby", "account-title");
  dialog.innerHTML = DIALOG;
  translateTree(dialog);
  document.body.append(dialog);
  byId("account-close").addEventListener("click", () => dialog.close());
  byId("log-out").addEventListener("click", () => attempt(async () => {
    await logOut();
    location.reload();
  }));
  dialog.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(async () => {
      await changePassword(byId("old-password").value, byId("new-password").value);
      dialog.close();
    });
  });
  return dialog;
}

async function attempt(act) {
  try {
    await act();
  } catch (error) {
    byId("account-problem").textContent = error.message;
  }
}

document.addEventListener("session", present);
setInterval(refreshSession, REFRESH_MS);
await present();
