// The user who is logged in, beside the links to the pages: name, own password, log-out.

import { Credentials } from "./credentials.js";
import { askForCredentials } from "./credentials_prompt.js";
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
  const { user, has_users: hasUsers } = await currentSession();
  hideControls(user);
  const button = createElement("button", "", user?.name ?? translate("Log in"));
  button.type = "button";
  if (user) button.title = translate("Logged in as {role}", { role: roleText(user.role) });
  button.addEventListener("click", () => (user ? open(user) : logIn()));
  (user ? byId("pages") : document.querySelector("header")).append(byId("account")); // "Log in" is not in the menu
  byId("account").replaceChildren(...(user || hasUsers ? [button] : []));
}

async function logIn() {
  const credentials = new Credentials(askForCredentials);
  if (await credentials.renew(credentials.key, "")) location.reload();
}

/** Hides the controls that no role of the user allows, which base.css hides until the user is known; says who has it. */
function hideControls(user) {
  const others = (name) => `[data-${name}]:not(${user.roles.map((role) => `[data-${name}="${role}"]`)})`;
  rules.replaceSync(user ? `${others("needs")} {} ${others("lacks")} {}` : "");
  rules.cssRules[0]?.style.setProperty("display", "none", "important");
  rules.cssRules[1]?.style.setProperty("display", "block");
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
